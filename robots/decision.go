package robots

import "time"

// DecisionKind says what a record means for page requests.
type DecisionKind uint8

const (
	DecisionFetch DecisionKind = iota // no verdict is in force: fetch robots.txt first
	DecisionMatch                     // match each URL with Record.Rules
	DecisionHold                      // nothing of the origin may be fetched
)

// String returns the name used in reports.
func (k DecisionKind) String() string {
	switch k {
	case DecisionMatch:
		return "ask"
	case DecisionHold:
		return "hold"
	}
	return "fetch"
}

// Decision is what a record means for page requests at one instant.
type Decision struct {
	Kind   DecisionKind
	Until  time.Time // DecisionMatch: when it ends; DecisionHold: when to fetch robots.txt again
	Reason Reason    // if there are no rules of a file: why everything is allowed, or held

	// RefreshDue says that robots.txt is due before the next page, although Until has not come.
	RefreshDue bool
}

// Decide returns what a record means for page requests at now. slack is the delay in force
// between requests to the host: rules count that much longer than their lifetime, and are refreshed
// that much later. Otherwise every request to a host with a delay of a day would be for its
// robots.txt.
func (o Options) Decide(r Record, slack time.Duration, now time.Time) Decision {
	slack = max(slack, 0)
	switch r.Class {
	case ClassNone:
		return Decision{Kind: DecisionFetch}
	case ClassUnreachable:
		return o.decideUnreachable(r, slack, now)
	}
	until := r.Expires.Add(slack)
	if !now.Before(until) || isFromFuture(r, now) || o.isReclassified(r) {
		return Decision{Kind: DecisionFetch}
	}
	if r.Class == ClassForbidden {
		if !now.Before(r.Refresh) {
			return Decision{Kind: DecisionFetch}
		}
		return Decision{Kind: DecisionHold, Until: r.Refresh, Reason: ReasonForbidden}
	}
	return Decision{Kind: DecisionMatch, Until: until, Reason: r.reason(),
		RefreshDue: !now.Before(r.Refresh.Add(slack))}
}

// isReclassified reports whether the record was made under the other value of ForbiddenDenies, and
// would have another class now.
func (o Options) isReclassified(r Record) bool {
	if o.ForbiddenDenies {
		return r.Class == ClassUnavailable && (r.Status == 401 || r.Status == 403)
	}
	return r.Class == ClassForbidden
}

// setBack is by how much a clock may be set back before it counts as that.
const setBack = 10 * time.Minute

// isFromFuture reports whether a record was made well after now. Then a clock was set back, which
// must not make rules last longer.
func isFromFuture(r Record, now time.Time) bool { return r.Fetched.Sub(now) > setBack }

// decideUnreachable applies the phases of an unreachable file: its copy is young enough; complete
// disallow; the copy again.
func (o Options) decideUnreachable(r Record, slack time.Duration, now time.Time) Decision {
	if r.Refresh.Sub(now) > o.MaxRetryAfter { // a clock was set back
		r.Refresh = now
	}
	hasCopy := r.Copy != ClassNone && r.Copy != ClassForbidden && !isFromFuture(r, now)
	lapses := r.Fetched.Add(max(o.MaxLifetime, r.Expires.Sub(r.Fetched)+slack))
	retry := r.Refresh.Add(slack)
	switch {
	case hasCopy && now.Before(lapses):
		return Decision{Kind: DecisionMatch, Until: lapses, Reason: r.reason(), RefreshDue: !now.Before(retry)}
	case hasCopy && r.Copy == ClassFound && !now.Before(latest(lapses, r.FirstUnreachable).Add(o.DisallowFor)):
		if now.Before(retry) {
			return Decision{Kind: DecisionMatch, Until: retry}
		}
	case now.Before(r.Refresh):
		return Decision{Kind: DecisionHold, Until: r.Refresh, Reason: ReasonUnreachable}
	}
	return Decision{Kind: DecisionFetch}
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
