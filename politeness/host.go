package politeness

import (
	"time"
)

// Host is the politeness of one host name, whatever its schemes and ports. It has one owner at a
// time: its methods may not be called concurrently.
type Host struct {
	options      *Options
	pace         pace
	holds        holds
	trouble      trouble
	asked        *asked // nil: its robots.txt asks for nothing
	lastResponse time.Duration
	setDelay     time.Duration // by the operator; 0: Options.Delay counts
}

// NewHost returns the politeness of a host as s left it; the zero State is that of a host never
// asked. The options are shared, not copied; [Host.SetOptions] puts others in their place. What remains of a wait in s is never more than its
// length, even if the clock was set back since.
func NewHost(o *Options, s State, now time.Time) *Host {
	h := &Host{
		options:      o,
		lastResponse: max(s.LastResponse, 0),
		setDelay:     max(s.SetDelay, 0),
		trouble: trouble{
			level:    min(s.Backoff, maxLevel),
			failures: min(s.Failures, failuresToBackoff),
			calm:     s.Calm,
			since:    s.TroubleSince,
			cause:    s.Cause,
		},
	}
	if !s.LastEnd.IsZero() {
		h.pace.end = now.Add(-max(now.Sub(s.LastEnd), 0))
	}
	for _, x := range s.Holds {
		if remaining := min(x.Until.Sub(now), x.Length); remaining > 0 {
			x.Until = now.Add(remaining)
			h.holds = append(h.holds, x)
		}
	}
	h.SetAsked(s.Asked)
	return h
}

// SetAsked sets what robots.txt asks for: of all the host's origins, see [Asked.Merge]. A delay is never clamped, and
// counts from the end of the last request at once.
func (h *Host) SetAsked(a Asked) {
	a = a.bounded()
	h.asked = nil
	if a.Delay > 0 || len(a.Rates)+len(a.Visits) > 0 {
		h.asked = &asked{Asked: a, hourly: make([]pace, len(a.Rates))}
	}
	h.charge()
}

// Asked is what [Host.SetAsked] was told.
func (h *Host) Asked() Asked {
	if h.asked == nil {
		return Asked{}
	}
	return h.asked.Asked
}

// charge puts the delays in force into the limiters, as of the end of the last request.
func (h *Host) charge() { h.endAt(h.pace.end) }

// endAt records the end of a request in the limiters.
func (h *Host) endAt(end time.Time) {
	d := h.delay()
	h.pace.ended(end, d.delay)
	if h.asked == nil {
		return
	}
	for i := range h.asked.hourly {
		h.asked.hourly[i].ended(h.pace.end, h.asked.Rates[i].Delay)
	}
}

// Ended takes note of a request that ended, robots.txt included.
func (h *Host) Ended(end time.Time, r Result) {
	h.lastResponse = max(r.Duration, 0)
	h.judge(end, r)
	h.holds.extend(end, Hold{Length: r.RetryAfter, Reason: ReasonRetryAfter, Header: clipped(r.Header)})
	h.endAt(end)
}

// Owe makes the host wait until d after now at least, for the reason given: [ReasonRestart] for what is owed after a
// crash to a host which a request may have reached whose end nobody wrote down, [ReasonRetryAfter] for what it asked for
// in an answer that was not committed, [ReasonStart] for a start that is spread out.
func (h *Host) Owe(now time.Time, d time.Duration, r Reason) {
	h.holds.extend(now, Hold{Length: d, Reason: r})
}

// Trim lets what the host is held for, pauses apart, end at an instant at the latest: where it is known better than from the wall clock
// how long the host has waited.
func (h *Host) Trim(at time.Time) {
	for i, x := range h.holds {
		if x.Reason.kind() != ReasonPause && x.Until.After(at) {
			h.holds[i].Until = at
		}
	}
}

// Pause makes the host wait until an instant, or where that is zero until [Host.Resume]. The last Pause counts.
func (h *Host) Pause(now, until time.Time) {
	h.Resume()
	length := Forever
	if !until.IsZero() {
		length = until.Sub(now)
	}
	h.holds.extend(now, Hold{Length: length, Reason: ReasonPause})
}

// Resume ends a Pause. Everything else that holds the host goes on to.
func (h *Host) Resume() { h.holds.drop(ReasonPause) }

// SetDelay makes d count in place of Options.Delay; 0: Options.Delay counts again. No delay that the host itself asks
// for becomes shorter.
func (h *Host) SetDelay(d time.Duration) {
	h.setDelay = max(d, 0)
	h.charge()
}

// SetOptions puts other limits in force. Like a delay of robots.txt, theirs counts from the end of the last request at once.
func (h *Host) SetOptions(o *Options) {
	h.options = o
	h.charge()
}

// Forget drops what was learned from answers: failures, back-off, and how long the last answer took. What is owed
// stays: the delay since the last request, Retry-After, debts; and so does what the operator and robots.txt ask for.
func (h *Host) Forget() {
	h.trouble, h.lastResponse = trouble{}, 0
	h.holds.drop(ReasonBackoff)
	h.charge()
}

// LastEnd is when the last request to the host ended; zero if none is known of.
func (h *Host) LastEnd() time.Time { return h.pace.end }

// Ready is the earliest instant at which the next request may start: the zero time where the host
// was never asked and nothing is owed to it. The wall clock shows now; that matters where robots.txt has hours.
func (h *Host) Ready(now time.Time) time.Time { w := h.wait(now); return w.until }

// Owed is [Host.Ready] as it would be if nobody had paused the host.
func (h *Host) Owed(now time.Time) time.Time { w := h.owed(now, ReasonPause); return w.until }

// Reason is the sign that decides [Host.Ready].
func (h *Host) Reason(now time.Time) Reason { w := h.wait(now); return w.reason }

// wait is what one sign asks for.
type wait struct {
	reason       Reason
	since, until time.Time
	line         Line
	length       time.Duration // of a hold
	header       string
}

// wait returns the sign that asks for the latest instant.
func (h *Host) wait(now time.Time) wait {
	if h.options.Paused {
		return wait{reason: ReasonPause, until: now.Add(Forever), length: Forever}
	}
	return h.owed(now, ReasonNone)
}

// owed is the wait without the holds of a kind. This is the one place where signs meet.
func (h *Host) owed(now time.Time, without Reason) wait {
	d := h.delay()
	w := wait{reason: d.reason, since: h.pace.end, until: h.pace.ready(), line: d.line}
	if h.pace.end.IsZero() {
		w.reason, w.line = ReasonNone, Line{}
	}
	if x := h.holds.last(without); x.Until.After(w.until) {
		w = wait{reason: x.Reason, since: x.Until.Add(-x.Length), until: x.Until, length: x.Length, header: x.Header}
	}
	if h.asked != nil && len(h.asked.Rates)+len(h.asked.Visits) > 0 {
		w = h.asked.fit(w, h.pace.end, now)
	}
	return w
}

// Delay is the delay in force at an instant: the least time from the end of a request to the start of the next.
// Retry-After, back-off and hours come on top of it, once.
func (h *Host) Delay(now time.Time) time.Duration { d := h.delayAt(now); return d.delay }

// sign is a delay and what asks for it.
type sign struct {
	delay  time.Duration
	reason Reason
	line   Line
}

// longer replaces a sign by one that asks for more.
func (s *sign) longer(delay time.Duration, reason Reason, line Line) {
	if delay > s.delay {
		*s = sign{delay, reason, line}
	}
}

// delay returns the delay that is in force at all hours.
func (h *Host) delay() sign {
	var s sign
	if h.setDelay > 0 {
		s.longer(h.setDelay, ReasonSetDelay, Line{})
	} else {
		s.longer(h.options.Delay, ReasonDelay, Line{})
	}
	if a := h.asked; a != nil {
		reason := ReasonCrawlDelay
		if a.Rate {
			reason = ReasonRequestRate
		}
		s.longer(a.Delay, reason, a.Line)
	}
	s.longer(h.adaptive(), ReasonAdaptive, Line{})
	s.longer(h.trouble.slow(s.delay), ReasonErrors, Line{})
	return s
}

// delayAt returns the delay that is in force at an instant.
func (h *Host) delayAt(now time.Time) sign {
	s := h.delay()
	if h.asked != nil {
		d, line := h.asked.rate(now)
		s.longer(d, ReasonRequestRate, line)
	}
	return s
}

// adaptive is the delay that the duration of the last request asks for.
func (h *Host) adaptive() time.Duration {
	if h.options.AdaptiveFactor <= 0 {
		return 0
	}
	return min(saturate(h.options.AdaptiveFactor*float64(h.lastResponse)), h.options.AdaptiveMax)
}

// InFlightLimit is how many requests to the host may be under way at once: Options.PerHost where no
// delay is ever in force, else one. A host that recovers from trouble has a delay.
func (h *Host) InFlightLimit() int {
	if d := h.delay(); d.delay > 0 || h.asked != nil && len(h.asked.Rates) > 0 {
		return 1
	}
	return h.options.PerHost
}
