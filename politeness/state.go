package politeness

import "time"

// State is what has to survive the process for a host to be treated as before. Times are wall
// times. The zero value is a host that was never asked.
type State struct {
	LastEnd      time.Time     // end of the last request; the delay in force counts from here
	Holds        []Hold        // at most one each of what is owed, of back-off and of a pause
	Asked        Asked         // as last set
	LastResponse time.Duration // duration of the last request
	TroubleSince time.Time     // end of the first request that failed; zero: all is well
	Cause        uint16        // why the last request failed, as Result.Cause; 0: not known
	Backoff      uint8         // back-off level, 0 to 12
	Failures     uint8         // in a row, 0 to 3
	Calm         uint8         // successes since the last failure or the last level that healed
	SetDelay     time.Duration // by the operator; 0: none
}

// State returns what to store. Now converts instants to the wall clock as it stands: if the clock was
// set while the process ran, waits keep their length.
func (h *Host) State(now time.Time) State {
	s := State{
		LastEnd:      wall(h.pace.end, now),
		Asked:        h.Asked(),
		LastResponse: h.lastResponse,
		TroubleSince: wall(h.trouble.since, now),
		Cause:        h.trouble.cause,
		Backoff:      h.trouble.level,
		Failures:     h.trouble.failures,
		Calm:         h.trouble.calm,
		SetDelay:     h.setDelay,
	}
	for _, x := range h.holds {
		if x.Until.After(now) {
			x.Until = wall(x.Until, now)
			s.Holds = append(s.Holds, x)
		}
	}
	return s
}

// wall is where an instant lies on the wall clock that shows now. The zero time stays zero.
func wall(t, now time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return now.Round(0).Add(t.Sub(now)).UTC()
}
