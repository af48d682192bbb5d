package spool

import (
	"container/list"
	"context"
	"sync"
)

// reservations are the parts of the budget in use by decoders and the like.
type reservations struct {
	mu      sync.Mutex // guards what follows
	holders int
	queue   list.List // of *reservationWait, the longest first
}

// reservationWait is a caller that waits for room.
type reservationWait struct {
	n     int64
	ready chan struct{} // closed when the room is reserved
}

// Reserve reserves n bytes of the budget for memory that the caller allocates itself, such as the
// window of a decoder, until release is called. It waits in a queue while others hold such room and
// the budget is too small. One holder is always allowed, however small the budget, so that one
// always makes progress: a holder waits only for the processor and the disk, and never for more
// room. The error is that of ctx.
func (p *Pool) Reserve(ctx context.Context, n int64) (release func(), err error) {
	if p == nil {
		return func() {}, ctx.Err()
	}
	p.reservations.mu.Lock()
	if p.reservations.queue.Len() == 0 && p.enter(n) {
		p.reservations.mu.Unlock()
		return func() { p.leave(n) }, nil
	}
	w := &reservationWait{n: n, ready: make(chan struct{})}
	element := p.reservations.queue.PushBack(w)
	p.reservations.mu.Unlock()
	select {
	case <-w.ready:
		return func() { p.leave(n) }, nil
	case <-ctx.Done():
	}
	p.reservations.mu.Lock()
	select {
	case <-w.ready: // admitted meanwhile
		p.reservations.mu.Unlock()
		p.leave(n)
	default:
		p.reservations.queue.Remove(element)
		p.admit() // the next one may need less
		p.reservations.mu.Unlock()
	}
	return nil, context.Cause(ctx)
}

// enter reserves n bytes if they are available, or if nobody else holds room. The caller holds the
// lock.
func (p *Pool) enter(n int64) bool {
	if p.reservations.holders == 0 {
		p.held.Add(n)
	} else if !p.reserve(n) {
		return false
	}
	p.reservations.holders++
	return true
}

// leave returns n bytes to the budget.
func (p *Pool) leave(n int64) {
	p.reservations.mu.Lock()
	defer p.reservations.mu.Unlock()
	p.release(n)
	p.reservations.holders--
	p.admit()
}

// admit gives room to the waiting callers, in their order. The caller holds the lock.
func (p *Pool) admit() {
	for e := p.reservations.queue.Front(); e != nil; e = p.reservations.queue.Front() {
		w := e.Value.(*reservationWait)
		if !p.enter(w.n) {
			return
		}
		p.reservations.queue.Remove(e)
		close(w.ready)
	}
}
