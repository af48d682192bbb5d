package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/storage"
)

// A crawl that goes on has two things to do: to ask for URLs that it has not asked for yet, and to ask again for
// pages that may have changed, which is called a renewal. Renewals may have a budget of so many a day. Each
// of the two has its share of the requests, and takes what the other leaves.
//
// Hosts with renewals stand in heaps of their own, beside those for everything else, and a host may be in
// one of each at the same time. So renewals that wait for the budget never stand in the way.

// Renewer decides when pages are asked for again. A revisit.Plan is one.
type Renewer interface {
	Answered(*revisit.Visit, *revisit.Site) revisit.Memory
	Gone(*revisit.Visit, *revisit.Site) revisit.Memory
	Unanswered(*revisit.Visit, *revisit.Site) revisit.History
	Spent(spare, late float64) // of the budget when a renewal begins
	Budget() float64           // renewals a day; 0: no limit
}

// share keeps account of the two kinds of requests.
type share struct {
	nextAt instant // when the budget allows the next renewal
	lastAt instant // when the last one began
	credit float64 // of renewals: more than 0 if it is their turn
}

// maxCredit is how much of its share a kind keeps that had nothing to ask, and owes for what it took while the
// other had nothing.
const maxCredit = 1

// budgetWindow is how much of the budget that was not used may be used later.
const budgetWindow = instant(time.Hour)

// gap is the time between renewals that the budget allows on average; 0: there is no limit.
func (f *Frontier) gap() instant {
	budget := f.o.Renew.Budget()
	if budget <= 0 {
		return 0
	}
	return instant(float64(24*time.Hour) / budget)
}

// renewable reports whether the budget allows a renewal now.
func (f *Frontier) recrawlAllowed(now instant) bool { return f.o.Renew != nil && f.share.nextAt <= now }

// renewsFirst reports whether it is the turn of renewals.
func (f *Frontier) recrawlsFirst() bool { return f.share.credit > 0 }

// tookRenewal takes note of a renewal of a page that was fetched at an instant and due at another.
func (f *Frontier) countRecrawl(fetched, due, now instant) {
	s := &f.share
	s.credit = max(s.credit-(1-f.o.RenewShare), -maxCredit)
	gap := f.gap()
	if gap == 0 {
		return
	}
	window := max(budgetWindow, 4*gap)
	s.nextAt = max(s.nextAt, now-window)
	waited := max(1-float64(now-s.nextAt)/float64(gap), 0) // 1: it begins as soon as the budget allows; 0: it could have begun one sooner
	late := min(max(float64(now-due), 0)/max(float64(due-fetched), 1), 1)
	f.o.Renew.Spent(float64(min(now-s.lastAt, window))/float64(gap)-1, waited*late)
	s.nextAt, s.lastAt = s.nextAt+gap, now
}

// tookNew takes note of a request for a URL that was not fetched before.
func (f *Frontier) countNew() { f.share.credit = min(f.share.credit+f.o.RenewShare, maxCredit) }

// notRenewed takes back what a renewal cost that was not sent.
func (f *Frontier) refundRecrawl() { f.share.nextAt -= f.gap() }

// wakens makes hosts active for their renewals: no more than the budget has use for soon, because others
// can use the room.
func (f *Frontier) activateForRecrawls(now instant) {
	if f.o.Renew == nil || f.share.nextAt-lead > now {
		return
	}
	enough := maxActivating
	if gap := f.gap(); gap > 0 {
		enough = int(min(1+2*lead/gap, maxActivating))
	}
	for h := f.dormantRecrawls.top(); h != nil && h.recrawlAt <= now && f.canActivate() && f.recrawlersSoon(f.recrawlWake(h), enough) < enough; h = f.dormantRecrawls.top() {
		f.activate(h)
	}
}

// wanted is when a host that sleeps is to become active, if there is use for it.
func (f *Frontier) recrawlWake(h *host) instant { return max(h.recrawlAt, f.share.nextAt-lead) }

// readySoon counts the hosts that can make a renewal soon after an instant, up to a number that is enough. It looks at the top
// of the heap only, where the first are: whether there is none at all is exact, and a number may be too low.
func (f *Frontier) recrawlersSoon(at instant, enough int) int {
	n := f.activating
	for l := range lanes {
		for _, h := range f.activeRecrawls[l][:min(len(f.activeRecrawls[l]), 4*enough)] {
			if n >= enough || !f.laneOpen(l) {
				break
			}
			if h.recrawlAt <= at+lead {
				n++
			}
		}
	}
	return n
}

// wakeToRenew is the earliest instant at which there may be a renewal to make; never: there is none.
func (f *Frontier) nextRecrawlWake() instant {
	at := never
	if f.o.Renew == nil {
		return at
	}
	for l := range lanes {
		if h := f.activeRecrawls[l].top(); h != nil && f.laneOpen(l) {
			at = min(at, max(h.recrawlAt, f.share.nextAt))
		}
	}
	if h := f.dormantRecrawls.top(); h != nil && f.canActivate() && f.recrawlersSoon(f.recrawlWake(h), 1) == 0 {
		at = min(at, f.recrawlWake(h))
	}
	return at
}

// readRenewalsAt is when renewals of an active host should be read.
func (f *Frontier) readRecrawlsAt(h *host) instant {
	a := h.active
	if f.o.Renew == nil || h.recrawls == 0 || a.loading {
		return never
	}
	known := len(a.busy)
	for i := range a.queues {
		known += a.queues[i].Len(queue.Recrawl)
	}
	return f.nextReadAt(a, h.nextRecrawl, a.recrawlsRead, int(h.recrawls) > known)
}

// renewAt is when a renewal of an active host may be made as far as the host is concerned; never: there is none.
func (f *Frontier) recrawlAt(h *host) instant {
	a := h.active
	if f.o.Renew == nil {
		return never
	}
	at, low := f.readRecrawlsAt(h), false
	for i := range a.queues {
		q := &a.queues[i]
		if !q.isBlocked() && q.Len(queue.Recrawl) > 0 {
			at = min(at, q.heldUntil)
		}
		low = low || q.LowRecrawls(f.o.Heads)
	}
	if low && a.loadAfter == always {
		f.requestLoad(h)
	}
	if at == never {
		return never
	}
	return max(at, f.polite(h))
}

// leaseRecrawl leases the first page to recrawl of a queue that may be fetched; nil if there is none.
func (f *Frontier) leaseRecrawl(h *host, q *originQueue, now time.Time) *outstanding {
	for q.Len(queue.Recrawl) > 0 {
		head := q.TakeRecrawl()
		out := f.leasePage(h, q, &head, true, now)
		switch {
		case out == nil && q.matching:
			h.active.busy.Remove(head.Ordinal)
			q.Return(head, queue.Recrawl)
			return nil
		case out == nil:
			continue
		case out.lease.Kind == Page:
			f.countRecrawl(f.instant(head.Last.At), f.instant(head.Last.Due), f.instant(now))
		}
		out.urlKind = queue.Recrawl
		return out
	}
	return nil
}

// visit is what the plan has to know of a page that was asked for.
func (f *Frontier) visit(h *host, head *storage.Head, at time.Time) *revisit.Visit {
	timesGone := 0
	if head.Last.State == storage.Failed {
		timesGone = int(head.Last.Attempts)
	}
	return &revisit.Visit{
		Page: revisit.Page{
			Host: h.active.name, RequestURI: head.RequestURI, Priority: head.Priority, Depth: head.Depth, Claimed: head.Frequency.Every(),
		},
		Memory: revisit.Memory{At: head.Last.At, Due: head.Last.Due, History: head.Last.History},
		At:     at, TimesGone: timesGone,
	}
}

// plan decides about the next visit of a page that was asked for. Without a plan the page keeps what is remembered of it.
func (f *Frontier) planRecrawl(h *host, head *storage.Head, o *storage.Outcome, r *PageReport) {
	if f.o.Renew == nil || o.State == storage.Retrying || o.Reason == storage.ReasonCrash ||
		o.State != storage.Fetched && o.State != storage.Redirected && !wasThere(head) {
		f.keepPlan(h, head, o)
		return
	}
	v := f.visit(h, head, o.At)
	var m revisit.Memory
	if o.State == storage.Fetched || o.State == storage.Redirected {
		v.Change, v.Modified, v.Expires = r.Change, r.Modified, r.Expires
		m = f.o.Renew.Answered(v, &h.active.site)
	} else {
		m = f.planGone(h, head, o, v)
	}
	o.Due, o.History = m.Due, m.History
}

// wasThere reports whether a page that cannot be had was there before.
func wasThere(head *storage.Head) bool {
	switch head.Last.State {
	case storage.Fetched, storage.Redirected, storage.Failed:
		return true
	}
	return head.Last.History != revisit.History{}
}

// gone plans another visit of a page that is not there any more, or says that there is none.
func (f *Frontier) planGone(h *host, head *storage.Head, o *storage.Outcome, v *revisit.Visit) revisit.Memory {
	const gone = 410
	v.GoneForAll = o.Status == gone && v.TimesGone > 0
	o.Attempts = uint8(min(v.TimesGone+1, 255))
	keepContent(o, &head.Last)
	return f.o.Renew.Gone(v, &h.active.site)
}

// unplan takes a page off the plan that is not fetched now.
func (f *Frontier) keepPlan(h *host, head *storage.Head, o *storage.Outcome) {
	o.History = head.Last.History
	if o.State == storage.Retrying {
		keepContent(o, &head.Last)
	}
	if f.o.Renew != nil && wasThere(head) {
		o.History = f.o.Renew.Unanswered(f.visit(h, head, o.At), &h.active.site)
	}
}

// keepContent keeps what an earlier visit said about the content, for the visit that brings it again.
func keepContent(o, last *storage.Outcome) {
	o.ETag, o.Modified, o.Digest, o.Simhash = last.ETag, last.Modified, last.Digest, last.Simhash
}
