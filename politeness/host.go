package politeness

import (
	"time"
)

// Host is the politeness of one host name, whatever its schemes and ports. It has one owner at a
// time: its methods may not be called concurrently.
type Host struct {
	options      *Options
	pace         pace
	hold         hold
	trouble      trouble
	crawlDelay   time.Duration
	lastResponse time.Duration
}

// hold is a wait of known length that does not depend on the delay in force. There is one: a new
// one that ends earlier than it adds nothing, one that ends later takes its place.
type hold struct {
	until  time.Time
	length time.Duration
	reason Reason
}

// extend holds until length after since, where that is later than what is held already.
func (h *hold) extend(since time.Time, length time.Duration, reason Reason) {
	if length <= 0 {
		return
	}
	if until := since.Add(length); until.After(h.until) {
		*h = hold{until: until, length: length, reason: reason}
	}
}

// NewHost returns the politeness of a host as s left it; the zero State is that of a host never
// asked. The options are shared, not copied. What remains of a wait in s is never more than its
// length, even if the clock was set back since.
func NewHost(o *Options, s State, now time.Time) *Host {
	h := &Host{
		options:      o,
		pace:         newPace(),
		crawlDelay:   max(s.CrawlDelay, 0),
		lastResponse: max(s.LastResponse, 0),
		trouble: trouble{
			level:    min(s.Backoff, maxLevel),
			failures: min(s.Failures, failuresToBackoff),
			calm:     s.Calm,
			since:    s.TroubleSince,
		},
	}
	if !s.LastEnd.IsZero() {
		h.pace.end = now.Add(-max(now.Sub(s.LastEnd), 0))
	}
	if remaining := min(s.Until.Sub(now), s.Length); remaining > 0 {
		h.hold = hold{until: now.Add(remaining), length: s.Length, reason: s.Reason}
	}
	h.pace.charge(h.Delay())
	return h
}

// SetCrawlDelay sets what robots.txt asks for between two requests: the largest of the host's
// origins, 0 where none asks. It is never clamped, and counts from the end of the last request at once.
func (h *Host) SetCrawlDelay(d time.Duration) {
	h.crawlDelay = max(d, 0)
	h.pace.charge(h.Delay())
}

// Ended takes note of a request that ended, robots.txt included.
func (h *Host) Ended(end time.Time, r Result) {
	h.lastResponse = max(r.Duration, 0)
	h.judge(end, r)
	h.hold.extend(end, r.RetryAfter, ReasonRetryAfter)
	h.pace.ended(end, h.Delay())
}

// Owe makes the host wait until d after now at least. After a crash this is what is owed to a host which a
// request may have reached whose end nobody wrote down.
func (h *Host) Owe(now time.Time, d time.Duration) {
	h.hold.extend(now, d, ReasonRestart)
}

// Ready is the earliest instant at which the next request may start: the zero time where the host
// was never asked and nothing is owed to it.
func (h *Host) Ready() time.Time { return h.wait().until }

// Reason is the sign that decides [Host.Ready].
func (h *Host) Reason() Reason { return h.wait().reason }

// wait is what one sign asks for.
type wait struct {
	reason       Reason
	since, until time.Time
}

// wait returns the sign that asks for the latest instant. This is the one place where signs meet.
func (h *Host) wait() wait {
	delay, reason := h.delay()
	w := wait{reason: reason, since: h.pace.end, until: h.pace.ready(delay)}
	if h.pace.end.IsZero() {
		w.reason = ReasonNone
	}
	if h.hold.until.After(w.until) {
		w = wait{reason: h.hold.reason, since: h.hold.until.Add(-h.hold.length), until: h.hold.until}
	}
	return w
}

// Delay is the delay in force: the least time from the end of a request to the start of the next.
// Retry-After and back-off come on top of it, once.
func (h *Host) Delay() time.Duration {
	d, _ := h.delay()
	return d
}

// delay returns the delay in force and the sign that asks for it.
func (h *Host) delay() (time.Duration, Reason) {
	d, reason := time.Duration(0), ReasonNone
	for _, sign := range [...]struct {
		delay  time.Duration
		reason Reason
	}{
		{h.options.Delay, ReasonDelay},
		{h.crawlDelay, ReasonCrawlDelay},
		{h.adaptive(), ReasonAdaptive},
	} {
		if sign.delay > d {
			d, reason = sign.delay, sign.reason
		}
	}
	if slowed := h.trouble.slow(d); slowed > d {
		d, reason = slowed, ReasonErrors
	}
	return d, reason
}

// adaptive is the delay that the duration of the last request asks for.
func (h *Host) adaptive() time.Duration {
	if h.options.AdaptiveFactor <= 0 {
		return 0
	}
	return min(saturate(h.options.AdaptiveFactor*float64(h.lastResponse)), h.options.AdaptiveMax)
}

// InFlightLimit is how many requests to the host may be under way at once: Options.PerHost where the
// delay in force is zero, else one. A host that recovers from trouble has a delay.
func (h *Host) InFlightLimit() int {
	if h.Delay() > 0 {
		return 1
	}
	return h.options.PerHost
}
