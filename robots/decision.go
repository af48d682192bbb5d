package robots

import "time"

// StandingKind says what a record means for page requests.
type StandingKind uint8

const (
	StandingFetch StandingKind = iota // no verdict is in force: fetch robots.txt first
	StandingAsk                       // match each URL with Record.Rules
	StandingHold                      // nothing of the origin may be fetched
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
	Until  time.Time // StandingAsk: when it ends; StandingHold: when to fetch robots.txt again
	Reason Reason    // if there are no rules of a file: why everything is allowed, or held

	// RefreshDue says that robots.txt is due before the next page, although Until has not come.
	RefreshDue bool
}

// Standing decides what a record means for page requests at now. slack is the delay in force
// between requests to the host: rules count that much longer than their lifetime, and are refreshed
// that much later. Otherwise every request to a host with a delay of a day would be for its
// robots.txt.
func (o Options) Standing(r Record, slack time.Duration, now time.Time) Standing {
	slack = max(slack, 0)
	switch r.Class {
	case ClassNone:
		return Standing{Kind: StandingFetch}
	case ClassUnreachable:
		return o.decideUnreachable(r, slack, now)
	}
	until := r.Expires.Add(slack)
	if !now.Before(until) || o.fromFuture(r, now) || o.isReclassified(r) {
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

// isReclassified reports whether the record was made under the other value of ForbiddenDenies, and
// would have another class now.
func (o Options) isReclassified(r Record) bool {
	if o.ForbiddenDenies {
		return r.Class == ClassUnavailable && (r.Status == 401 || r.Status == 403)
	}
	return r.Class == ClassForbidden
}

// fromFuture reports whether a record was made well after now. Then a clock was set back, which
// must not make rules last longer.
func (o Options) fromFuture(r Record, now time.Time) bool {
	return r.Fetched.Sub(now) > o.MinLifetime
}

// decideUnreachable applies the phases of an unreachable file: its copy is young enough; complete
// disallow; the copy again.
func (o Options) decideUnreachable(r Record, slack time.Duration, now time.Time) Standing {
	if r.Refresh.Sub(now) > o.MaxRetryAfter { // a clock was set back
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

// reason returns why no file decides, or ReasonNone if a file does.
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
