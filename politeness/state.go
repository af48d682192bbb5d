package politeness

import "time"

// State is what the next process needs to know of a host. Times are wall times. The zero value
// belongs to a host without a request.
type State struct {
	LastEnd      time.Time     // end of the last request; the delay in force counts from here
	Holds        []Hold        // at most one of each kind: of the host, backoff, pause
	Demands      Demands       // the argument of the last SetDemands
	LastResponse time.Duration // duration of the last request
	FailingSince time.Time     // end of the first request that failed; zero: the host is not failing
	Cause        uint16        // why the last request failed, as Result.Cause; 0: not known
	Backoff      uint8         // backoff level, 0 to 12
	Failures     uint8         // in a row, 0 to 3
	Calm         uint8         // successes since the last failure or the last change of level
	SetDelay     time.Duration // by the operator; 0: none
	Policy       Policy        // RateLimit-Policy of the last response, in whole seconds; zero: none
}

// State returns what to store. Instants are converted to the wall clock that shows now: if the
// clock was set while the process ran, waits keep their length.
func (h *Host) State(now time.Time) State {
	s := State{
		LastEnd:      wall(h.pace.end, now),
		Demands:      h.Demands(),
		LastResponse: h.lastResponse,
		FailingSince: wall(h.health.since, now),
		Cause:        h.health.cause,
		Backoff:      h.health.level,
		Failures:     h.health.failures,
		Calm:         h.health.calm,
		SetDelay:     h.setDelay,
		Policy:       h.policy,
	}
	for _, x := range h.holds {
		if x.Until.After(now) {
			x.Until = wall(x.Until, now)
			s.Holds = append(s.Holds, x)
		}
	}
	return s
}

// wall returns an instant by the wall clock that shows now. The zero time stays zero.
func wall(t, now time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return now.Round(0).Add(t.Sub(now)).UTC()
}
