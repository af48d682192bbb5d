package outcome

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// Result is how a run has ended, for amble run --json. A nil one is printed nowhere.
type Result struct {
	End        crawl.End         `json:"end"` // one of Ends
	ExitCode   int               `json:"exit_code"`
	Error      string            `json:"error,omitempty"`
	Seconds    float64           `json:"seconds"`
	Pages      uint64            `json:"pages"`                // fetched in this run
	Requisites uint64            `json:"requisites,omitempty"` // what pages are made of, fetched in this run
	Recrawls   uint64            `json:"recrawls,omitempty"`   // pages that were known and requested again
	Unchanged  uint64            `json:"unchanged,omitempty"`  // of them
	Bytes      uint64            `json:"bytes"`                // of all bodies
	Queued     int               `json:"queued"`               // URLs that wait
	Failed     map[string]uint64 `json:"failed,omitempty"`     // URLs given up in this run, by reason
	Postponed  []crawl.Postponed `json:"postponed,omitempty"`
	Walls      map[string]int    `json:"walls,omitempty"`        // hosts behind a wall, by its kind
	WallMakers map[string]int    `json:"wall_makers,omitempty"`  // the same, by its maker
	Seeds      *crawl.SeedReport `json:"failed_seeds,omitempty"` // if no seed could be fetched
	BadSeeds   int               `json:"bad_seeds,omitempty"`
}

// Take takes the outcome of a run on one machine.
func (e *Result) Take(out *Outcome) {
	run := &out.Status.Run
	e.End, e.Seconds, e.Pages, e.Requisites, e.Bytes = out.End, out.Took.Seconds(), run.Pages, run.Requisites, run.Bytes
	e.Recrawls, e.Unchanged = run.Recrawls, run.Unchanged
	e.Queued, e.Failed, e.Postponed = Queued(out.Status), out.Status.Failed, out.Postponed
	e.Walls, e.WallMakers = out.Status.Walls, out.Status.WallMakers
	if out.Seeds.Failed {
		e.Seeds = &out.Seeds
	}
}

// Print prints the end of a run with an error and its exit code, and returns the error.
func (e *Result) Print(w io.Writer, err error, code int) error {
	if e == nil {
		return err
	}
	if err != nil {
		e.ExitCode, e.End = code, EndOf(err, code)
		if known := (*console.ExitError)(nil); !errors.As(err, &known) || known.Err != nil {
			e.Error = err.Error()
		}
	}
	e.Seconds = time.Duration(e.Seconds * float64(time.Second)).Round(time.Millisecond).Seconds()
	return errors.Join(err, json.NewEncoder(w).Encode(e))
}
