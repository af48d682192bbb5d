package frontier

import (
	"time"
)

// A request to a slow host keeps a worker that other hosts could use. So each host is in one of
// three lanes, by how long its requests have taken. Quick hosts come first, and one worker is kept
// for each of them, up to half of all workers. The others share the rest. Where quick hosts alone
// could keep all workers busy, the others get an eighth of the workers' time; a sixteenth if more than
// an eighth of what they took went by without a response.
//
// Nobody can tell whether the next request will be slow. So a request that has waited long without
// progress is ended when other hosts wait: see Stalled.

// lane says how quick a host is.
type lane uint8

const (
	quick   lane = iota // as most hosts are
	untried             // it has answered few requests, or none
	slow                // its requests take long, or some of the last ones had no response
	lanes
)

const (
	minSlow        = time.Second // requests that take no longer are not slow
	slowFactor     = 4           // slow requests take this many times the mean,
	maxSlow        = 5 * time.Second
	enoughAnswers  = 4   // responses after which a host is not untried any more
	meanWeight     = 64  // requests in the moving average of the latency
	lostTimeWeight = 128 // requests in the averages of the lost time
	quickToRecover = 8   // quick responses in a row after which a host that did not answer is quick again
	minStall       = 2 * time.Second
	patientStall   = 5 * time.Second // in place of minStall, while most requests to such hosts are answered
	stallFactor    = 4               // a request that lasts this many times the mean of its host is far beyond it
	// each request in a row without a response doubles the stall time, up to this many times
	maxUnanswered = 4
	// one request in this many to hosts that are not quick goes to a slow one in any case
	slowTurn = 8
	// one worker in this many is for hosts that are not quick, whatever else there is to do
	slowPart     = 8
	lostTimePart = 16 // the same while more than an eighth of its time goes by without a response
)

// traffic counts requests by lane.
type traffic struct {
	inFlight    [lanes]int // requests, and hosts with a slot for one
	hosts       [lanes]int // active ones
	meanLatency float64    // milliseconds, a moving average over requests with a response
	credit      instant    // minus the worker time that other hosts got before waiting quick hosts; 0: it is their turn
	creditedAt  instant    // last update of credit
	turn        int        // requests to hosts that are not quick, so far
	lost        lostTime
}

// lostTime says how much of the time of requests to hosts that are not quick went by without a response:
// two moving averages, in milliseconds a request.
type lostTime struct{ unanswered, all float64 }

// newLostTime is the lost time of hosts that nobody has tried: none of them answers.
func newLostTime() lostTime { return lostTime{unanswered: 1000, all: 1000} }

// add counts a request.
func (w *lostTime) add(took time.Duration, answered bool) {
	ms := float64(took.Milliseconds())
	w.all += (ms - w.all) / lostTimeWeight
	if answered {
		ms = 0
	}
	w.unanswered += (ms - w.unanswered) / lostTimeWeight
}

// isHigh reports whether it is more than an eighth.
func (w *lostTime) isHigh() bool { return w.unanswered > w.all/8 }

// partOfSlow says how much of the workers' time is for hosts that are not quick: one part in so many.
func (t *traffic) partOfSlow() int {
	if t.lost.isHigh() {
		return lostTimePart
	}
	return slowPart
}

// notQuick is the number of requests in flight to hosts that are not quick.
func (t *traffic) notQuick() int { return t.inFlight[untried] + t.inFlight[slow] }

// laneQueues are the heaps of the hosts that wait, by lane, and the accounts of the lanes.
type laneQueues struct {
	*base
	recrawls        *recrawlPlan
	dormant         [lanes]hostHeap
	woken           hostHeap
	ready           [lanes]hostHeap
	dormantRecrawls recrawlHeap
	activeRecrawls  [lanes]recrawlHeap
	traffic         traffic
}

func newLaneQueues(b *base, hosts *register, r *recrawlPlan) *laneQueues {
	q := &laneQueues{base: b, recrawls: r, woken: newHeap(hosts), traffic: traffic{lost: newLostTime()}}
	for l := range lanes {
		q.dormant[l], q.ready[l] = newHeap(hosts), newHeap(hosts)
	}
	return q
}

// of is the lane that a host belongs to now.
func (q *laneQueues) of(h *host) lane {
	switch {
	case q.o.Workers == 0:
		return quick
	case h.quickNeeded > 0 || time.Duration(h.latency)*time.Millisecond > q.slowThreshold():
		return slow
	case h.answers < enoughAnswers:
		return untried
	}
	return quick
}

// slowThreshold is the mean latency from which on a host is slow.
func (q *laneQueues) slowThreshold() time.Duration {
	return min(max(time.Duration(slowFactor*q.traffic.meanLatency*float64(time.Millisecond)), minSlow), maxSlow)
}

// set moves a host that is in no heap to its lane.
func (q *laneQueues) set(h *host) {
	to := q.of(h)
	if a := h.active; a != nil && a.loaded {
		q.count(h, to)
		if a.hasSlot {
			q.traffic.inFlight[h.lane]--
			q.traffic.inFlight[to]++
		}
	}
	h.lane = to
}

// count counts an active host in a lane; lanes: it is active no more.
func (q *laneQueues) count(h *host, to lane) {
	a := h.active
	if a.counted {
		q.traffic.hosts[h.lane]--
	}
	if a.counted = to < lanes; a.counted {
		q.traffic.hosts[to]++
	}
}

// open reports whether the lane allows another request to one of its hosts.
func (q *laneQueues) open(l lane) bool {
	if l == quick {
		return true
	}
	t := &q.traffic
	most := max(q.o.Workers-min(q.o.Workers/2, t.hosts[quick]), 1)
	if t.notQuick() >= most {
		return false
	}
	return l == untried || t.hosts[untried] == 0 || t.inFlight[slow] < max(most/2, 1)
}

// order is the order of the lanes for the next request.
func (q *laneQueues) order(now instant) [lanes]lane {
	t := &q.traffic
	t.credit = min(t.credit+(now-t.creditedAt)*instant(q.o.Workers)/instant(t.partOfSlow()), 0)
	t.creditedAt = now
	first, second := untried, slow
	if t.turn%slowTurn == slowTurn-1 {
		first, second = slow, untried
	}
	if t.credit == 0 && t.notQuick() < max(q.o.Workers/t.partOfSlow(), 1) {
		return [lanes]lane{first, second, quick}
	}
	return [lanes]lane{quick, first, second}
}

// dueHost is the first due host of the first open lane that has one; nil: there is none.
func (q *laneQueues) dueHost(now instant) *host {
	for _, l := range q.order(now) {
		if h, _ := q.due(l, now); h != nil {
			return h
		}
	}
	return nil
}

// longestDue is the host of all open lanes that has been due longest; nil: there is none.
func (q *laneQueues) longestDue(now instant) (first *host) {
	since := never
	for _, l := range q.order(now) {
		if h, at := q.due(l, now); h != nil && at < since {
			first, since = h, at
		}
	}
	return first
}

// due is the due host of a lane whose turn it is, and since when it is due; nil: there is
// none, or the lane is not open.
func (q *laneQueues) due(l lane, now instant) (h *host, since instant) {
	if !q.open(l) {
		return nil, never
	}
	return q.first(l, now)
}

// first is dueInLane of a lane that is open.
func (q *laneQueues) first(l lane, now instant) (h *host, since instant) {
	since = q.ready[l].nextAt()
	if recrawl := q.activeRecrawls[l].top(); recrawl != nil && recrawl.recrawlAt <= now && q.recrawls.allowed(now) &&
		(since > now || q.recrawls.first()) {
		return recrawl, recrawl.recrawlAt
	}
	if since <= now {
		return q.ready[l].top(), since
	}
	return nil, never
}

// reserveSlot counts a host in its lane for a request that it makes as soon as its limits allow.
func (q *laneQueues) reserveSlot(h *host) {
	if !h.active.hasSlot {
		h.active.hasSlot = true
		q.traffic.inFlight[h.lane]++
	}
}

// releaseSlot takes back what reserveSlot counted.
func (q *laneQueues) releaseSlot(h *host) {
	if h.active.hasSlot {
		h.active.hasSlot = false
		q.traffic.inFlight[h.lane]--
	}
}

// begin counts a request that begins.
func (q *laneQueues) begin(out *outstanding, now instant) {
	h := out.host
	if out.remote {
		q.releaseSlot(h)
		return
	}
	out.lane = h.lane
	out.beforeQuick = h.lane != quick && q.ready[quick].due(now, 1) > 0
	if !h.active.hasSlot {
		q.traffic.inFlight[h.lane]++
	}
	h.active.hasSlot = false
	if h.lane != quick {
		q.traffic.turn++
	}
}

// end counts a request that ended.
func (q *laneQueues) end(out *outstanding, end instant) {
	if out.remote {
		return
	}
	q.traffic.inFlight[out.lane]--
	if out.beforeQuick {
		q.traffic.credit -= max(end-q.instant(out.lease.At), 0)
	}
}

// waitingInLine counts the waiters of the limits that requests to hosts that are not quick keep busy.
func (ls *leases) waitingInLine() map[*limit]int {
	var n map[*limit]int
	if ls.lanes.traffic.notQuick() == 0 {
		return n
	}
	for _, out := range ls.out {
		for _, l := range out.limits {
			if out.lane != quick && l != nil && l.queued() > 0 {
				if n == nil {
					n = make(map[*limit]int)
				}
				n[l] = l.queued()
			}
		}
	}
	return n
}

// waitingFor counts the hosts that are due and have no worker, by lane, up to the number of workers.
func (q *laneQueues) waitingFor(now instant) (n [lanes]int) {
	if q.o.Workers == 0 {
		return n // unknown
	}
	full := q.traffic.inFlight[quick]+q.traffic.notQuick() >= q.o.Workers
	for l := range lanes {
		if full || !q.open(l) {
			n[l] = q.ready[l].due(now, q.o.Workers)
		}
	}
	return n
}
