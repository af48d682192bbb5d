package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/storage"
)

// A crawl that keeps running fetches new URLs, and it fetches pages again that may have changed.
// Both have their share of the requests and take what the other leaves. Recrawls may have a budget
// for each day.
//
// Hosts with pages to recrawl are in heaps of their own. A host may be in one of these and in one
// for its other work at the same time, so recrawls that wait for the budget never hold up new URLs.

// Recrawler plans recrawls; see recrawl.Plan. Answered plans a page after a response, Gone one that
// is not there any more, and Unanswered one that cannot be fetched now.
type Recrawler interface {
	Answered(*recrawl.Visit, *recrawl.Site) recrawl.Memory
	Gone(*recrawl.Visit, *recrawl.Site) recrawl.Memory
	Unanswered(*recrawl.Visit, *recrawl.Site) recrawl.History
	Adjust(spare, late float64) // how much of the budget was unused, and how late the page was, when a recrawl begins
	Budget() float64            // recrawls a day; 0: no limit; see Frontier.BudgetChanged
}

// recrawlAccount accounts for recrawls and other requests.
type recrawlAccount struct {
	nextAt instant // when the budget allows the next recrawl
	lastAt instant // when the last one began
	credit float64 // of recrawls; above 0 it is their turn
	gap    instant // the mean time between recrawls that the budget allows; 0: there is no limit
}

// recrawlPlan plans the pages to recrawl, and says when one may be.
type recrawlPlan struct {
	*base
	account recrawlAccount
}

// maxCredit is how much of its share a kind of request keeps while it has nothing to do, and how
// much it still has to give back for what it took while the other had nothing to do.
const maxCredit = 1

// budgetWindow is how much unused budget may be used later.
const budgetWindow = instant(time.Hour)

// longestGap is that of a budget which allows nothing. It is 18 years, and small enough to be added up.
const longestGap = never / 8

// gapOf returns the mean time between recrawls that a budget a day allows; 0: there is no limit.
func gapOf(budget float64) instant {
	if budget <= 0 {
		return 0
	}
	return instant(min(float64(24*time.Hour)/budget, float64(longestGap)))
}

// newRecrawlAccount returns the share of a crawl with a budget. One that allows nothing at first has saved nothing.
func newRecrawlAccount(o *Options) (s recrawlAccount) {
	if o.Recrawl != nil {
		s.gap = gapOf(o.Recrawl.Budget())
	}
	if s.gap == longestGap {
		s.nextAt = s.gap
	}
	return s
}

// window is how far back unused budget counts.
func (s *recrawlAccount) window() instant { return max(budgetWindow, 4*s.gap) }

// BudgetChanged takes note that Options.Recrawl has another budget. As many recrawls remain unused as were
// before, or have to be made up for.
func (f *Frontier) BudgetChanged(at time.Time) {
	s, now, gap := &f.recrawls.account, f.instant(at), gapOf(f.o.Recrawl.Budget())
	unused := 0.0
	if s.gap > 0 {
		unused = float64(min(now-s.nextAt, s.window())) / float64(s.gap)
	}
	s.gap = gap
	s.nextAt = now - instant(min(unused*float64(gap), float64(s.window())))
}

// allowed reports whether the budget allows a recrawl now.
func (rc *recrawlPlan) allowed(now instant) bool {
	return rc.o.Recrawl != nil && rc.account.nextAt <= now
}

// first reports whether it is the turn of recrawls.
func (rc *recrawlPlan) first() bool { return rc.account.credit > 0 }

// count counts a recrawl of a page that was fetched at one instant and due at another.
func (rc *recrawlPlan) count(fetched, due, now instant) {
	s := &rc.account
	s.credit = max(s.credit-(1-rc.o.RecrawlShare), -maxCredit)
	gap, window := s.gap, s.window()
	if gap == 0 {
		return
	}
	s.nextAt = max(s.nextAt, now-window)
	waited := max(1-float64(now-s.nextAt)/float64(gap), 0) // 0: one more could have begun before
	late := min(max(float64(now-due), 0)/max(float64(due-fetched), 1), 1)
	rc.o.Recrawl.Adjust(float64(min(now-s.lastAt, window))/float64(gap)-1, waited*late)
	s.nextAt, s.lastAt = s.nextAt+gap, now
}

// countNew counts a request for a URL that was not fetched before.
func (rc *recrawlPlan) countNew() {
	rc.account.credit = min(rc.account.credit+rc.o.RecrawlShare, maxCredit)
}

// refund gives back the budget of a recrawl that was not sent.
func (rc *recrawlPlan) refund() { rc.account.nextAt -= rc.account.gap }

// putBack returns the URL of a lease without a result to its queue.
func (rc *recrawlPlan) putBack(h *host, q *originQueue, out *outstanding) {
	switch {
	case out.leftOut: // it has its outcome
		q.Done(out.lease.Head.Ordinal)
	case out.urlKind != queue.New || out.lease.Head.Ordinal < q.ReadTo(): // else it was adopted, and is loaded
		q.Return(out.lease.Head, out.urlKind)
	}
	h.active.busy.Remove(out.lease.Head.Ordinal)
	if out.urlKind == queue.Recrawl && out.lease.Kind == Page {
		rc.refund()
	}
}

// activateForRecrawls makes hosts active for their recrawls, only as many as the budget has use for
// soon, because others can use the room.
func (s *scheduler) activateForRecrawls(now instant) {
	if s.o.Recrawl == nil || s.recrawls.account.nextAt-lead > now {
		return
	}
	enough := maxActivating
	if gap := s.recrawls.account.gap; gap > 0 {
		enough = int(min(1+2*lead/gap, maxActivating))
	}
	for s.memory.canActivate() {
		h := s.lanes.dormantRecrawls.top()
		if h == nil || h.recrawlAt > now || s.memory.recrawlersSoon(s.recrawls.wake(h), enough) >= enough {
			return
		}
		s.activate(h)
	}
}

// wake is when a host that has only pages to recrawl becomes active, if there is use for it.
func (rc *recrawlPlan) wake(h *host) instant { return max(h.recrawlAt, rc.account.nextAt-lead) }

// recrawlersSoon counts the active hosts that may be recrawled soon after an instant; it stops at
// enough. It looks only at the top of the heaps, so the count may be too low, but 0 is exact.
func (m *inMemory) recrawlersSoon(at instant, enough int) int {
	n := m.activating
	for l := range lanes {
		for _, h := range m.lanes.activeRecrawls[l][:min(len(m.lanes.activeRecrawls[l]), 4*enough)] {
			if n >= enough || !m.lanes.open(l) {
				break
			}
			if h.recrawlAt <= at+lead {
				n++
			}
		}
	}
	return n
}

// nextRecrawlWake is the earliest instant at which a recrawl may begin; never: there is none.
func (m *inMemory) nextRecrawlWake(isOpen func(lane) bool) instant {
	at := never
	if m.o.Recrawl == nil {
		return at
	}
	for l := range lanes {
		if h := m.lanes.activeRecrawls[l].top(); h != nil && isOpen(l) {
			at = min(at, max(h.recrawlAt, m.recrawls.account.nextAt))
		}
	}
	if h := m.lanes.dormantRecrawls.top(); h != nil && m.canActivate() && m.recrawlersSoon(m.recrawls.wake(h), 1) == 0 {
		at = min(at, m.recrawls.wake(h))
	}
	return at
}

// readRecrawlsAt is when the pages to recrawl of an active host should be loaded.
func (m *inMemory) readRecrawlsAt(h *host) instant {
	a := h.active
	if m.o.Recrawl == nil || h.backlog.Recrawls == 0 || a.loading {
		return never
	}
	known := len(a.busy)
	for i := range a.queues {
		known += a.queues[i].Len(queue.Recrawl)
	}
	return m.nextReadAt(a, h.backlog.NextRecrawl, a.recrawlsRead, 0, int(h.backlog.Recrawls) > known)
}

// recrawlAt is when a page of an active host may be recrawled as far as the host is concerned;
// politeness allows it from polite on. never: there is none.
func (m *inMemory) recrawlAt(h *host, polite instant) instant {
	a := h.active
	if m.o.Recrawl == nil || m.budgets.hasCompleted(h) {
		return never
	}
	at, low := m.readRecrawlsAt(h), false
	for i := range a.queues {
		q := &a.queues[i]
		if !q.isBlocked() && q.Len(queue.Recrawl) > 0 {
			at = min(at, q.heldUntil)
		}
		low = low || q.LowRecrawls(m.o.Heads)
	}
	if low && a.loadAfter == always {
		m.requestLoad(h)
	}
	if at == never {
		return never
	}
	return max(at, polite)
}

// leaseRecrawl leases the first page to recrawl of a queue that may be fetched; nil if there is
// none.
func (t *turn) leaseRecrawl(q *originQueue) *outstanding {
	for q.Len(queue.Recrawl) > 0 {
		head := q.TakeRecrawl()
		out := t.leasePage(q, &head, true)
		switch {
		case out == nil && (q.matching || q.heldUntil > t.at):
			t.host.active.busy.Remove(head.Ordinal)
			q.Return(head, queue.Recrawl)
			return nil
		case out == nil:
			continue
		case out.lease.Kind == Page:
			t.s.recrawls.count(t.s.instant(head.Last.At), t.s.instant(head.Last.Due), t.at)
		}
		out.urlKind = queue.Recrawl
		return out
	}
	return nil
}

// visit is what the plan needs to know of a request for a page.
func (rc *recrawlPlan) visit(h *host, head *storage.Head, at time.Time) recrawl.Visit {
	v := recrawl.Visit{
		Page: recrawl.Page{
			Host: h.active.name, RequestURI: head.RequestURI, Priority: head.Priority, Depth: head.Depth,
			Claimed: head.Frequency.Every(),
		},
		Memory: recrawl.Memory{At: head.Last.At, Due: head.Last.Due, History: head.Last.History},
		At:     at, Requisite: head.IsRequisite(),
	}
	if head.Last.State == storage.Failed {
		v.TimesGone = int(head.Last.Attempts)
	}
	if all := rc.scope.Seeds(); all.SetsRecrawls() {
		if seed := all.Of(h.active.queues[head.Origin].origin.URL(head.RequestURI), RefOf(&head.Entry)); seed != nil {
			v.Every = seed.Recrawl
		}
	}
	return v
}

// plan sets when a page is fetched again. Without a plan the page keeps its history.
func (rc *recrawlPlan) plan(h *host, head *storage.Head, o *storage.Outcome, r *PageReport) {
	if rc.o.Recrawl == nil || o.State == storage.Retrying || o.Reason == storage.ReasonCrash ||
		o.State != storage.Fetched && o.State != storage.Redirected && !wasThere(head) {
		rc.keepHistory(h, head, o)
		return
	}
	v := rc.visit(h, head, o.At)
	v.Bytes = r.Bytes
	var m recrawl.Memory
	if o.State == storage.Fetched || o.State == storage.Redirected {
		v.Change, v.Modified, v.Expires, v.Fresh = r.Change, r.Modified, r.Expires, r.Fresh
		m = rc.o.Recrawl.Answered(&v, &h.active.site)
	} else {
		m = rc.planGone(h, head, o, &v)
	}
	o.Due, o.History = m.Due, m.History
}

// wasThere reports whether there was a response with the page before.
func wasThere(head *storage.Head) bool {
	switch head.Last.State {
	case storage.Fetched, storage.Redirected, storage.Failed:
		return true
	}
	return head.Last.History != recrawl.History{}
}

// planGone plans another visit of a page that is not there any more, or none.
func (rc *recrawlPlan) planGone(h *host, head *storage.Head, o *storage.Outcome, v *recrawl.Visit) recrawl.Memory {
	const gone = 410
	v.GoneForAll = o.Status == gone && v.TimesGone > 0
	o.Attempts = uint8(min(v.TimesGone+1, 255))
	keepContent(o, &head.Last)
	return rc.o.Recrawl.Gone(v, &h.active.site)
}

// keepHistory takes a page that is not fetched now off the plan, and keeps its history.
func (rc *recrawlPlan) keepHistory(h *host, head *storage.Head, o *storage.Outcome) {
	o.History = head.Last.History
	if o.State == storage.Retrying {
		keepContent(o, &head.Last)
	}
	if rc.o.Recrawl != nil && wasThere(head) {
		v := rc.visit(h, head, o.At)
		o.History = rc.o.Recrawl.Unanswered(&v, &h.active.site)
	}
}

// keepContent keeps what an earlier visit said about the content, for a later visit that compares
// it.
func keepContent(o, last *storage.Outcome) {
	o.ETag, o.Modified, o.Digest, o.Simhash, o.Stamp = last.ETag, last.Modified, last.Digest, last.Simhash, last.Stamp
}
