package membership

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
)

// Lease is a shard that this node owns with an epoch, for one run of an engine. Its methods may be
// called concurrently. A nil *Lease stands for a crawl on one machine: it allows everything.
type Lease struct {
	n      *Node
	shard  cluster.Shard
	epoch  cluster.Sequence
	state  atomic.Uint32
	ctx    context.Context
	cancel context.CancelCauseFunc

	requests map[*Request]struct{} // in flight; guarded by n.mu
	opened   bool                  // Engines.Open was called; guarded by n.mu
}

// The states of a lease.
const (
	leaseRunning  uint32 = iota
	leaseDraining        // no request starts; those in flight go on
	leaseBroken
)

// Shard returns the shard.
func (l *Lease) Shard() cluster.Shard { return l.shard }

// Epoch returns the sequence of the epoch, which fences the log of the shard.
func (l *Lease) Epoch() cluster.Sequence { return l.epoch }

// Context returns a context that ends when the engine has to be broken off.
func (l *Lease) Context() context.Context { return l.ctx }

// Ended reports that the engine has ended: none of its requests is in flight and nothing more is
// committed. It is called once, after [Engines.Close] or without it. If the engine could not open or
// has failed, err says why: the node then hands over all its shards.
func (l *Lease) Ended(err error) { l.n.ended(l, err) }

// Refused reports that the log of the shard has refused a message that was fenced by the epoch. The
// engine is broken off.
func (l *Lease) Refused() {
	l.n.do(func(m *cluster.Node, now cluster.Instant) { m.LogRefused(now, l.shard, l.epoch) })
}

// Check returns nil if a request to a host of the shard may start now, else [ErrNotTrusted].
func (l *Lease) Check() error {
	if l == nil || l.state.Load() == leaseRunning && l.n.trust.Left() >= l.n.o.Cluster.LastStart {
		return nil
	}
	return ErrNotTrusted
}

// Need sets how many requests the engine has a use for under a shared limit, those in flight
// included. The node then gets and keeps as many slots of it as others leave. [Engines.Granted] says
// when that has changed something.
func (l *Lease) Need(key string, want int) {
	if l != nil {
		l.n.do(func(m *cluster.Node, now cluster.Instant) { m.Need(now, l.shard, key, want) })
	}
}

// Turn is what an engine has of a shared limit: so many requests may start, after a time, and the
// grant lasts for a time, both from now. If none is free, the grant is still awaited.
type Turn struct {
	Free        int
	After, Left time.Duration
}

// Turn returns what the engine has of a shared limit.
func (l *Lease) Turn(key string) (t Turn) {
	if l == nil {
		return Turn{Free: 1}
	}
	l.n.do(func(m *cluster.Node, now cluster.Instant) {
		have := m.Turn(l.shard, key)
		t = Turn{have.Free, max(0, have.NotBefore.Sub(now)), max(0, have.Until.Sub(now))}
	})
	return t
}

// Begin begins a request to a host of the shard, under shared limits. If it may start under all of
// them it takes a slot of each and returns the request, which the caller ends. Else it takes none and
// returns [ErrNotTrusted]. The context of the request is a child of ctx.
func (l *Lease) Begin(ctx context.Context, keys ...string) (*Request, error) {
	if l == nil {
		return &Request{ctx: ctx}, nil
	}
	if err := l.Check(); err != nil {
		return nil, err
	}
	r := &Request{lease: l, keys: keys}
	err := ErrNotTrusted
	l.n.do(func(m *cluster.Node, now cluster.Instant) {
		for _, key := range keys {
			if !m.MayStartUnder(now, l.shard, key) {
				return
			}
		}
		if l.n.leases[l.shard] != l || !m.MayStart(now, l.shard) {
			return
		}
		for _, key := range keys {
			m.Start(now, l.shard, key)
		}
		r.ctx, r.cancel = context.WithCancelCause(ctx)
		l.requests[r] = struct{}{}
		err = nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Request is a request to a host of a shard that this node owns. Its methods may be called
// concurrently.
type Request struct {
	lease  *Lease // nil: there is no cluster
	keys   []string
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Context returns the context of the request. It ends with the cause [ErrNotTrusted] when the trust,
// a grant or the lease ends.
func (r *Request) Context() context.Context { return r.ctx }

// Check returns nil if the request may be written now, else [ErrNotTrusted]. It is called between
// connecting and writing.
func (r *Request) Check() error {
	l := r.lease
	if l == nil {
		return nil
	}
	least := l.n.o.Cluster.LastStart
	if l.state.Load() == leaseBroken || l.n.trust.Left() < least {
		return ErrNotTrusted
	}
	if len(r.keys) == 0 {
		return nil
	}
	err := ErrNotTrusted
	l.n.do(func(m *cluster.Node, now cluster.Instant) {
		if r.until(m).Sub(now) >= least {
			err = nil
		}
	})
	return err
}

// End ends the request, whether it was made or not. It may be called again.
func (r *Request) End() {
	l := r.lease
	if l == nil {
		return
	}
	l.n.do(func(m *cluster.Node, now cluster.Instant) {
		if _, inFlight := l.requests[r]; !inFlight {
			return
		}
		delete(l.requests, r)
		for _, key := range r.keys {
			m.End(now, l.shard, key)
		}
	})
	r.cancel(context.Canceled)
}

// until returns the instant at which the request is broken off. n.mu is held.
func (r *Request) until(m *cluster.Node) cluster.Instant {
	until := m.Trust()
	for _, key := range r.keys {
		until = min(until, m.Until(r.lease.shard, key))
	}
	return until
}
