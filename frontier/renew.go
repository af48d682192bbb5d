package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/storage"
)

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

// pickRecrawl chooses the queue with the page to recrawl that is overdue longest.
func (a *active) pickRecrawl(now instant) *originQueue {
	var best *originQueue
	var longest time.Time
	for i := range a.queues {
		q := &a.queues[i]
		due, ok := q.RecrawlDue()
		if !ok || q.isBlocked() || q.heldUntil > now {
			continue
		}
		if best == nil || due.Before(longest) {
			best, longest = q, due
		}
	}
	return best
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
