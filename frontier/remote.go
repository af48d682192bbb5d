//go:build !core

package frontier

import (
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// A page lease can go to a fetcher outside of this process instead of a worker. It takes no worker,
// so it counts in no lane, and what its fetcher says of its duration does not decide the lane of
// its host. Everything else is as for any other lease.

// Want says which pages a remote fetcher may have.
type Want struct {
	Host    storage.HostID // the only host; storage.NoHost: any
	PerHost int            // requests to one host in flight, those of others included; 0: one
	Hosts   int            // the most hosts; 0: any number
}

// LeaseRemote gives leases to take for a remote fetcher, as long as pages that it wants are due and take returns true.
// A Page lease is the fetcher's. Others, which the pages of a host wait for, are for workers. wake is when there may
// be more, if nothing was due any more; zero: only an event can change that. take may complete leases.
//
// With Options.Batches the leases that one call gives of a host are a batch: as many as PerHost says,
// whatever the delay in force is. The fetcher keeps the delay between their requests. The frontier
// keeps it from a batch to the next, and from the end of each request.
func (f *Frontier) LeaseRemote(now time.Time, w Want, take func(*Lease) bool) (wake time.Time) {
	f.readClock(now)
	turn := remoteTurn{f: f, now: now, want: w, most: max(w.PerHost, 1)}
	turn.widenBatches()
	f.leases.remote = true
	if f.o.Batches {
		f.gate.inBatch.Most = turn.most
	}
	defer func() { f.leases.remote, f.gate.inBatch = false, Batch{} }()
	defer turn.restore()
	if w.Host != storage.NoHost {
		return turn.leaseOf(w.Host, take)
	}
	for hosts := 0; w.Hosts == 0 || hosts < w.Hosts; {
		out := f.nextOf(now, turn.due)
		if out == nil {
			return f.memory.nextWake(func(lane) bool { return true })
		}
		h, isPage := out.host, out.lease.Kind == Page
		ended := !take(&out.lease)
		if isPage {
			hosts++
			f.gate.inBatch.More = f.o.Batches
			ended = ended || turn.more(h, take)
			turn.endBatch(h)
		}
		if ended {
			return time.Time{}
		}
	}
	return time.Time{}
}

// Prepare makes hosts active whose URLs are due soon, with Options.Batches: a fetcher that wants
// some then need not wait until they are read. It reports whether there were any.
func (f *Frontier) Prepare(now time.Time) bool {
	if !f.o.Batches {
		return false
	}
	f.readClock(now)
	before := f.memory.activating
	f.activateDue(f.instant(now))
	return f.memory.activating > before
}

// remoteTurn is one call of LeaseRemote.
type remoteTurn struct {
	f     *Frontier
	now   time.Time
	want  Want
	most  int     // requests in flight to one host
	aside []*host // in no heap: due, but with as many requests in flight as are wanted
}

// widenBatches takes note that a fetcher wants so many URLs of a host as the call says. Hosts with as many requests in
// flight as others wanted so far may then have more.
func (r *remoteTurn) widenBatches() {
	if f := r.f; f.o.Batches && r.most > f.leases.batchSize {
		f.leases.batchSize = r.most
		for h := range f.hosts.all {
			if h.state == leased && h.active != nil {
				f.schedule(h, f.instant(f.clock))
			}
		}
	}
}

// endBatch takes note that a host has given out what it gives out at a time.
func (r *remoteTurn) endBatch(h *host) {
	if f := r.f; f.o.Batches && h.active != nil {
		h.active.batchAt = f.instant(r.now)
		h.marks.set(isNew, false)
		f.schedule(h, f.instant(r.now))
	}
}

// due is the host of all lanes that has been due longest and has room for a request.
func (r *remoteTurn) due(now instant) *host {
	for {
		var first *host
		since := never
		for l := range lanes {
			if h, at := r.f.lanes.first(l, now); h != nil && at < since {
				first, since = h, at
			}
		}
		if first == nil || first.active.inFlight < r.most {
			return first
		}
		r.f.lanes.remove(first)
		r.aside = append(r.aside, first)
	}
}

// restore schedules the hosts again that were set aside.
func (r *remoteTurn) restore() {
	for _, h := range r.aside {
		r.f.schedule(h, r.f.instant(r.now))
	}
}

// more gives further leases of a host, as many as are wanted of one. It reports whether take returned false.
func (r *remoteTurn) more(h *host, take func(*Lease) bool) (ended bool) {
	t := r.f.instant(r.now)
	defer func() { r.f.gate.inBatch.More = false }()
	for r.isDue(h, t) {
		out := r.f.serve(h, r.now)
		if out == nil {
			return false
		}
		r.f.gate.inBatch.More = r.f.o.Batches
		if !take(&out.lease) {
			return true
		}
	}
	return false
}

// isDue reports whether a host may have a lease as far as its heap says.
func (r *remoteTurn) isDue(h *host, now instant) bool {
	if h == nil || h.active == nil || !h.active.loaded || h.active.inFlight >= r.most {
		return false
	}
	return h.state == waiting && h.readyAt <= now ||
		h.state == waitingToRecrawl && h.recrawlAt <= now && r.f.recrawls.allowed(now)
}

// leaseOf gives leases of one host. A dormant one becomes active.
func (r *remoteTurn) leaseOf(id storage.HostID, take func(*Lease) bool) (wake time.Time) {
	f, t := r.f, r.f.instant(r.now)
	f.activateDue(t)
	h := f.hosts.get(id)
	if h == nil {
		return time.Time{}
	}
	b := &h.backlog
	if h.active == nil && (b.Queued+b.Due > 0 || b.Recrawls > 0) && !f.budgets.isOver(h) && f.memory.hasRoom() {
		at := h.ready - lead
		switch h.state {
		case dormant:
			at = h.readyAt
		case recrawlOnly:
			at = max(h.recrawlAt, f.recrawls.account.nextAt)
		}
		if at > t {
			return f.time(at)
		}
		f.activate(h)
	}
	before := f.leases.last
	ended := r.more(h, take)
	if f.leases.last > before {
		r.endBatch(h)
	}
	if ended || h.active == nil || h.active.inFlight >= r.most {
		return time.Time{}
	}
	switch {
	case h.state == waiting && h.readyAt > t:
		return f.time(h.readyAt)
	case h.state == waitingToRecrawl:
		return f.time(max(h.recrawlAt, f.recrawls.account.nextAt, t+1))
	}
	return time.Time{}
}

// LeaseOf returns a page lease that is out, and whether its host is loaded, so that it can be
// completed. The lease is read-only, and valid until it is completed.
func (f *Frontier) LeaseOf(id uint64) (l *Lease, loaded bool) {
	out := f.leases.out[id]
	if out == nil {
		return nil, false
	}
	if !out.host.active.loaded {
		return &out.lease, false
	}
	if l = &out.lease; l.Rules == nil { // it was adopted
		q := &out.host.active.queues[l.Head.Origin]
		l.Rules, l.Policy = q.rules, q.record
		l.Verdict, _ = f.matches.match(q, &l.Head)
	}
	return l, true
}

// Adopted is a page lease that an earlier process gave to a remote fetcher.
type Adopted struct {
	Host    storage.HostID
	Name    string // of the host
	URL     weburl.URL
	Head    storage.Head
	Address netip.Addr
	At      time.Time
	Delay   time.Duration
}

// Adopt takes over a lease: its host becomes active, with a request in flight. It has to be called after Restore and
// before the first lease is given out. False: the host is not known, or a lease of the URL is out.
func (f *Frontier) Adopt(l Adopted, now time.Time) (id uint64, ok bool) {
	f.readClock(now)
	h := f.hosts.get(l.Host)
	if h == nil || h.active != nil && h.active.busy.Has(l.Head.Ordinal) {
		return 0, false
	}
	if h.active == nil {
		f.activate(h)
		h.active.name = l.Name
	}
	a := h.active
	a.busy.Add(l.Head.Ordinal)
	a.inFlight++
	a.served++
	f.budgets.countPage(h, &l.Head)
	out := f.leases.add(h, Page)
	out.remote, out.urlKind = true, kindOf(&l.Head)
	pages, _ := f.pages.find(l.URL, &l.Head)
	out.pages = f.pages.begin(pages, &l.Head)
	out.limits = [limitClasses]*limit{byDomain: f.limits.ofDomain(l.Name), byGroup: f.limits.ofGroup(l.Name, nil)}
	if l.Address.IsValid() {
		out.limits[byAddress] = f.limits.ofAddress(l.Address)
	}
	for _, limit := range out.limits {
		if limit != nil {
			limit.polite.Begin()
		}
	}
	out.lease.URL, out.lease.Address, out.lease.Head = l.URL, l.Address, l.Head
	out.lease.At, out.lease.Delay, out.lease.DelayReason = l.At, l.Delay, politeness.ReasonRestart
	if f.o.Gate != nil {
		r := f.gate.request(h, &out.limits)
		out.lease.Gate = r
		r.HostTerms = HostTerms{Delay: l.Delay, InFlight: 1}
		if f.o.Batches {
			r.Now, r.Most = l.At, 1
		}
		f.o.Gate.Adopt(r)
	}
	if f.o.Batches {
		a.batchAt = max(a.batchAt, f.instant(l.At))
	}
	return out.lease.ID, true
}

// kindOf is the kind that a URL has in its queue.
func kindOf(head *storage.Head) queue.Kind {
	switch {
	case head.Last.State == storage.Queued && head.Priority == 0:
		return queue.New
	case head.Last.State == storage.Queued || head.Last.State == storage.Retrying:
		return queue.Due
	}
	return queue.Recrawl
}

// MayRequest reports whether a request to a host may begin now, besides those of the frontier: none is in flight, and
// its delay and those of its shared limits are over. at is when its own delay is over; zero: not known. With take, the
// host, which has this name, is charged as for a request that ends now.
func (f *Frontier) MayRequest(id storage.HostID, name string, now time.Time, take bool) (at time.Time, may bool) {
	f.readClock(now)
	h, t := f.hosts.get(id), f.instant(now)
	switch {
	case h == nil || h.closed.parked():
		return time.Time{}, false
	case h.active == nil:
		if at = f.time(max(h.ready, 0)); h.ready > t || h.waitReason == politeness.ReasonPause && h.workAt > t {
			return at, false
		}
		delay := max(decimal(h.delay), f.politeness(h).Delay)
		r := &GateRequest{ID: id, Host: name, Now: now, HostTerms: HostTerms{Delay: delay, InFlight: 1}}
		if again, ok := f.gate.admitNow(r, take, r.HostTerms); !ok {
			return again, false
		}
		if take {
			h.ready, h.waitReason = t+instant(delay), politeness.ReasonDelay
			f.lanes.remove(h)
			f.schedule(h, t)
		}
		return at, true
	case !h.active.loaded || h.active.inFlight > 0 || h.hasReserved():
		return time.Time{}, false
	}
	a := h.active
	if polite := f.politeAt(h); polite > t {
		return f.time(polite), false
	}
	for _, l := range a.limits {
		if l != nil && (!l.isFree() || f.instant(l.polite.Ready()) > t) {
			return time.Time{}, false
		}
	}
	r := f.gate.request(h, &a.limits)
	r.HostTerms = f.gate.terms(h)
	if again, ok := f.gate.admitNow(r, take, r.HostTerms); !ok {
		return again, false
	}
	if take {
		for _, l := range a.limits {
			if l != nil {
				l.polite.Begin()
				f.endInLimit(l, &Report{End: now})
			}
		}
		a.polite.Ended(now, politeness.Result{Signal: politeness.SignalAborted})
		f.results.update(h, now, 0, 0)
		f.schedule(h, t)
	}
	return time.Time{}, true
}

// Abandon tells the gate that a remote lease, whose end this frontier will not see, ends at an instant at the latest.
func (f *Frontier) Abandon(id uint64, at time.Time) {
	if out := f.leases.out[id]; out != nil {
		f.gate.end(out, &Report{Sent: true, End: at})
	}
}
