package frontier

import (
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Next gives out the request that is due longest; false if none is due. It is to
// be called only while a worker is idle: a lease chosen ahead of time would be
// late for its host and early for the next.
func (f *Frontier) Next(now time.Time) (Lease, bool) { return f.next(now, f.dueHost) }

// NextInTurn is Next for when requests are scarce and workers are not: the host that is due longest
// comes first, whether it is quick or slow.
func (f *Frontier) NextInTurn(now time.Time) (Lease, bool) { return f.next(now, f.longestDue) }

func (f *Frontier) next(now time.Time, due func(instant) *host) (Lease, bool) {
	f.read(now)
	if out := f.nextOf(now, due); out != nil {
		return out.lease, true
	}
	return Lease{}, false
}

func (f *Frontier) nextOf(now time.Time, due func(instant) *host) *outstanding {
	t := f.instant(now)
	f.activate(t)
	for h := due(t); h != nil; h = due(t) {
		if out := f.serve(h, now); out != nil {
			return out
		}
	}
	f.activate(t) // where others made room
	return nil
}

// serve gives a lease to a host whose turn it is, if it can have one now, and puts it where it belongs.
func (f *Frontier) serve(h *host, now time.Time) (out *outstanding) {
	t := f.instant(now)
	switch {
	case !f.startable(h, t) || !h.active.resolved(t) && !h.reserved():
		f.yield(h, t)
		f.place(h, t)
	case f.admitted(h, t):
		out = f.take(h, now)
		f.yield(h, t)
		f.place(h, t)
	}
	return out
}

// take finds the next thing to ask of a host whose turn it is. URLs that may not
// be asked are settled on the way. Each round settles, holds or asks, so it ends.
func (f *Frontier) take(h *host, now time.Time) *outstanding {
	if out := f.takeJob(h, false, now); out != nil {
		return out
	}
	settled := len(f.out.Done)
	out := f.takeURL(h, now)
	if len(f.out.Done) > settled {
		f.update(h, now, 0, 0)
	}
	if out == nil {
		return f.takeJob(h, true, now)
	}
	h.active.sinceJob = min(h.active.sinceJob+1, jobShare)
	return out
}

func (f *Frontier) takeURL(h *host, now time.Time) *outstanding {
	t := f.instant(now)
	for {
		q, renews := f.pick(h, t)
		if q == nil {
			return nil
		}
		standing := f.o.Robots.Standing(q.record, h.active.polite.Delay(now), now)
		switch {
		case standing.Kind == robots.StandingFetch || standing.RefreshDue && h.patient != q.index+1:
			q.asked, h.patient = true, q.index+1
			job := RobotsJob{Origin: q.origin, Owner: h.id, Previous: q.record, HostAnswers: h.active.answersElsewhere(q)}
			return f.leaseRobots(h, q.origin.URL("/robots.txt"), &job, now)
		case f.closes(standing, q.rules):
			q.hold(standing, max(f.instant(standing.Until), t+1))
			continue
		}
		take := f.takePage
		if renews {
			take = f.takeRenewal
		}
		if out := take(h, q, now); out != nil {
			return out
		}
	}
}

// pick chooses the queue whose turn it is, and whether it is to make a renewal.
func (f *Frontier) pick(h *host, now instant) (q *queue, renews bool) {
	if !f.spent(h) {
		q = h.active.pick(now, f.patient(h))
	}
	if f.renewable(now) && (q == nil || f.renewsFirst()) {
		if r := h.active.pickRenewal(now); r != nil {
			return r, true
		}
	}
	return q, false
}

// patient is the queue whose robots.txt could not be read the last time it had a turn, and which has no other rules to go by: it lets others go
// first, else the host would be asked for nothing but that file. nil: there is none.
func (f *Frontier) patient(h *host) *queue {
	if h.patient == 0 || int(h.patient) > len(h.active.queues) {
		return nil
	}
	q := &h.active.queues[h.patient-1]
	if q.record.Failures == 0 || f.o.Robots.Standing(q.record, h.active.polite.Delay(f.clock), f.clock).Kind == robots.StandingAsk {
		return nil
	}
	return q
}

// hold keeps a whole queue until an instant.
func (q *queue) hold(s robots.Standing, until instant) {
	q.held, q.why = min(until, never-1), s.Reason
	if s.Kind == robots.StandingAsk {
		q.why = robots.ReasonRule // Disallow: /
	}
}

// takePage leases the first URL of a queue that may be asked; nil if the turn
// is another queue's before there is one.
func (f *Frontier) takePage(h *host, q *queue, now time.Time) *outstanding {
	for turn, _, _ := q.first(); ; {
		if priority, _, ok := q.first(); !ok || priority != turn {
			return nil
		}
		head, due := q.take()
		out := f.leasePage(h, q, &head, now)
		if out == nil {
			continue
		}
		f.tookNew()
		if !due {
			q.inFlight.add(head.Ordinal)
		}
		out.due, h.patient = due, 0
		return out
	}
}

// leasePage leases a URL that was taken off its queue, if it may be asked. One that may not is settled; then there is no lease.
func (f *Frontier) leasePage(h *host, q *queue, head *storage.Head, now time.Time) *outstanding {
	h.active.busy.add(head.Ordinal)
	u := q.origin.URL(head.RequestURI)
	verdict, no := f.judge(q, head, u)
	if no.State != storage.Queued {
		no.At = now
		f.unplan(h, head, &no)
		f.settle(h, head, no)
		return nil
	}
	f.spend(h, head)
	out := f.leaseRequest(h, Page, u, now)
	l := &out.lease
	l.Head, l.Verdict, l.Rules, l.Policy = *head, verdict, q.rules, q.record
	return out
}

// judge asks the scope and the robots rules about a URL. The outcome is that of
// a URL which may not be asked; its state is Queued when it may.
func (f *Frontier) judge(q *queue, head *storage.Head, u weburl.URL) (robots.Verdict, storage.Outcome) {
	inScope := f.scope.Check
	if head.Sitemap {
		inScope = f.scope.CheckSitemap
	}
	if inScope(u) != InScope {
		return robots.Verdict{}, storage.Outcome{State: storage.Excluded, Reason: storage.ReasonScope}
	}
	if f.o.MaxDepth > 0 && head.Depth > f.o.MaxDepth && !head.Sitemap {
		return robots.Verdict{}, storage.Outcome{State: storage.Excluded, Reason: storage.ReasonDepth}
	}
	v := q.rules.Match(head.RequestURI)
	if !v.Allowed && f.o.Obey {
		return v, storage.Outcome{State: storage.Denied, Reason: storage.ReasonRobots, Line: uint32(v.Line)}
	}
	return v, storage.Outcome{}
}

// leaseRequest leases a request to a host: it counts against the host's and
// the address's limits until it is completed.
func (f *Frontier) leaseRequest(h *host, kind Kind, u weburl.URL, now time.Time) *outstanding {
	a := h.active
	a.inFlight++
	a.served++
	for _, limit := range a.limits {
		if limit != nil {
			limit.polite.Begin()
		}
	}
	out := f.lease(h, kind)
	f.beginInLane(out, f.instant(now))
	l, why := &out.lease, a.polite.Explain(now)
	l.URL, l.Address = u, a.pinned
	l.At, l.Delay, l.DelayReason, l.DelaySource = now, why.Delay, why.DelayReason, why.DelaySource
	l.Reason, l.Source, l.Learned = why.Reason, why.Source, a.learned()
	l.LastEnd, l.Ready = a.polite.LastEnd(), why.Until
	return out
}

// leaseRobots leases a fetch of robots.txt, or of what it redirects to.
func (f *Frontier) leaseRobots(h *host, u weburl.URL, job *RobotsJob, now time.Time) *outstanding {
	out := f.leaseRequest(h, Robots, u, now)
	out.lease.Robots = *job
	return out
}

// learned reports whether a robots.txt of the host was ever read.
func (a *active) learned() bool {
	for i := range a.queues {
		if a.queues[i].known {
			return true
		}
	}
	return false
}

func (f *Frontier) lease(h *host, kind Kind) *outstanding {
	f.lastLease++
	if len(f.spare) == 0 {
		f.spare = append(f.spare, new(outstanding))
	}
	last := len(f.spare) - 1
	out := f.spare[last]
	f.spare = f.spare[:last]
	*out = outstanding{host: h, limits: h.active.limits}
	out.lease.ID, out.lease.Kind, out.lease.Host, out.lease.HostName = f.lastLease, kind, h.id, h.active.name
	f.leases[f.lastLease] = out
	return out
}
