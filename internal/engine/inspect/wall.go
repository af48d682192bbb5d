package inspect

import (
	"fmt"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/storage"
)

// Wall is what is known of the wall of a host, or the evidence for one, as of the last commit.
type Wall struct {
	Kind      string    `json:"kind"`
	Maker     string    `json:"maker,omitempty"`     // empty: unknown
	Suspected bool      `json:"suspected,omitempty"` // there is evidence for it, and the host is crawled as without
	Since     time.Time `json:"since"`               // of the first response that counts
	Probes    int       `json:"probes"`              // that failed
	Parked    bool      `json:"parked,omitempty"`    // enough probes failed: there is one a day
	Evidence  string    `json:"evidence"`            // for people
}

// KnownMarks returns the marks of known walls. The search for them is built once, when it is first
// needed.
func KnownMarks() *wall.Marks { return knownMarks() }

var knownMarks = sync.OnceValue(wall.NewMarks)

// wallOf returns what is known of the wall of a host; nil: nothing speaks for one.
func wallOf(h *storage.Host) (*Wall, error) {
	state, err := wall.DecodeState(h.Wall)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", h.Name, err)
	}
	v := state.Verdict()
	if v.Stand == wall.Open {
		return nil, nil
	}
	return &Wall{
		Kind: v.Kind.String(), Maker: KnownMarks().Name(v.Wall), Suspected: v.Stand == wall.Suspected, Since: v.Since,
		Probes: v.Probes, Parked: v.Park, Evidence: v.Evidence(KnownMarks()),
	}, nil
}
