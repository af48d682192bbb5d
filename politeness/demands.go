package politeness

import (
	"cmp"
	"slices"
	"time"
)

// Demands is what the robots.txt files of a host demand of the pace of requests.
type Demands struct {
	Delay  time.Duration // the longest Crawl-delay, or Request-rate that holds at all hours; 0: none
	Rate   bool          // Delay is that of a Request-rate
	Line   Line          // where Delay is written
	Rates  []Rate        // Request-rates that hold at some hours only, at most MaxRates
	Visits []Visit       // the hours at which the host may be fetched from, at most MaxVisits; none: all of them
}

// demands are the demands on a host, with the limiters that keep the gaps of the Rates.
type demands struct {
	Demands
	hourly []pace // in the order of Rates
}

// Line is a line of the robots.txt of one of the host's origins.
type Line struct {
	Origin uint8  // by the number its host counts it by
	Number uint32 // from 1; 0: not known
}

// Rate is a Request-rate that holds at some hours only.
type Rate struct {
	Window Window
	Delay  time.Duration // from the end of one request to the start of the next
	Line   Line
}

// Visit is a Visit-time.
type Visit struct {
	Window Window
	Line   Line
}

// Window is a part of the day in UTC, from one minute to before another. It may go over midnight.
// If both minutes are equal, it is the whole day.
type Window struct{ From, To uint16 }

// Limits of what is kept for one host. A real file has one Request-rate or Visit-time at most.
const (
	MaxRates  = 2
	MaxVisits = 4
)

const (
	day     = 24 * time.Hour
	minutes = 24 * 60 // of a day
)

// Merge returns what two files demand together: the longer delay, the Request-rates of both, and
// the hours that both allow. If they have no hour in common, it returns the hours of both: a host
// is not given up because its files contradict each other.
func (a Demands) Merge(b Demands) Demands {
	if b.Delay > a.Delay {
		a.Delay, a.Rate, a.Line = b.Delay, b.Rate, b.Line
	}
	a.Rates = append(slices.Clip(a.Rates), b.Rates...)
	a.Visits = commonHours(a.Visits, b.Visits)
	return a.bounded()
}

// commonHours returns the windows that lie in both lists.
func commonHours(a, b []Visit) []Visit {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	var both []Visit
	for _, x := range a {
		for _, y := range b {
			for _, w := range x.Window.common(y.Window) {
				both = append(both, Visit{w, x.Line})
			}
		}
	}
	if len(both) == 0 {
		return append(slices.Clip(a), b...)
	}
	return both
}

// common returns the overlap of two windows, which may be two windows.
func (w Window) common(o Window) (parts []Window) {
	for _, p := range w.parts() {
		for _, q := range o.parts() {
			if from, to := max(p.From, q.From), min(p.To, q.To); from < to {
				parts = append(parts, Window{from, to})
			}
		}
	}
	return parts
}

// parts returns the one or two windows, none over midnight, that make up a window.
func (w Window) parts() []Window {
	switch w = w.valid(); {
	case w.From < w.To:
		return []Window{w}
	case w.From == w.To:
		return []Window{{0, minutes}}
	}
	return []Window{{w.From, minutes}, {0, w.To}}
}

// bounded limits values from the network or the disk to what the package computes with.
// Request-rates beyond MaxRates hold at all hours. Hours beyond MaxVisits are left out.
func (a Demands) bounded() Demands {
	a.Delay = max(a.Delay, 0)
	if a.Delay == 0 {
		a.Rate, a.Line = false, Line{}
	}
	if len(a.Rates) > MaxRates {
		rates := slices.Clone(a.Rates)
		slices.SortStableFunc(rates, func(x, y Rate) int { return cmp.Compare(y.Delay, x.Delay) })
		if extra := rates[MaxRates]; extra.Delay > a.Delay {
			a.Delay, a.Rate, a.Line = extra.Delay, true, extra.Line
		}
		a.Rates = rates[:MaxRates]
	}
	a.Visits = a.Visits[:min(len(a.Visits), MaxVisits)]
	return a
}

// valid limits both ends to one day.
func (w Window) valid() Window { return Window{min(w.From, minutes), min(w.To, minutes)} }

// maxSteps bounds the number of windows that a wait is moved behind. After that, all Request-rates
// count as if they held at all hours.
const maxSteps = 64

// fit moves a wait behind the hours at which the files or the operator forbid a request. The wall
// clock shows now: it may have been set since the wait began. While no hour is allowed by both, the
// wait is that of maxSteps windows, at whose end the next one begins.
func (h *Host) fit(w wait, now time.Time) wait {
	a, hours := h.demands, h.options.Hours
	if hours == nil && (a == nil || len(a.Rates)+len(a.Visits) == 0) {
		return w
	}
	at, began := w.until, w.since
	if at.Before(now) {
		at = now
	}
	for step := range maxSteps {
		next := w
		if a != nil {
			next = a.next(w, at, h.pace.end, now)
		}
		if !next.until.After(at) {
			next = hours.next(w, at, now)
		}
		if !next.until.After(at) {
			return w
		}
		if w, at = next, next.until; step == 0 {
			began = w.since
		}
	}
	if a == nil {
		return w
	}
	if hours != nil && len(a.Rates) == 0 {
		return wait{reason: ReasonHours, since: began, until: at, length: at.Sub(began),
			header: hours.setting + ": no hour in common with the Visit-time of its robots.txt"}
	}
	for i, r := range a.Rates {
		if until := a.hourly[i].ready(); until.After(w.until) {
			w = wait{reason: ReasonRequestRate, since: h.pace.end, until: until, line: r.Line}
		}
	}
	return a.nextVisit(w, w.until, now)
}

// next returns the wait at an instant: w itself if a request may start then.
func (a *demands) next(w wait, at, end, now time.Time) wait {
	clock := wall(at, now)
	for i, r := range a.Rates {
		until := a.hourly[i].ready()
		window := span{Window: r.Window}
		if !until.After(at) || !window.open(clock) {
			continue
		}
		if left, closes := window.untilClosed(clock); closes && at.Add(left).Before(until) {
			until = at.Add(left)
		}
		return wait{reason: ReasonRequestRate, since: end, until: until, line: r.Line}
	}
	return a.nextVisit(w, at, now)
}

// nextVisit returns the wait for the next Visit-time, or w if the instant lies in one.
func (a *Demands) nextVisit(w wait, at, now time.Time) wait {
	if len(a.Visits) == 0 {
		return w
	}
	spans := make([]span, 0, MaxVisits)
	for _, v := range a.Visits {
		spans = append(spans, span{Window: v.Window})
	}
	next, since, opens := nextOpen(spans, wall(at, now))
	if next < 0 {
		return w
	}
	return wait{reason: ReasonVisitTime, since: at.Add(-since), until: at.Add(opens), line: a.Visits[next].Line}
}

// rate returns the longest delay of the Request-rates that hold at an instant, and its line.
func (a *Demands) rate(now time.Time) (longest time.Duration, line Line) {
	for _, r := range a.Rates {
		if r.Delay > longest && (span{Window: r.Window}).open(now) {
			longest, line = r.Delay, r.Line
		}
	}
	return longest, line
}
