package crawl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// View inspects the crawl. Any goroutine may call it and use what it returns, until Close.
func (e *Engine) View() *inspect.View {
	return inspect.New(e.store, inspect.Options{
		Politeness: e.live.Load().politeness, Robots: e.o.Frontier.Robots, Tokens: e.o.Frontier.Tokens,
		Obey: e.o.Frontier.Obey, Renew: e.o.Renew, Now: e.o.Now, Live: e.inspectHosts, Table: e.hosts,
		Scope: func(u weburl.URL) (bool, string) { return isInScope(e.scope.Load(), u) },
	})
}

// inspectHosts has the dispatcher inspect hosts. If none runs there is nothing to know.
func (e *Engine) inspectHosts(ctx context.Context, hosts []storage.HostID) (live []inspect.Live, err error) {
	hosts = hosts[:min(len(hosts), inspect.LivePage)]
	err = e.mailbox.Load().call(ctx, func(d *dispatcher) { live = d.inspect(hosts) })
	if errors.Is(err, ErrNotRunning) {
		return nil, nil
	}
	return live, err
}

// inspect reads a few words of each host.
func (d *dispatcher) inspect(hosts []storage.HostID) []inspect.Live {
	live := make([]inspect.Live, 0, len(hosts))
	for _, id := range hosts {
		v, known := d.f.Look(id)
		if !known {
			continue
		}
		l := inspect.Live{
			Host: id, Place: v.Place, Next: v.Next, Delay: v.Delay, Robots: v.Robots, InFlight: v.InFlight,
			Address: v.Address,
		}
		if v.Active {
			l.Polite = &v.Polite
		}
		live = append(live, l)
	}
	return live
}

// maxUnlisted is how many hosts may be listed from the store while no dispatcher runs.
const maxUnlisted = 100_000

// hostTable is the table of all hosts that the last survey made. It is safe for concurrent use.
type hostTable struct {
	latest atomic.Pointer[inspect.Table]
	once   sync.Once
	ready  chan struct{} // closed when there is one
}

func newHostTable() *hostTable { return &hostTable{ready: make(chan struct{})} }

func (t *hostTable) set(latest *inspect.Table) {
	t.latest.Store(latest)
	t.once.Do(func() { close(t.ready) })
}

// hosts is inspect.Options.Table. It waits only if the first survey of a run has not come to its
// end.
func (e *Engine) hosts(ctx context.Context) (*inspect.Table, error) {
	m := e.mailbox.Load()
	if !m.isOpen() {
		return e.noTable()
	}
	select {
	case <-e.table.ready:
		return e.table.latest.Load(), nil
	case <-m.closed:
		return e.noTable()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// noTable is the answer while no dispatcher runs: the hosts are listed from the store, if there are
// few.
func (e *Engine) noTable() (*inspect.Table, error) {
	if e.store.Counters().Hosts > maxUnlisted {
		return nil, fmt.Errorf("list the hosts: %w", ErrNotRunning)
	}
	return nil, nil
}

// rowOf returns the row of a host, inspected now, in a table that was begun at another instant.
func rowOf(w *frontier.Waiting, at, now time.Time) inspect.Row {
	until := max(w.Until.Sub(at), 0)
	if w.Until.IsZero() {
		until = 0
	}
	return inspect.Row{
		Host: w.Host, Left: uint32(min(uint64(w.Left), math.MaxUint32)),
		Next:  uint32(min(until/time.Second, math.MaxUint32)),
		Delay: float32(w.Delay.Seconds()), Finish: float32(w.Finish.Seconds()),
		State: stateIndex(w, w.Until.After(now)),
	}
}

// stateIndex returns the index of a host's state in inspect.HostStates.
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
