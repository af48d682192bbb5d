package consent

import (
	"fmt"
	"strings"
)

// Action is what is done with a page for which a use is disallowed. A higher one includes the lower.
type Action uint8

const (
	Record        Action = iota // fetch and store it, with its preferences
	SkipArchiving               // its content is in no web archive; other output has it
	SkipStoring                 // fetch it for its links; its content is not stored
	SkipFetching                // do not fetch it where that is known before; else as SkipStoring
)

var actionNames = [...]string{
	Record: "record", SkipArchiving: "skip-archiving", SkipStoring: "skip-storing", SkipFetching: "skip-fetching",
}

// String returns the name used in settings.
func (a Action) String() string { return actionNames[min(a, SkipFetching)] }

// ParseAction is the inverse of String.
func ParseAction(name string) (Action, error) {
	for a, n := range actionNames {
		if n == name {
			return Action(a), nil
		}
	}
	return 0, fmt.Errorf("consent policy %q: should be one of %s", name, strings.Join(actionNames[:], ", "))
}

// Policy says what is done about a page for which a use is disallowed, by category. The zero value
// records all preferences and does nothing else.
type Policy [categories]Action

// DefaultPolicy keeps what nobody else is to see a copy of out of web archives, and records all else.
func DefaultPolicy() (p Policy) {
	p[Archive] = SkipArchiving
	return p
}

// NewPolicy makes a policy of the names of categories and actions. Others have those of DefaultPolicy.
func NewPolicy(actions map[string]string) (Policy, error) {
	p := DefaultPolicy()
	for name, action := range actions {
		c, err := ParseCategory(name)
		if err != nil {
			return Policy{}, err
		}
		if p[c], err = ParseAction(action); err != nil {
			return Policy{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return p, nil
}

// Action returns what is done with a page, and the category that demands it: the strictest action of
// all categories that are disallowed.
func (p Policy) Action(e Effective) (Action, Category) {
	action, because := Record, Category(0)
	for c, preference := range e.Preferences {
		if preference == Disallowed && p[c] > action {
			action, because = p[c], Category(c)
		}
	}
	return action, because
}

// ReadsTDM reports whether a TDM file may decide what the policy does: it refuses mining, and so
// training.
func (p Policy) ReadsTDM() bool { return max(p[Mining], p[TrainAI], p[TrainImages]) > Record }

// ReadsTerms reports whether terms of Really Simple Licensing may decide what the policy does.
func (p Policy) ReadsTerms() bool {
	return max(p[TrainAI], p[TrainImages], p[AIInput], p[Search]) > Record
}

// Fetches reports whether the policy fetches all pages, so that nothing has to be decided before a
// request.
func (p Policy) Fetches() bool {
	for _, a := range p {
		if a == SkipFetching {
			return false
		}
	}
	return true
}
