package seedbook

import (
	"cmp"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/storage"
)

// Dead is the seeds that nothing will come of: they failed for good, are denied, or their host holds them.
type Dead struct {
	Count int      `json:"count"`
	First []Result `json:"first"` // a few of them
}

// Add adds those of another part of the crawl; either may be nil.
func (d *Dead) Add(more *Dead) *Dead {
	if d == nil || more == nil {
		return cmp.Or(d, more)
	}
	first := append(append([]Result{}, d.First...), more.First...)
	return &Dead{d.Count + more.Count, first[:min(len(first), reported)]}
}

// DeadStep is how many seeds DeadFinder.Step looks up.
const DeadStep = 200

// DeadFinder looks for dead seeds, round after round, a few seeds at a time.
type DeadFinder struct {
	Store Lookup
	Owns  func(host string) bool // the seeds of other hosts are those of other shards
	// Held returns why a host lets none of its URLs be fetched; false: it does.
	Held  func(*storage.Host) (why string, held bool)
	Began time.Time // when the run did

	next  time.Time       // no round begins before it
	found *Dead           // by the last round; nil: there are none
	begun *Dead           // nil: there are none
	part  int             // of the seeds, the next of the round under way
	left  []*seeds.Member // of the part before it
}

// Found returns what the last round found; nil: nothing. It does not change.
func (f *DeadFinder) Found() *Dead { return f.found }

// maxRoundEvery is the most time between two rounds. Early in a run they follow each other sooner.
const maxRoundEvery = 10 * time.Second

// Step looks up the next seeds of a set. Where redirects of a seed led counts for that seed.
func (f *DeadFinder) Step(set *seeds.Set, now time.Time) {
	if now.Before(f.next) {
		return
	}
	for range DeadStep {
		for ; len(f.left) == 0 && f.part < seeds.Parts; f.part++ {
			for m := range set.In(f.part, f.part+1) {
				if m.Root == m.URL && f.Owns(m.URL.Host()) {
					f.left = append(f.left, m)
				}
			}
		}
		if len(f.left) == 0 {
			f.found, f.begun, f.part = f.begun, nil, 0
			f.next = now.Add(min(now.Sub(f.Began)/60, maxRoundEvery))
			return
		}
		if result, dead := f.fate(set, f.left[0]); dead {
			f.begun = cmp.Or(f.begun, new(Dead))
			if f.begun.Count++; len(f.begun.First) < reported {
				f.begun.First = append(f.begun.First, result)
			}
		}
		f.left = f.left[1:]
	}
}

// fate returns what became of a seed, and whether it is dead. What the operator left out is not.
func (f *DeadFinder) fate(set *seeds.Set, m *seeds.Member) (Result, bool) {
	s := m.Seed()
	result, failed, err := resultWithPlain(f.Store, &s, f.Held)
	if targets := set.Targets(m.URL); err == nil && len(targets) > 0 &&
		result.State == storage.Redirected.String() {
		failed = true
		for _, u := range targets {
			one, alsoFailed, wrong := resultOf(f.Store, u, f.Held)
			failed, err = failed && alsoFailed, wrong
			result.State, result.Reason = one.State, one.Reason
		}
	}
	return result, err == nil && failed && result.State != storage.Excluded.String() &&
		result.State != inspect.StateUnknown && result.State != storage.Redirected.String()
}
