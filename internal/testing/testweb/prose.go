package testweb

import (
	"math/rand/v2"
	"strings"
)

// Prose invents English that reads like a small town's. One goroutine uses it.
type Prose struct{ random *rand.Rand }

// NewProse returns prose that only depends on what is random.
func NewProse(random *rand.Rand) Prose { return Prose{random} }

func (p Prose) pick(words ...string) string { return words[p.random.IntN(len(words))] }

func (p Prose) subject() string {
	return p.pick("the harbour office", "the tide mill", "the public library", "the ferry to the island",
		"the lighthouse",
		"the fish market", "the old ropewalk", "the weather station", "the walking club", "the night train",
		"the town archive", "the boat builders' yard", "the school orchestra", "the botanical garden",
		"the post office")
}

func (p Prose) predicate() string {
	return p.pick("opens an hour earlier", "moves to the quay", "counts its visitors", "is painted green again",
		"publishes its logbook", "waits for spring tide", "gets a second clock", "keeps its winter hours",
		"repairs the slipway", "shows a map of the coast", "lends out telescopes", "celebrates a hundred years",
		"looks for volunteers", "reports a calm season", "plants forty lime trees")
}

func (p Prose) circumstance() string {
	return p.pick("after the storm", "before the holidays", "as it did last year", "to everyone's surprise",
		"with the council's consent",
		"while the bridge is closed", "at low water", "until the end of the month", "in spite of the fog",
		"for the first time in years")
}

// Headline returns a title, without a full stop.
func (p Prose) Headline() string { return capital(p.subject() + " " + p.predicate()) }

// Sentence returns a sentence, with its full stop.
func (p Prose) Sentence() string {
	switch p.random.IntN(4) {
	case 0:
		return capital(p.subject()) + " " + p.predicate() + " " + p.circumstance() + "."
	case 1:
		return capital(p.circumstance()) + ", " + p.subject() + " " + p.predicate() + "."
	case 2:
		return "Anyone who remembers how " + p.subject() + " once looked will hardly know it now."
	default:
		return "It is said that " + p.subject() + " " + p.predicate() + " whenever " + p.subject() + " " +
			p.predicate() + "."
	}
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
