package membership

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/amble-crawler/amble/internal/cluster"
)

// Holding is a shard that this node owns with an epoch, for one run of an engine. Its methods may be
// called concurrently. A nil *Holding stands for a crawl on one machine: it allows everything.
type Holding struct {
	n      *Node
	shard  cluster.Shard
	epoch  cluster.Sequence
	state  atomic.Uint32
	ctx    context.Context
	cancel context.CancelCauseFunc

	requests map[*Request]struct{} // in flight; guarded by n.mu
	opened   bool                  // Engines.Open was called; guarded by n.mu
}

// The states of a holding.
const (
	stateRunning  uint32 = iota
	stateDraining        // no request starts; those in flight go on
	stateBroken
)

// Shard returns the shard.
func (h *Holding) Shard() cluster.Shard { return h.shard }

// Epoch returns the sequence of the epoch, which fences the log of the shard.
func (h *Holding) Epoch() cluster.Sequence { return h.epoch }

// Context returns a context that ends when the engine has to be broken off.
func (h *Holding) Context() context.Context { return h.ctx }

// Ended reports that the engine has ended: none of its requests is in flight and nothing more is
// committed. It is called once, or Failed is, after [Engines.Close] or without it. If err is not nil this node
// cannot run engines, whatever their shards: it hands over all of them.
func (h *Holding) Ended(err error) {
	if err != nil {
		h.n.log.Error("an engine has failed, so this node hands over its shards", "shard", h.shard, "error", err)
		h.n.drain(fmt.Sprintf("the engine of shard %d has failed: %v", h.shard, err))
	}
	h.n.ended(h, func(m *cluster.Node, now cluster.Instant) { m.EngineStopped(now, h.shard) })
}

// Failed reports that the engine has ended like Ended, for a reason that is not this node's: it would fail on
// another one too. The shard is put in quarantine, and the others go on.
func (h *Holding) Failed(f cluster.Fault) {
	h.n.log.Error("the engine of a shard has failed, so the shard is in quarantine: it is tried again after a pause, "+
		"which grows; amble cluster status says what can be done", "shard", h.shard, "error", f.Reason)
	h.n.ended(h, func(m *cluster.Node, now cluster.Instant) { m.EngineFailed(now, h.shard, f) })
}

// Refused reports that the log of the shard has refused a message that was fenced by the epoch. The
// engine is broken off.
func (h *Holding) Refused() {
	h.n.do(func(m *cluster.Node, now cluster.Instant) { m.LogRefused(now, h.shard, h.epoch) })
}

// Check returns nil if a request to a host of the shard may start now, else [ErrNotTrusted].
func (h *Holding) Check() error {
	if h == nil || h.state.Load() == stateRunning && h.n.trust.Left() >= h.n.o.Cluster.LastStart {
		return nil
	}
	return ErrNotTrusted
}

// Begin begins a request to a host of the shard. The caller has a slot of each of the shared limits:
// see [Node.Start]. If it may not be made, the error is [ErrNotTrusted]. The caller ends it. The context
// of the request is a child of ctx.
func (h *Holding) Begin(ctx context.Context, keys ...string) (*Request, error) {
	if h == nil {
		return &Request{ctx: ctx}, nil
	}
	if err := h.Check(); err != nil {
		return nil, err
	}
	r := &Request{holding: h, keys: keys}
	err := ErrNotTrusted
	h.n.do(func(m *cluster.Node, now cluster.Instant) {
		for _, key := range keys {
			if !m.MayContinue(now, key) {
				return
			}
		}
		if h.n.holdings[h.shard] != h || !m.MayStart(now, h.shard) {
			return
		}
		r.ctx, r.cancel = context.WithCancelCause(ctx)
		h.requests[r] = struct{}{}
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
	holding *Holding // nil: there is no cluster
	keys    []string
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

// Context returns the context of the request. It ends with the cause [ErrNotTrusted] when the trust,
// a grant or the holding ends.
func (r *Request) Context() context.Context { return r.ctx }

// Check returns nil if the request may be written now, else [ErrNotTrusted]. It is called between
// connecting and writing.
func (r *Request) Check() error {
	h := r.holding
	if h == nil {
		return nil
	}
	least := h.n.o.Cluster.LastStart
	if h.state.Load() == stateBroken || h.n.trust.Left() < least {
		return ErrNotTrusted
	}
	if len(r.keys) == 0 {
		return nil
	}
	err := ErrNotTrusted
	h.n.do(func(m *cluster.Node, now cluster.Instant) {
		if r.until(m).Sub(now) >= least && r.ctx.Err() == nil {
			err = nil
		}
	})
	return err
}

// End ends the request, whether it was made or not. It may be called again.
func (r *Request) End() {
	h := r.holding
	if h == nil {
		return
	}
	h.n.do(func(*cluster.Node, cluster.Instant) { delete(h.requests, r) })
	r.cancel(context.Canceled)
}

// until returns the instant at which the request is broken off. n.mu is held.
func (r *Request) until(m *cluster.Node) cluster.Instant {
	until := m.Trust()
	for _, key := range r.keys {
		until = min(until, m.Until(key))
	}
	return until
}
