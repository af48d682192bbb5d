package frontier

import (
	"container/heap"
	"time"

	"github.com/amble-crawler/amble/internal/revisit"
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

// renewalHeap orders hosts by the instant at which a renewal may be made, the earliest first.
type recrawlHeap []*host

func (h recrawlHeap) Len() int { return len(h) }
func (h recrawlHeap) Less(i, j int) bool {
	return h[i].recrawlAt < h[j].recrawlAt || h[i].recrawlAt == h[j].recrawlAt && h[i].id < h[j].id
}
func (h recrawlHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].recrawlIndex, h[j].recrawlIndex = int32(i), int32(j)
}

// Push is heap.Push's.
func (h *recrawlHeap) Push(x any) {
	x.(*host).recrawlIndex = int32(len(*h))
	*h = append(*h, x.(*host))
}

// Pop is heap.Pop's.
func (h *recrawlHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}

func (h recrawlHeap) top() *host {
	if len(h) == 0 {
		return nil
	}
	return h[0]
}

// Where a host's renewals stand.
const (
	inNoHeap      uint8 = iota
	inDormantHeap       // the host is not active
	inActiveHeap        // the host is active
)

// renewals is the heap that a host is in.
func (f *Frontier) recrawlHeap(h *host) *recrawlHeap {
	if h.recrawlList == inDormantHeap {
		return &f.dormantRecrawls
	}
	return &f.activeRecrawls[h.recrawlLane]
}

// enterRenewals puts a host into one of the heaps.
func (f *Frontier) pushRecrawl(h *host, which uint8, key instant) {
	h.recrawlList, h.recrawlAt, h.recrawlLane = which, key, h.lane
	heap.Push(f.recrawlHeap(h), h)
}

// leaveRenewals takes a host out of the heap it is in, if it is in one.
func (f *Frontier) removeRecrawl(h *host) {
	if h.recrawlList != inNoHeap {
		heap.Remove(f.recrawlHeap(h), int(h.recrawlIndex))
		h.recrawlList = inNoHeap
	}
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
