package frontier

import (
	"cmp"
	"slices"
	"time"

	"github.com/amble-crawler/amble/politeness"
)

// recordLatency updates what is known of the latency of a host.
func (q *laneQueues) recordLatency(h *host, r *Report) {
	if r.Signal == politeness.SignalAborted {
		return
	}
	isAnswered := r.Signal != politeness.SignalUnreachable
	if h.lane != quick {
		q.traffic.lost.add(r.Duration, isAnswered)
	}
	took := min(max(r.Duration.Milliseconds(), 1), 1<<16-1)
	if h.latency == 0 {
		h.latency = uint16(took)
	}
	h.latency = uint16((3*int64(h.latency) + took + 3) / 4)
	switch {
	case isAnswered:
		q.traffic.meanLatency += (float64(took) - q.traffic.meanLatency) / meanWeight
		h.unanswered = 0
		h.answers = min(h.answers+1, enoughAnswers)
		if h.quickNeeded > 0 && r.Duration <= q.slowThreshold() {
			h.quickNeeded--
		}
	case r.Duration >= minSlow:
		h.quickNeeded = quickToRecover
		h.unanswered = min(h.unanswered+1, maxUnanswered)
	}
}

// restoreLatency derives the latency of a host from what an earlier process stored.
func (h *host) restoreLatency(s *politeness.State) {
	if s.LastEnd.IsZero() || h.latency > 0 {
		return
	}
	h.answers = uint8(min(h.fetched, enoughAnswers))
	h.latency = uint16(min(max(s.LastResponse.Milliseconds(), 1), 1<<16-1))
	if s.Failures > 0 || s.Backoff > 0 {
		h.quickNeeded = quickToRecover
	}
}

// stallTime is how long a request to a host may make no progress while others wait: what is far beyond
// its own history, and longer after requests that brought nothing. A host may be slower than its
// robots.txt was, or than hosts are that nobody has tried; only tarpits are a reason not to wait for it.
func (q *laneQueues) stallTime(h *host) instant {
	least := patientStall
	if q.traffic.lost.isHigh() {
		least = minStall
	}
	return instant(max(least, stallFactor*time.Duration(h.latency)*time.Millisecond, minStall<<h.unanswered))
}

// Stalled returns the leases of requests to end because hosts that are due have to wait: requests
// that have been in flight for longer than the stall time of their hosts, and that have made next
// to no progress for longer than that, as isSlow reports. These are requests to hosts that are not
// quick, the oldest first, as many as hosts wait for a worker or for one of their limits. Requests
// to quick hosts are among them only if more than half of the workers are stalled.
func (f *Frontier) Stalled(
	now time.Time, isSlow func(lease uint64, lasts, stallTime time.Duration) bool,
) (broken []uint64) {
	f.readClock(now)
	t := f.instant(now)
	waiting, lines := f.lanes.waitingFor(t), f.leases.waitingInLine()
	if waiting == [lanes]int{} && len(lines) == 0 {
		return nil
	}
	var stalled [lanes][]*outstanding
	all := 0
	for id, out := range f.leases.out {
		if out.remote || out.requestEnded || out.lease.Kind == Match || out.lease.Kind == Resolve {
			continue
		}
		lasts, stallTime := t-f.instant(out.lease.At), f.lanes.stallTime(out.host)
		if lasts > stallTime && isSlow(id, time.Duration(lasts), time.Duration(stallTime)) {
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
	blocksOthers := func(out *outstanding) bool {
		i := slices.IndexFunc(out.limits[:], func(l *limit) bool { return lines[l] > 0 })
		if i >= 0 {
			lines[out.limits[i]]--
		}
		return i >= 0
	}
	any := func(*outstanding) bool { return true }
	left := waiting[quick] + waiting[untried]
	for _, l := range [...]lane{slow, untried} {
		breakOff(l, len(stalled[l]), blocksOthers)
		left -= breakOff(l, left, any)
	}
	breakOff(quick, min(left, all-f.o.Workers/2-len(broken)), any)
	breakOff(slow, waiting[slow], any)
	return broken
}
