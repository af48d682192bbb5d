package crawl

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Bounds of the table of all hosts, which is made when somebody asks and kept for those who ask again.
const (
	rowsPerAsk  = 1000             // hosts that the dispatcher reads between two other things
	tableShare  = 50               // making tables takes one part in so many of the time
	tableFresh  = 2 * time.Second  // a table is used at least that long
	tableUnused = 30 * time.Second // nobody has asked for so long: it is dropped
	maxUnlisted = 100_000          // hosts that may be listed from the store while no dispatcher runs
)

// hostTable keeps the newest table.
type hostTable struct {
	making  sync.Mutex // held by the one that makes a table, so that others wait for it
	current atomic.Pointer[keptTable]
}

type keptTable struct {
	*inspect.Table
	until time.Time    // it is good enough
	used  atomic.Int64 // Unix nanoseconds
}

// rowsAsk asks the dispatcher for some rows.
type rowsAsk struct {
	from   storage.HostID
	answer chan []frontier.Row // holds one
}

// hosts is inspect.Options.Table.
func (e *Engine) hosts(ctx context.Context) (*inspect.Table, error) {
	if t := e.table.fresh(time.Now()); t != nil {
		return t, nil
	}
	d := e.desk.Load()
	if d == nil {
		return e.noTable()
	}
	e.table.making.Lock()
	defer e.table.making.Unlock()
	begun := time.Now()
	if t := e.table.fresh(begun); t != nil {
		return t, nil
	}
	t, err := e.readTable(ctx, d, begun)
	if t == nil || err != nil {
		return t, err
	}
	now := time.Now()
	kept := &keptTable{Table: t, until: now.Add(max(tableFresh, tableShare*now.Sub(begun)))}
	kept.used.Store(now.UnixNano())
	e.table.current.Store(kept)
	return t, nil
}

func (h *hostTable) fresh(now time.Time) *inspect.Table {
	k := h.current.Load()
	if k == nil || now.After(k.until) {
		return nil
	}
	k.used.Store(now.UnixNano())
	return k.Table
}

// forget drops a table that nobody uses.
func (h *hostTable) forget(now time.Time) {
	if k := h.current.Load(); k != nil && now.UnixNano()-k.used.Load() > int64(tableUnused) {
		h.current.CompareAndSwap(k, nil)
	}
}

// noTable is the answer while no dispatcher runs: the store has to do, if it is small.
func (e *Engine) noTable() (*inspect.Table, error) {
	if e.store.Counters().Hosts > maxUnlisted {
		return nil, fmt.Errorf("list the hosts: %w", ErrNotRunning)
	}
	return nil, nil
}

// readTable asks the dispatcher for all rows, a few at a time.
func (e *Engine) readTable(ctx context.Context, d *desk, now time.Time) (*inspect.Table, error) {
	last := storage.HostID(e.store.Counters().Hosts) // ids are given out one after the other
	t := &inspect.Table{At: now, Rows: make([]inspect.Row, 0, last)}
	for from := storage.HostID(1); from <= last; from += rowsPerAsk {
		q := &rowsAsk{from: from, answer: make(chan []frontier.Row, 1)}
		select {
		case d.rows <- q:
		case <-d.closed:
			return e.noTable()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		for _, r := range <-q.answer {
			t.Rows = append(t.Rows, rowOf(&r, now))
		}
	}
	return t, nil
}

// readRows answers.
func (r *run) readRows(q *rowsAsk) {
	rows := make([]frontier.Row, 0, rowsPerAsk)
	r.f.Rows(q.from, rowsPerAsk, time.Now(), func(row frontier.Row) { rows = append(rows, row) })
	q.answer <- rows
}

func rowOf(r *frontier.Row, now time.Time) inspect.Row {
	wait := max(r.Next.Sub(now), 0)
	if r.Next.IsZero() {
		wait = 0
	}
	return inspect.Row{
		Host: r.Host, Left: uint32(min(uint64(r.Left), math.MaxUint32)), Next: uint32(min(wait/time.Second, math.MaxUint32)),
		Delay: float32(r.Delay.Seconds()), Finish: float32(r.Finish.Seconds()), State: stateIndex(r, wait > 0),
	}
}

// stateIndex says where a host stands, as inspect does of one host.
func stateIndex(r *frontier.Row, waits bool) uint8 {
	state := inspect.HostReady
	switch {
	case inspect.IsBusy(r.Place):
		state = inspect.HostBusy
	case r.Paused:
		state = inspect.HostPaused
	case r.Left == 0:
		state = inspect.HostIdle
	case r.Robots != robots.ReasonNone:
		state = inspect.HostHeld
	case r.Trouble:
		state = inspect.HostTrouble
	case waits:
		state = inspect.HostWaiting
	}
	return uint8(slices.Index(inspect.HostStates(), state))
}
