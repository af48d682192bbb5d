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
	health       health
	demands      *demands // nil: its robots.txt demands nothing
	lastResponse time.Duration
	policy       Policy        // of the last response
	setDelay     time.Duration // by the operator; 0: Options.Delay counts
}

// NewHost returns the politeness of a host as s left it. The zero State is that of a host without a
// request. The options are shared, not copied; [Host.SetOptions] replaces them. The rest of a wait
// in s is never longer than the whole wait, even if the clock was set back since.
func NewHost(o *Options, s State, now time.Time) *Host {
	h := new(Host)
	h.Restore(o, s, now)
	return h
}

// Restore makes h what [NewHost] returns, in the memory that h has.
func (h *Host) Restore(o *Options, s State, now time.Time) {
	*h = Host{
		options:      o,
		pace:         pace{limiter: h.pace.limiter}, // a charge empties it, whatever is in it
		holds:        h.holds[:0],
		lastResponse: max(s.LastResponse, 0),
		policy:       s.Policy,
		setDelay:     max(s.SetDelay, 0),
		health: health{
			level:    min(s.Backoff, maxLevel),
			failures: min(s.Failures, failuresToBackoff),
			calm:     s.Calm,
			since:    s.FailingSince,
			cause:    s.Cause,
		},
	}
	late := s.LastEnd.Sub(now)
	if late < 0 || late > maxLate {
		late = 0
	}
	if !s.LastEnd.IsZero() {
		h.pace.end = now.Add(-max(now.Sub(s.LastEnd), -late))
	}
	for _, x := range s.Holds {
		if remaining := min(x.Until.Sub(now), x.Length+late); remaining > 0 {
			x.Until = now.Add(remaining)
			h.holds = append(h.holds, x)
		}
	}
	h.SetDemands(s.Demands)
}

// maxLate is by how much a state may be later than the reading of the clock with which it is restored: another process
// was at work meanwhile. Beyond, the clock was set back, and no wait becomes longer by that.
const maxLate = time.Second

// SetDemands sets the demands of robots.txt, merged over all origins of the host with [Demands.Merge].
// A delay is never clamped, and counts from the end of the last request at once.
func (h *Host) SetDemands(a Demands) {
	a = a.bounded()
	h.demands = nil
	if a.Delay > 0 || len(a.Rates)+len(a.Visits) > 0 {
		h.demands = &demands{Demands: a, hourly: make([]pace, len(a.Rates))}
	}
	h.charge()
}

// Demands returns the last argument of [Host.SetDemands].
func (h *Host) Demands() Demands {
	if h.demands == nil {
		return Demands{}
	}
	return h.demands.Demands
}

// charge puts the delays in force into the limiters, as of the end of the last request.
func (h *Host) charge() { h.endAt(h.pace.end) }

// endAt records the end of a request in the limiters.
func (h *Host) endAt(end time.Time) {
	d := h.delay()
	h.pace.ended(end, d.delay)
	if h.demands == nil {
		return
	}
	for i := range h.demands.hourly {
		h.demands.hourly[i].ended(h.pace.end, h.demands.Rates[i].Delay)
	}
}

// Ended records a request that ended, robots.txt included.
func (h *Host) Ended(end time.Time, r Result) {
	h.lastResponse = max(r.Duration, 0)
	h.judge(end, r)
	h.holds.extend(end, Hold{Length: r.RetryAfter, Reason: ReasonRetryAfter, Header: clipped(r.Header)})
	h.holds.extend(end, Hold{Length: r.RateLimit.Hold, Reason: ReasonRateLimit, Header: clipped(r.RateLimit.Header)})
	if r.Signal != SignalUnreachable && r.Signal != SignalAborted {
		h.policy = r.RateLimit.Policy
	}
	h.endAt(end)
}

// HoldFor holds the host until d after now at least. The reason is [ReasonRestart] for a request that
// may have reached the host before a crash and whose end is unknown, [ReasonRetryAfter] for the
// header of a response that was not committed, or [ReasonStart] for a start that is spread out.
func (h *Host) HoldFor(now time.Time, d time.Duration, r Reason) {
	h.holds.extend(now, Hold{Length: d, Reason: r})
}

// Trim ends all holds at an instant at the latest, except pauses. It is for callers that know
// better than the wall clock how long the host has waited.
func (h *Host) Trim(at time.Time) {
	for i, x := range h.holds {
		if x.Reason.kind() != ReasonPause && x.Until.After(at) {
			h.holds[i].Until = at
		}
	}
}

// Pause holds the host until an instant, or until [Host.Resume] if that is zero. The last Pause
// counts.
func (h *Host) Pause(now, until time.Time) {
	h.Resume()
	length := Forever
	if !until.IsZero() {
		length = until.Sub(now)
	}
	h.holds.extend(now, Hold{Length: length, Reason: ReasonPause})
}

// Resume ends a Pause. All other holds stay.
func (h *Host) Resume() { h.holds.drop(ReasonPause) }

// NoDelay is the argument of [Host.SetDelay] for a host without a delay of its own.
const NoDelay = time.Nanosecond

// SetDelay replaces Options.Delay by d for this host, [NoDelay] by none; 0 ends that. The demands of
// the host itself still count.
func (h *Host) SetDelay(d time.Duration) {
	h.setDelay = max(d, 0)
	h.charge()
}

// HasSetDelay reports whether SetDelay has set a delay, or NoDelay.
func (h *Host) HasSetDelay() bool { return h.setDelay != 0 }

// SetOptions replaces the options. A longer delay counts from the end of the last request at once.
func (h *Host) SetOptions(o *Options) {
	h.options = o
	h.charge()
}

// Forget drops what responses have taught: failures, backoff, RateLimit-Policy, and the duration of
// the last request. It keeps the delay since the last request, Retry-After, RateLimit, the restart
// hold, and the demands of the operator and robots.txt.
func (h *Host) Forget() {
	h.health, h.lastResponse, h.policy = health{}, 0, Policy{}
	h.holds.drop(ReasonBackoff)
	h.charge()
}

// ForgetEnd drops when the last request ended, so that no delay runs since then. It is for hosts whose
// clients keep their own pace.
func (h *Host) ForgetEnd() {
	h.pace.end = time.Time{}
	h.charge()
}

// Failing reports whether the last request that succeeded or failed did the latter.
func (h *Host) Failing() bool { return h.health.failures > 0 }

// LastEnd returns when the last request to the host ended, or zero if no request is known.
func (h *Host) LastEnd() time.Time { return h.pace.end }

// Ready returns the earliest instant at which the next request may start, or the zero time if the
// host has had no request and no hold. The wall clock shows now, which matters if robots.txt names
// hours.
func (h *Host) Ready(now time.Time) time.Time { w := h.wait(h.delay(), now); return w.until }

// ReadyUnpaused returns what [Host.Ready] would return if nobody had paused the host.
func (h *Host) ReadyUnpaused(now time.Time) time.Time {
	w := h.waitWithout(ReasonPause, h.delay(), now)
	return w.until
}

// Reason returns the sign that decides [Host.Ready].
func (h *Host) Reason(now time.Time) Reason { w := h.wait(h.delay(), now); return w.reason }

// wait is the wait that one sign requires.
type wait struct {
	reason       Reason
	since, until time.Time
	line         Line
	length       time.Duration // of a hold, or of the delay of a RateLimit-Policy
	header       string
}

// wait returns the sign with the latest instant. d is the result of delay.
func (h *Host) wait(d sign, now time.Time) wait {
	if h.options.Paused {
		return wait{reason: ReasonPause, until: now.Add(Forever), length: Forever}
	}
	return h.waitWithout(ReasonNone, d, now)
}

// waitWithout returns the wait, without the holds of one kind. It is the only place that combines
// signs.
func (h *Host) waitWithout(without Reason, d sign, now time.Time) wait {
	w := wait{reason: d.reason, since: h.pace.end, until: h.pace.ready(), line: d.line}
	if d.reason == ReasonRatePolicy {
		w.length = d.delay
	}
	if h.pace.end.IsZero() {
		w.reason, w.line = ReasonNone, Line{}
	}
	if x := h.holds.last(without); x.Until.After(w.until) {
		w = wait{reason: x.Reason, since: x.Until.Add(-x.Length), until: x.Until, length: x.Length, header: x.Header}
	}
	return h.fit(w, now)
}

// Delay returns the delay in force at an instant: the least time from the end of a request to the
// start of the next. Retry-After, backoff and hours are counted on their own.
func (h *Host) Delay(now time.Time) time.Duration { d := h.delayAt(h.delay(), now); return d.delay }

// sign is a delay and where it comes from.
type sign struct {
	delay  time.Duration
	reason Reason
	line   Line
}

// longer replaces a sign by one with a longer delay.
func (s *sign) longer(delay time.Duration, reason Reason, line Line) {
	if delay > s.delay {
		*s = sign{delay, reason, line}
	}
}

// delay returns the delay in force at all hours.
func (h *Host) delay() sign {
	var s sign
	switch {
	case h.setDelay == NoDelay:
	case h.setDelay > 0:
		s.longer(h.setDelay, ReasonSetDelay, Line{})
	default:
		s.longer(h.options.Delay, ReasonDelay, Line{})
	}
	if a := h.demands; a != nil {
		reason := ReasonCrawlDelay
		if a.Rate {
			reason = ReasonRequestRate
		}
		s.longer(a.Delay, reason, a.Line)
	}
	s.longer(h.policy.Delay(), ReasonRatePolicy, Line{})
	s.longer(h.adaptive(), ReasonAdaptive, Line{})
	s.longer(h.health.slow(s.delay), ReasonErrors, Line{})
	return s
}

// delayAt returns the delay in force at an instant. d is the result of delay.
func (h *Host) delayAt(d sign, now time.Time) sign {
	if h.demands != nil {
		atHour, line := h.demands.rate(now)
		d.longer(atHour, ReasonRequestRate, line)
	}
	return d
}

// adaptive returns the delay that follows from the duration of the last request.
func (h *Host) adaptive() time.Duration {
	if h.options.AdaptiveFactor <= 0 {
		return 0
	}
	return min(saturate(h.options.AdaptiveFactor*float64(h.lastResponse)), h.options.AdaptiveMax)
}

// InFlightLimit returns the number of requests that may be in flight to the host: Options.PerHost
// if no delay is ever in force, else one. A host that is failing or recovering has a delay.
func (h *Host) InFlightLimit() int {
	if d := h.delay(); d.delay > 0 || h.demands != nil && len(h.demands.Rates) > 0 {
		return 1
	}
	return h.options.PerHost
}
