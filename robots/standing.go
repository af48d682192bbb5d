package robots

import "time"

// StandingKind says what a record means for page requests.
type StandingKind uint8

const (
	StandingFetch StandingKind = iota // no verdict is in force: robots.txt must be asked for first, now
	StandingAsk                       // Record.Rules decides about each URL
	StandingHold                      // nothing of the origin may be asked
)

// String returns the name used in reports.
func (k StandingKind) String() string {
	switch k {
	case StandingAsk:
		return "ask"
	case StandingHold:
		return "hold"
	}
	return "fetch"
}

// Standing is what a record means for page requests at one instant.
type Standing struct {
	Kind   StandingKind
	Until  time.Time // StandingAsk: when it ends; StandingHold: when to ask for robots.txt again
	Reason Reason    // where it is not the rules of a file: why everything is allowed, or held

	// RefreshDue says that robots.txt should be asked for ahead of the next page, though Until has not come.
	RefreshDue bool
}

// Standing says what a record means for page requests at now. slack is the delay in force between requests to the host:
// rules count that much longer than their lifetime, and are refreshed that much later, because else a host with a
// delay of a day would be asked for nothing but its robots.txt.
func (o Options) Standing(r Record, slack time.Duration, now time.Time) Standing {
	slack = max(slack, 0)
	switch r.Class {
	case ClassNone:
		return Standing{Kind: StandingFetch}
	case ClassUnreachable:
		return o.standingUnreachable(r, slack, now)
	}
	until := r.Expires.Add(slack)
	if !now.Before(until) || o.fromFuture(r, now) || o.judgedOtherwise(r) {
		return Standing{Kind: StandingFetch}
	}
	if r.Class == ClassForbidden {
		if !now.Before(r.Refresh) {
			return Standing{Kind: StandingFetch}
		}
		return Standing{Kind: StandingHold, Until: r.Refresh, Reason: ReasonForbidden}
	}
	return Standing{Kind: StandingAsk, Until: until, Reason: r.reason(), RefreshDue: !now.Before(r.Refresh.Add(slack))}
}

// judgedOtherwise reports whether the record was made under the other value of ForbiddenDenies and would be another one now.
func (o Options) judgedOtherwise(r Record) bool {
	if o.ForbiddenDenies {
		return r.Class == ClassUnavailable && (r.Status == 401 || r.Status == 403)
	}
	return r.Class == ClassForbidden
}

// fromFuture tells whether a record says that it was made well after now. Then a clock was set back, and that must not
// make rules last longer.
func (o Options) fromFuture(r Record, now time.Time) bool {
	return r.Fetched.Sub(now) > o.MinLifetime
}

// standingUnreachable goes through the phases of an unreachable file: its copy is young enough; complete disallow; the
// copy again.
func (o Options) standingUnreachable(r Record, slack time.Duration, now time.Time) Standing {
	if r.Refresh.Sub(now) > o.MaxRetryAfter { // a clock that was set back
		r.Refresh = now
	}
	hasCopy := r.Copy != ClassNone && r.Copy != ClassForbidden && !o.fromFuture(r, now)
	lapses := r.Fetched.Add(max(o.MaxLifetime, r.Expires.Sub(r.Fetched)+slack))
	retry := r.Refresh.Add(slack)
	switch {
	case hasCopy && now.Before(lapses):
		return Standing{Kind: StandingAsk, Until: lapses, Reason: r.reason(), RefreshDue: !now.Before(retry)}
	case hasCopy && r.Copy == ClassFound && !now.Before(latest(lapses, r.FirstUnreachable).Add(o.DisallowFor)):
		if now.Before(retry) {
			return Standing{Kind: StandingAsk, Until: retry}
		}
	case now.Before(r.Refresh):
		return Standing{Kind: StandingHold, Until: r.Refresh, Reason: ReasonUnreachable}
	}
	return Standing{Kind: StandingFetch}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// reason names the class that stands in for rules, or ReasonNone where a file decides.
func (r Record) reason() Reason {
	switch r.Copy {
	case ClassUnavailable:
		return ReasonUnavailable
	case ClassNotRobots:
		return ReasonNotRobots
	case ClassForbidden:
		return ReasonForbidden
	}
	return ReasonNone
}
