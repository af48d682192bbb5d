package politeness

import (
	"time"
)

// The backoff table. docs/POLITENESS.md shows it to operators.
const (
	failuresToBackoff  = 3                      // failures in a row that start a backoff
	slowFloor          = 500 * time.Millisecond // the least delay that is doubled
	slowCeiling        = backoffFirst           // the longest doubled delay; a backoff follows
	backoffFirst       = time.Minute            // the first backoff
	backoffLast        = 24 * time.Hour         // the longest backoff without jitter
	maxLevel           = 12                     // the level that reaches backoffLast
	successesToRecover = 8                      // successes that lower the level by one
)

// health counts the failures of a host, and the successes since.
type health struct {
	level    uint8     // the backoff that the next incident doubles; 0: none
	failures uint8     // in a row, up to failuresToBackoff
	calm     uint8     // successes since the last failure or the last change of level
	since    time.Time // end of the first request that failed; zero if the host is not failing
	cause    uint16    // why the last request failed
}

// slow doubles a delay for every failure in a row, and once more until the level is 0.
func (t *health) slow(delay time.Duration) time.Duration {
	doublings := t.failures
	if t.level > 0 {
		doublings++
	}
	if doublings == 0 || delay >= slowCeiling {
		return delay
	}
	return min(max(delay, slowFloor)<<doublings, slowCeiling)
}

// backoff returns the wait of a level: one minute, doubled with each level, one day at most, and up
// to a quarter more by jitter.
func backoff(level uint8, jitter float64) time.Duration {
	if level == 0 {
		return 0
	}
	if !(jitter >= 0) { // NaN as well
		jitter = 0
	}
	wait := min(backoffFirst<<(min(level, maxLevel)-1), backoffLast)
	return wait + time.Duration(min(jitter, 1)*float64(wait/4))
}

// judge applies one result to the health. It ignores results that arrive during a hold which the
// host caused: they belong to the incident that the host waits out.
func (h *Host) judge(end time.Time, r Result) {
	if h.holds.causedByHost(end) {
		return
	}
	switch r.Signal {
	case SignalOK:
		h.health.succeeded()
	case SignalThrottled:
		if max(r.RetryAfter, r.RateLimit.Hold) <= 0 {
			h.health.failures = failuresToBackoff - 1 // the host named no time: back off at once
		}
		h.fail(end, r)
	case SignalWalled:
		h.health.failures = failuresToBackoff - 1
		h.fail(end, r)
	case SignalServerError, SignalUnreachable:
		h.fail(end, r)
	}
}

// fail counts a failure, and starts a backoff after enough of them. Requests that were in flight
// together and fail together count as one failure.
func (h *Host) fail(end time.Time, r Result) {
	t := &h.health
	started := end.Add(-max(r.Duration, 0))
	together := t.failures > 0 && started.Before(h.pace.end)
	if r.Signal != SignalThrottled && r.Signal != SignalWalled && together {
		return
	}
	if t.since.IsZero() {
		t.since = end
	}
	t.cause = r.Cause
	t.calm = 0
	t.failures = min(t.failures+1, failuresToBackoff)
	if t.failures == failuresToBackoff {
		t.level = min(t.level+1, maxLevel)
		h.holds.extend(end, backoffHold(t.level, r))
	}
}

// backoffHold returns the hold of a backoff.
func backoffHold(level uint8, r Result) Hold {
	switch {
	case r.Signal != SignalWalled:
		return Hold{Length: backoff(level, r.Jitter), Reason: ReasonBackoff}
	case r.Parked:
		level = maxLevel
	}
	return Hold{Length: backoff(level, r.Jitter), Reason: ReasonWall, Header: clipped(r.Wall)}
}

// succeeded counts a success: it ends the failures in a row, and lowers the backoff level after
// several.
func (t *health) succeeded() {
	t.failures = 0
	if t.level > 0 {
		t.calm++
		if t.calm >= successesToRecover {
			t.level--
			t.calm = 0
		}
	}
	if t.level == 0 {
		*t = health{}
	}
}
