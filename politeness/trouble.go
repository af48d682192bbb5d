package politeness

import (
	"time"
)

// The back-off table. docs/POLITENESS.md shows it to operators.
const (
	failuresToBackoff = 3                      // failures in a row that turn slowing down into backing off
	slowFloor         = 500 * time.Millisecond // what is doubled where the delay is shorter
	slowCeiling       = backoffFirst           // doubling goes no further: then a back-off is due
	backoffFirst      = time.Minute            // the first back-off
	backoffLast       = 24 * time.Hour         // the longest one, jitter apart
	maxLevel          = 12                     // the level that reaches backoffLast
	calmToHeal        = 8                      // successes that take back one level
)

// trouble counts what went wrong with a host, and what went well since.
type trouble struct {
	level    uint8     // the back-off the next incident doubles; 0: none
	failures uint8     // in a row, up to failuresToBackoff
	calm     uint8     // successes since the last failure or the last level that healed
	since    time.Time // end of the first request that failed; zero while all is well
	cause    uint16    // why the last one failed
}

// slow doubles a delay for every failure in a row, and once more while a back-off heals.
func (t *trouble) slow(delay time.Duration) time.Duration {
	doublings := t.failures
	if t.level > 0 {
		doublings++
	}
	if doublings == 0 || delay >= slowCeiling {
		return delay
	}
	return min(max(delay, slowFloor)<<doublings, slowCeiling)
}

// backoff is the wait of a level: one minute, doubled with each, one day at most, and up to a
// quarter of it more by jitter.
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

// judge lets one result escalate or heal. Results that come in while the host is held for trouble
// were on their way before: they belong to the incident that is being waited out.
func (h *Host) judge(end time.Time, r Result) {
	if h.holds.trouble(end) {
		return
	}
	switch r.Signal {
	case SignalOK:
		h.trouble.heal()
	case SignalThrottled:
		if r.RetryAfter <= 0 {
			h.trouble.failures = failuresToBackoff - 1 // no time was given: back off at once
		}
		h.fail(end, r)
	case SignalServerError, SignalUnreachable:
		h.fail(end, r)
	}
}

// fail counts a failure, and backs off where there were enough of them. Requests that were under way
// together and fail together are one failure.
func (h *Host) fail(end time.Time, r Result) {
	t := &h.trouble
	started := end.Add(-max(r.Duration, 0))
	together := t.failures > 0 && started.Before(h.pace.end)
	if r.Signal != SignalThrottled && together {
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
		h.holds.extend(end, Hold{Length: backoff(t.level, r.Jitter), Reason: ReasonBackoff})
	}
}

// heal takes note of a success: failures in a row are over, a back-off level is taken back after
// several.
func (t *trouble) heal() {
	t.failures = 0
	if t.level > 0 {
		t.calm++
		if t.calm >= calmToHeal {
			t.level--
			t.calm = 0
		}
	}
	if t.level == 0 {
		*t = trouble{}
	}
}
