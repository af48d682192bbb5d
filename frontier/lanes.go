package frontier

import (
	"cmp"
	"slices"
	"time"

	"github.com/amble-crawler/amble/politeness"
)

// A request to a host that is slow, or never answers, keeps a worker that other hosts have use for.
// So hosts are in one of three lanes, by what their requests have cost so far in time of workers.
// Quick hosts come first, and each of them has a worker kept for it, up to half of all; the others
// share the rest. Where quick hosts alone could keep all workers busy, the others get an eighth of
// the time.
//
// Nobody knows of a host that it will be slow the next time. So a request that has waited for long
// and brought nothing makes way where others wait: Stalled.

// lane says how quick a host is.
type lane uint8

const (
	quick   lane = iota // as most hosts are
	untried             // nobody knows: it has answered few requests, or none
	slow                // its requests take long, or some of the last ones brought no answer
	lanes
)

const (
	slowLeast    = time.Second // requests that take no longer are not slow
	slowTimes    = 4           // slow ones take so many times as long as requests do on average,
	slowMost     = 5 * time.Second
	probation    = 4  // answers after which a host is not untried any more
	usualWeight  = 64 // requests that this average is about
	trustAgain   = 8  // quick answers in a row after which a host that did not answer is quick again
	patience     = 2 * time.Second
	mostSilences = 4 // with each request in a row without an answer a host is waited for twice as long, so often
	slowTurn     = 8 // one in so many requests to hosts that are not quick is to a slow one in any case
	leastShare   = 8 // one worker in so many is for hosts that are not quick, whatever else there is to do
)

// traffic counts requests by lane.
type traffic struct {
	inFlight [lanes]int // requests, and hosts that keep a place for one
	hosts    [lanes]int // that are active
	usual    float64    // milliseconds that requests with an answer have taken lately
	credit   instant    // minus the time of workers that others have taken ahead of quick hosts; 0: it is their turn
	credited instant    // when it was reckoned
	turn     int        // requests so far to hosts that are not quick
}

// doubtful is how many requests to hosts that are not quick are under way.
func (t *traffic) doubtful() int { return t.inFlight[untried] + t.inFlight[slow] }

// laneOf is the lane that a host belongs to now.
func (f *Frontier) laneOf(h *host) lane {
	switch {
	case f.o.Workers == 0:
		return quick
	case h.doubt > 0 || time.Duration(h.cost)*time.Millisecond > f.slowFrom():
		return slow
	case h.answers < probation:
		return untried
	}
	return quick
}

// slowFrom is how long the requests of a host may take on average for it to be quick.
func (f *Frontier) slowFrom() time.Duration {
	return min(max(time.Duration(slowTimes*f.traffic.usual*float64(time.Millisecond)), slowLeast), slowMost)
}

// setLane puts a host that is in no heap into its lane.
func (f *Frontier) setLane(h *host) {
	to := f.laneOf(h)
	if a := h.active; a != nil && a.polite != nil {
		f.countLane(h, to)
		if a.holdsPlace {
			f.traffic.inFlight[h.lane]--
			f.traffic.inFlight[to]++
		}
	}
	h.lane = to
}

// countLane counts an active host to a lane; lanes: it is active no more.
func (f *Frontier) countLane(h *host, to lane) {
	a := h.active
	if a.counted {
		f.traffic.hosts[h.lane]--
	}
	if a.counted = to < lanes; a.counted {
		f.traffic.hosts[to]++
	}
}

// open reports whether a request to a host of a lane may be given out, as far as the lane is
// concerned.
func (f *Frontier) laneOpen(l lane) bool {
	if l == quick {
		return true
	}
	t := &f.traffic
	most := max(f.o.Workers-min(f.o.Workers/2, t.hosts[quick]), 1)
	if t.doubtful() >= most {
		return false
	}
	return l == untried || t.hosts[untried] == 0 || t.inFlight[slow] < max(most/2, 1)
}

// laneOrder is the order of the lanes for the next request.
func (f *Frontier) laneOrder(now instant) [lanes]lane {
	t := &f.traffic
	t.credit = min(t.credit+(now-t.credited)*instant(f.o.Workers)/leastShare, 0)
	t.credited = now
	first, second := untried, slow
	if t.turn%slowTurn == slowTurn-1 {
		first, second = slow, untried
	}
	if t.credit == 0 && t.doubtful() < max(f.o.Workers/leastShare, 1) {
		return [lanes]lane{first, second, quick}
	}
	return [lanes]lane{quick, first, second}
}

// dueHost is the host whose turn it is, of the first lane that is open and has one; nil: there is
// none.
func (f *Frontier) dueHost(now instant) *host {
	for _, l := range f.laneOrder(now) {
		if h, _ := f.dueInLane(l, now); h != nil {
			return h
		}
	}
	return nil
}

// longestDue is the host that is due longest, of all lanes that are open; nil: there is none.
func (f *Frontier) longestDue(now instant) (first *host) {
	since := never
	for _, l := range f.laneOrder(now) {
		if h, key := f.dueInLane(l, now); h != nil && key < since {
			first, since = h, key
		}
	}
	return first
}

// dueInLane is the host of a lane whose turn it is, and since when; nil: there is none, or the lane is
// not open.
func (f *Frontier) dueInLane(l lane, now instant) (h *host, since instant) {
	if !f.laneOpen(l) {
		return nil, never
	}
	waits, renews := f.ready[l].top(), f.renewing[l].top()
	if waits != nil && waits.key > now {
		waits = nil
	}
	if renews != nil && (renews.renewKey > now || !f.renewable(now)) {
		renews = nil
	}
	if renews != nil && (waits == nil || f.renewsFirst()) {
		return renews, renews.renewKey
	}
	if waits != nil {
		return waits, waits.key
	}
	return nil, never
}

// takePlace counts a host to its lane for a request that it is about to make, when all its limits
// let it.
func (f *Frontier) takePlace(h *host) {
	if !h.active.holdsPlace {
		h.active.holdsPlace = true
		f.traffic.inFlight[h.lane]++
	}
}

// leavePlace takes that back.
func (f *Frontier) leavePlace(h *host) {
	if h.active.holdsPlace {
		h.active.holdsPlace = false
		f.traffic.inFlight[h.lane]--
	}
}

// beginInLane takes note of the begin of a request.
func (f *Frontier) beginInLane(out *outstanding, now instant) {
	h := out.host
	out.lane = h.lane
	out.ahead = h.lane != quick && f.ready[quick].due(now, 1) > 0
	if !h.active.holdsPlace {
		f.traffic.inFlight[h.lane]++
	}
	h.active.holdsPlace = false
	if h.lane != quick {
		f.traffic.turn++
	}
}

// endInLane takes note of the end of a request.
func (f *Frontier) endInLane(out *outstanding, end instant) {
	f.traffic.inFlight[out.lane]--
	if out.ahead {
		f.traffic.credit -= max(end-f.instant(out.lease.At), 0)
	}
}

// reckon takes note of what a request has cost.
func (f *Frontier) reckon(h *host, r *Report) {
	if r.Signal == politeness.SignalAborted {
		return
	}
	took := min(max(r.Duration.Milliseconds(), 1), 1<<16-1)
	if h.cost == 0 {
		h.cost = uint16(took)
	}
	h.cost = uint16((3*int64(h.cost) + took + 3) / 4)
	switch {
	case r.Signal != politeness.SignalUnreachable:
		f.traffic.usual += (float64(took) - f.traffic.usual) / usualWeight
		h.silences = 0
		h.answers = min(h.answers+1, probation)
		if h.doubt > 0 && r.Duration <= f.slowFrom() {
			h.doubt--
		}
	case r.Duration >= slowLeast:
		h.doubt = trustAgain
		h.silences = min(h.silences+1, mostSilences)
	}
}

// reckonRestored is what is known of the cost of a host's requests from an earlier process.
func (h *host) reckonRestored(s *politeness.State) {
	if s.LastEnd.IsZero() || h.cost > 0 {
		return
	}
	h.answers = uint8(min(h.fetched, probation))
	h.cost = uint16(min(max(s.LastResponse.Milliseconds(), 1), 1<<16-1))
	if s.Failures > 0 || s.Backoff > 0 {
		h.doubt = trustAgain
	}
}

// patience is how long a host is waited for while others wait.
func (h *host) patience() instant {
	return instant(max(patience, 2*time.Duration(h.cost)*time.Millisecond) << h.silences)
}

// Stalled returns the leases of requests that should be broken off, because hosts whose turn has
// come wait: requests that have been under way for longer than their hosts are waited for then, and
// of which isSlow says that they have brought next to nothing for longer than that patience. They are
// those of hosts that are not quick, the oldest first, as many as hosts wait for a worker or for one
// of their limits. Those of quick hosts are among them only where more than half of the workers wait
// like that.
func (f *Frontier) Stalled(
	now time.Time, isSlow func(lease uint64, lasts, patience time.Duration) bool,
) (broken []uint64) {
	f.read(now)
	t := f.instant(now)
	waiting, lines := f.waitingFor(t), f.waitingInLine()
	if waiting == [lanes]int{} && len(lines) == 0 {
		return nil
	}
	var stalled [lanes][]*outstanding
	all := 0
	for id, out := range f.leases {
		if out.lease.Kind != Page && out.lease.Kind != Robots {
			continue
		}
		lasts, patience := t-f.instant(out.lease.At), out.host.patience()
		if lasts > patience && isSlow(id, time.Duration(lasts), time.Duration(patience)) {
			stalled[out.lane] = append(stalled[out.lane], out)
			all++
		}
	}
	for _, list := range stalled {
		slices.SortFunc(list, func(a, b *outstanding) int { return cmp.Compare(a.lease.ID, b.lease.ID) })
	}
	breakOff := func(from lane, most int, when func(*outstanding) bool) (n int) {
		stalled[from] = slices.DeleteFunc(stalled[from], func(out *outstanding) bool {
			if n >= most || !when(out) {
				return false
			}
			broken = append(broken, out.lease.ID)
			n++
			return true
		})
		return n
	}
	inTheWay := func(out *outstanding) bool {
		i := slices.IndexFunc(out.limits[:], func(l *limit) bool { return lines[l] > 0 })
		if i >= 0 {
			lines[out.limits[i]]--
		}
		return i >= 0
	}
	any := func(*outstanding) bool { return true }
	left := waiting[quick] + waiting[untried]
	for _, l := range [...]lane{slow, untried} {
		breakOff(l, len(stalled[l]), inTheWay)
		left -= breakOff(l, left, any)
	}
	breakOff(quick, min(left, all-f.o.Workers/2-len(broken)), any)
	breakOff(slow, waiting[slow], any)
	return broken
}

// waitingInLine counts the hosts that wait in the lines of limits which requests keep busy that are
// not those of quick hosts.
func (f *Frontier) waitingInLine() map[*limit]int {
	var n map[*limit]int
	if f.traffic.doubtful() == 0 {
		return n
	}
	for _, out := range f.leases {
		for _, l := range out.limits {
			if out.lane != quick && l != nil && l.waiting() > 0 {
				if n == nil {
					n = make(map[*limit]int)
				}
				n[l] = l.waiting()
			}
		}
	}
	return n
}

// waitingFor counts the hosts whose turn has come and that have no worker, by lane, up to the
// number of workers.
func (f *Frontier) waitingFor(now instant) (n [lanes]int) {
	if f.o.Workers == 0 {
		return n // nobody knows
	}
	full := f.traffic.inFlight[quick]+f.traffic.doubtful() >= f.o.Workers
	for l := range lanes {
		if full || !f.laneOpen(l) {
			n[l] = f.ready[l].due(now, f.o.Workers)
		}
	}
	return n
}
