//go:build !core

package remote

import (
	"maps"
	"slices"
	"time"
)

// Fetcher is what is known of a remote fetcher.
type Fetcher struct {
	Name     string    `json:"name"`
	Leases   int       `json:"leases"`   // that it holds now
	Taken    uint64    `json:"taken"`    // leases in this run
	Reported uint64    `json:"reported"` // accepted reports in this run
	RanOut   uint64    `json:"ran_out"`  // leases of this run whose deadline passed
	NotDone  uint64    `json:"not_done"` // leases of this run that it gave back
	Refused  uint64    `json:"refused"`  // reports of this run that changed nothing
	LastSeen time.Time `json:"last_seen,omitzero"`
	CutOff   bool      `json:"cut_off,omitempty"`
}

// Fetcher returns a fetcher that is seen now, and makes one that is not known. Of too many, the one that was
// seen first and holds nothing is forgotten.
func (b *Book) Fetcher(name string, now time.Time) *Fetcher {
	f := b.fetchers[name]
	if f == nil {
		if len(b.fetchers) >= maxFetchers {
			var oldest *Fetcher
			for _, other := range b.fetchers {
				idle := other.Leases == 0 && !other.CutOff
				if idle && (oldest == nil || other.LastSeen.Before(oldest.LastSeen)) {
					oldest = other
				}
			}
			if oldest != nil {
				delete(b.fetchers, oldest.Name)
			}
		}
		f = &Fetcher{Name: name}
		b.fetchers[name] = f
	}
	f.LastSeen = now.Round(0)
	return f
}

// Known returns a fetcher; nil: it is not known any more.
func (b *Book) Known(name string) *Fetcher { return b.fetchers[name] }

// Fetchers returns what is known of the fetchers, by name.
func (b *Book) Fetchers() []Fetcher {
	all := make([]Fetcher, 0, len(b.fetchers))
	for _, name := range slices.Sorted(maps.Keys(b.fetchers)) {
		all = append(all, *b.fetchers[name])
	}
	return all
}
