package crawl

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/robots"
)

// maxUnlisted is how many hosts may be listed from the store while no dispatcher runs.
const maxUnlisted = 100_000

// hostTable is the table of all hosts that the last survey made.
type hostTable struct{ atomic.Pointer[inspect.Table] }

// hosts is inspect.Options.Table. Only who asks before the first survey of a run has come to its end waits for that.
func (e *Engine) hosts(ctx context.Context) (*inspect.Table, error) {
	d := e.desk.Load()
	if d == nil || d.isClosed() {
		return e.noTable()
	}
	select {
	case <-d.surveyed:
		return e.table.Load(), nil
	case <-d.closed:
		return e.noTable()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// noTable is the answer while no dispatcher runs: the store has to do, if it is small.
func (e *Engine) noTable() (*inspect.Table, error) {
	if e.store.Counters().Hosts > maxUnlisted {
		return nil, fmt.Errorf("list the hosts: %w", ErrNotRunning)
	}
	return nil, nil
}

// rowOf is a host at an instant in a table that was begun at another.
func rowOf(w *frontier.Waiting, at, now time.Time) inspect.Row {
	until := max(w.Until.Sub(at), 0)
	if w.Until.IsZero() {
		until = 0
	}
	return inspect.Row{
		Host: w.Host, Left: uint32(min(uint64(w.Left), math.MaxUint32)), Next: uint32(min(until/time.Second, math.MaxUint32)),
		Delay: float32(w.Delay.Seconds()), Finish: float32(w.Finish.Seconds()), State: stateIndex(w, w.Until.After(now)),
	}
}

// stateIndex says where a host stands, as inspect does of one host.
func stateIndex(w *frontier.Waiting, waits bool) uint8 {
	state := inspect.HostReady
	switch {
	case inspect.IsBusy(w.Place):
		state = inspect.HostBusy
	case w.Paused:
		state = inspect.HostPaused
	case w.Left == 0:
		state = inspect.HostIdle
	case w.Robots != robots.ReasonNone:
		state = inspect.HostHeld
	case w.Trouble:
		state = inspect.HostTrouble
	case waits:
		state = inspect.HostWaiting
	}
	return uint8(slices.Index(inspect.HostStates(), state))
}
