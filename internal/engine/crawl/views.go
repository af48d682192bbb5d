package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/load"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/optouts"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/seedbook"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/slowdown"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

func postponed(s load.RulesStore, w *frontier.View) Postponed {
	p := Postponed{Host: w.Name, URLs: w.Left, Until: w.Until, Reason: w.Reason.String()}
	failing := false
	if h, err := s.HostByID(w.Host); err == nil {
		p.Host = h.Name
		failing, p.Cause = failureOf(&h)
		if w.Robots == robots.ReasonUnreachable {
			p.Cause = cmp.Or(p.Cause, robotsCause(s, &h))
		}
	}
	switch {
	case w.Budget:
		p.Reason = "budget"
	case w.Robots != robots.ReasonNone:
		p.Reason = "robots.txt: " + w.Robots.String()
	case w.Parked:
		p.Reason = "parked: " + p.Reason
	}
	p.Failed = w.Robots != robots.ReasonNone || failing
	return p
}

// failureOf reports whether a host is failing, and why, as committed.
func failureOf(h *storage.Host) (failing bool, cause string) {
	state, err := politeness.DecodeState(h.Politeness)
	if err != nil || state.FailingSince.IsZero() {
		return false, ""
	}
	return true, inspect.CauseName(storage.Cause(state.Cause))
}

// robotsCause returns why a robots.txt of a host cannot be fetched.
func robotsCause(s load.RulesStore, h *storage.Host) string {
	for i := range h.Queues {
		encoded, err := s.Policy(h.Queues[i].Origin)
		if err != nil {
			return ""
		}
		record, err := robots.DecodeRecord(encoded)
		switch {
		case err != nil || record.Class != robots.ClassUnreachable:
		case record.Failure != robots.FailureNone:
			return "robots.txt, " + record.Failure.String()
		default:
			return fmt.Sprintf("robots.txt, status %d", record.Status)
		}
	}
	return ""
}

// View inspects the crawl. Any goroutine may call it and use what it returns, until Close.
func (v *views) View() *inspect.View {
	var part func() float64
	if v.plan != nil {
		part = v.plan.Budget
	}
	return inspect.New(v.store, inspect.Options{
		Politeness: v.live.Load().politeness, Robots: v.o.Frontier.Robots, Tokens: v.o.Frontier.Tokens,
		Obey: v.o.Frontier.Obey, Recrawl: v.o.Recrawl, RecrawlPart: part, Now: v.o.Now, Live: v.inspectHosts,
		Table:  v.hosts,
		Group:  v.live.Load().group,
		Scope:  func(u weburl.URL, h *storage.Entry) (bool, string) { return isInScope(v.scope.Load(), u, h) },
		Seeds:  v.seeds,
		OptOut: func(host, address string) string { return optouts.OfHost(v.scope.Load(), host, address) },
		Slowdown: func(address string) string {
			s := v.Status()
			return slowdown.Of(s.Slowdowns, address)
		},
	})
}

// seeds returns the seeds in force, or those of earlier runs if the crawl has not begun; nil: they cannot be read.
func (v *views) seeds() *seeds.Set {
	if scope := v.scope.Load(); scope != nil {
		return scope.Seeds()
	}
	if recorded, err := seedbook.Read(v.store); err == nil {
		return seeds.NewSet(v.o.Mode).With(recorded)
	}
	return nil
}

// inspectHosts has the dispatcher inspect hosts. If none runs there is nothing to know.
func (c *commands) inspectHosts(ctx context.Context, hosts []storage.HostID) (live []frontier.View, err error) {
	hosts = hosts[:min(len(hosts), inspect.LivePage)]
	err = c.mailbox.Load().call(ctx, func(d *dispatcher) { live = liveHosts(d.f, hosts) })
	if errors.Is(err, ErrNotRunning) {
		return nil, nil
	}
	return live, err
}

// liveHosts returns what the frontier knows of hosts.
func liveHosts(f *frontier.Frontier, hosts []storage.HostID) []frontier.View {
	live := make([]frontier.View, 0, len(hosts))
	for _, id := range hosts {
		if v, known := f.View(id); known {
			live = append(live, v)
		}
	}
	return live
}

// hosts is inspect.Options.Table. It waits while a run reads more hosts than can be listed without it,
// and until the first survey of a run has come to its end.
func (v *views) hosts(ctx context.Context) (*inspect.Table, error) {
	m := v.mailbox.Load()
	if m == nil && v.store.Counters().Hosts > maxUnlisted {
		select {
		case <-v.ready:
			m = v.mailbox.Load()
		case <-v.ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if !m.isOpen() {
		return v.noTable()
	}
	select {
	case <-v.table.Ready():
		return v.table.Latest(), nil
	case <-m.closed:
		return v.noTable()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// noTable is the answer while no dispatcher runs: the hosts are listed from the store, if there are
// few.
func (v *views) noTable() (*inspect.Table, error) {
	if v.store.Counters().Hosts > maxUnlisted {
		return nil, fmt.Errorf("list the hosts: %w", ErrNotRunning)
	}
	return nil, nil
}
