package crawl

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// Live are the options that may change while a crawl runs.
type Live struct {
	Workers          int
	MaxRate          float64
	Bandwidth        int64
	ExitWhenDone     bool
	GiveUpAfter      time.Duration
	ShutdownGrace    time.Duration
	MaxPages         uint64
	Include, Exclude []*regexp.Regexp
	Politeness       politeness.Options
	Overrides        []frontier.Override
	HostBudget       uint32
	RenewShare       float64
	Resolvers        int
}

// Live are those of the options that may change.
func (o Options) Live() Live {
	return Live{
		Workers: o.Workers, MaxRate: o.MaxRate, Bandwidth: o.Bandwidth,
		ExitWhenDone: o.ExitWhenDone, GiveUpAfter: o.GiveUpAfter, ShutdownGrace: o.ShutdownGrace, MaxPages: o.MaxPages,
		Include: o.Include, Exclude: o.Exclude, Politeness: o.Frontier.Politeness, Overrides: o.Frontier.Overrides, HostBudget: o.Frontier.HostBudget, RenewShare: o.Frontier.RenewShare,
		Resolvers: o.Frontier.Resolvers,
	}
}

// with are the options with others that changed.
func (o Options) with(l Live) Options {
	o.Workers, o.ExitWhenDone, o.GiveUpAfter, o.ShutdownGrace, o.MaxPages = l.Workers, l.ExitWhenDone, l.GiveUpAfter, l.ShutdownGrace, l.MaxPages
	o.MaxRate, o.Bandwidth = l.MaxRate, l.Bandwidth
	o.Include, o.Exclude = l.Include, l.Exclude
	o.Frontier.Politeness, o.Frontier.Overrides, o.Frontier.HostBudget, o.Frontier.RenewShare = l.Politeness, l.Overrides, l.HostBudget, l.RenewShare
	o.Frontier.Resolvers = l.Resolvers
	return o
}

// inForce are the live options as they are now, and what follows from them. It is immutable.
type inForce struct {
	Live
	politeness func(host string) *politeness.Options
}

func (e *Engine) put(l Live) {
	e.force.Store(&inForce{Live: l, politeness: e.o.with(l).Frontier.HostPoliteness()})
}

// limitBandwidth puts the limits of the bytes that are received in force.
func (e *Engine) limitBandwidth() {
	force := e.force.Load()
	limited := func(o frontier.Override) bool { return o.Politeness.Bandwidth > 0 }
	var ofHost func(string) int64
	if force.Politeness.Bandwidth > 0 || slices.ContainsFunc(force.Overrides, limited) {
		ofHost = func(host string) int64 { return force.politeness(host).Bandwidth }
	}
	e.client.SetBandwidth(force.Bandwidth, ofHost)
}

// change is a set of live options on its way to the dispatcher.
type change struct {
	live       Live
	overridden map[storage.HostID]int
	done       chan struct{}
}

// Change puts live options in force, all at once, and returns when they are. A request that is under way ends as it began; fewer workers
// means that no new ones begin until enough have ended. Any goroutine may call it. The error says what is wrong with the options, or is ErrNotRunning
// or that of the context.
func (e *Engine) Change(ctx context.Context, l Live) error {
	if err := e.o.with(l).Validate(); err != nil {
		return err
	}
	d := e.desk.Load()
	if d == nil {
		return ErrNotRunning
	}
	overridden, err := e.overridden(l.Overrides)
	if err != nil {
		return fmt.Errorf("find the hosts of overrides: %w", err)
	}
	c := &change{live: l, overridden: overridden, done: make(chan struct{})}
	select {
	case d.changes <- c:
		<-c.done
		return nil
	case <-d.closed:
		return ErrNotRunning
	case <-ctx.Done():
		return ctx.Err()
	}
}

// overridden finds the hosts that overrides name.
func (e *Engine) overridden(list []frontier.Override) (map[storage.HostID]int, error) {
	found, find := make(map[storage.HostID]int), frontier.FindOverride(list)
	for i := range list {
		for _, pattern := range list[i].Hosts {
			under, below := strings.CutPrefix(pattern, "*.")
			err := e.store.Names(under, "", func(name string, id storage.HostID) error {
				if j := find(name); j >= 0 {
					found[id] = j
				}
				if !below {
					return storage.ErrStop // the name itself comes first
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// change puts live options in force.
func (r *run) change(c *change) {
	r.put(c.live)
	r.limitBandwidth()
	r.maxRate.set(c.live.MaxRate, r.now())
	r.grow()
	scope := r.f.Scope().WithExpressions(c.live.Include, c.live.Exclude)
	r.f.SetScope(scope)
	r.scope.Store(scope)
	r.f.Change(frontier.Change{
		Politeness: c.live.Politeness, Overrides: c.live.Overrides, HostBudget: c.live.HostBudget, RenewShare: c.live.RenewShare, Overridden: c.overridden,
		Resolvers: c.live.Resolvers, Workers: c.live.Workers,
	}, r.now())
	r.reconsiderLive()
	r.collect()
	close(c.done)
}

// grow starts the workers that are missing. Those that are too many wait for leases that do not come.
func (r *run) grow() {
	for ; r.workers < r.force.Load().Workers; r.workers++ {
		r.running.Go(r.work)
	}
}
