package membership

import (
	"context"
	"time"
)

// breakOff ends a holding and its requests. n.mu is held.
func (h *Holding) breakOff() {
	h.state.Store(stateBroken)
	h.cancel(ErrNotTrusted)
	for r := range h.requests {
		r.cancel(ErrNotTrusted)
	}
}

// breakAll ends all engines at once and waits for their end. Nothing happens after it.
func (n *Node) breakAll() {
	n.mu.Lock()
	n.closed, n.actions = true, nil
	n.trust.set(0)
	var open []*Holding
	for s, h := range n.holdings {
		if h.breakOff(); h.opened {
			open = append(open, h)
		} else {
			delete(n.holdings, s)
		}
	}
	n.mu.Unlock()
	for _, h := range open {
		n.o.Engines.Close(h, false)
	}
	for len(n.shards()) > 0 {
		<-n.wake
	}
}

// guard breaks off requests when the trust, or a grant, ends.
func (n *Node) guard(ctx context.Context) {
	timer := time.NewTimer(guardEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.alarm:
		case <-timer.C:
		}
		timer.Reset(min(guardEvery, n.breakOffLate()))
	}
}

// breakOffLate breaks off requests whose time is over, and returns how long the next one has.
func (n *shell) breakOffLate() (next time.Duration) {
	next = guardEvery
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.machine == nil {
		return next
	}
	now := n.now()
	for _, h := range n.holdings {
		for r := range h.requests {
			if left := r.until(n.machine).Sub(now); left <= 0 {
				r.cancel(ErrNotTrusted)
			} else {
				next = min(next, left)
			}
		}
	}
	return next
}

// ring wakes the goroutine that waits at a channel for one.
func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
