package quota

import (
	"slices"
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
)

// Engine is what one engine has of the quota of its process. Its dispatcher owns it.
type Engine struct {
	sync.Locker // keeps the other engines from taking what AdmitsBeyond has found

	of   *Process
	Wake chan struct{} // holds one: the engine may be admitted now
	full bool          // the last request was refused because too many are in flight
	next time.Time     // the earliest instant of the next request, as of the last one that had to wait

	scarce bool          // hosts were due when a request had to wait: requests are scarce, workers are not
	since  time.Time     // when a host that is due began to wait; zero: none does
	waited time.Duration // in which hosts were due and the rate held them

	// Under of.mu.
	waiting bool // it is in of.waiting
	lends   bool // it is in of.lending
}

// Add adds one more engine.
func (p *Process) Add() *Engine { return &Engine{Locker: &p.mu, of: p, Wake: make(chan struct{}, 1)} }

// Ring wakes the engine. Any goroutine may call it.
func (e *Engine) Ring() {
	select {
	case e.Wake <- struct{}{}:
	default: // it has not looked yet
	}
}

// Next is when the next request may be made of a frontier that has one at an instant; false: too many are in flight.
func (e *Engine) Next(at time.Time) (time.Time, bool) {
	if at.Before(e.next) {
		at = e.next
	}
	return at, !e.full
}

// admits reports whether a worker may make a request now, one of so many beyond those that all engines may have in
// flight, and notes when the next one may if the rate is what forbids it. The caller holds the lock.
func (e *Engine) admits(beyond int, now time.Time) bool {
	ahead := len(e.of.waiting)
	if e.waiting {
		ahead = slices.Index(e.of.waiting, e)
	}
	if e.full = e.of.used+ahead >= e.of.limits.Workers+beyond; e.full {
		return false
	}
	next := e.of.rate.wait(ahead, now)
	if !next.IsZero() {
		e.next = next
	}
	return next.IsZero()
}

// AdmitsBeyond reports whether a request for a page of a fetcher may begin now, one of so many beyond those that all
// engines may have in flight. Otherwise next is when; zero: the engine is woken when a request has ended. The caller
// holds the lock.
func (e *Engine) AdmitsBeyond(beyond int, now time.Time) (ok bool, next time.Time) {
	if ok = e.admits(beyond, now); !ok && e.full {
		e.waitToLend()
	} else if !ok {
		next = e.next
	}
	return ok, next
}

// Took takes note of a lease that was handed out. A match makes no request. The caller holds the lock.
func (e *Engine) Took(l *frontier.Lease, now time.Time) {
	if l.Kind != frontier.Match {
		e.of.rate.take(now)
	}
}

// Begin counts a request of a worker. The caller holds the lock.
func (e *Engine) Begin() { e.of.used++ }

// End takes note that a request of a worker has ended.
func (e *Engine) End() {
	e.Lock()
	defer e.Unlock()
	e.of.used--
	e.of.wakeUp(0)
}

// NextLease takes the next request from the frontier, if the quota allows one.
func (e *Engine) NextLease(f *frontier.Frontier, now time.Time) (l frontier.Lease, ok bool) {
	e.Lock()
	defer e.Unlock()
	if !e.admits(0, now) {
		at, waits := f.NextWake()
		due := waits && !at.After(now)
		e.queue(due)
		e.scarce = due && !e.full
		e.hold(e.scarce, now)
		return l, false
	}
	e.queue(false)
	e.hold(false, now)
	if e.scarce {
		l, ok = f.NextInTurn(now)
	} else {
		l, ok = f.Next(now)
	}
	if e.scarce = e.scarce && ok; ok {
		e.Begin()
		e.Took(&l, now)
	}
	return l, ok
}

// queue takes note of whether the engine has something to fetch and was refused. One that is admitted
// and goes on goes to the end of the queue. The caller holds the lock.
func (e *Engine) queue(waits bool) {
	switch {
	case waits == e.waiting:
	case waits:
		e.of.waiting, e.waiting = append(e.of.waiting, e), true
	default:
		i := slices.Index(e.of.waiting, e)
		e.of.waiting, e.waiting = slices.Delete(e.of.waiting, i, i+1), false
		e.of.wakeUp(i)
	}
}

// BeginLookup counts the lookup of a name, if one more may be in flight. If not, the engine is woken
// when one has ended.
func (e *Engine) BeginLookup() bool {
	e.Lock()
	defer e.Unlock()
	if e.of.lookups >= e.of.limits.Lookups {
		e.waitToLend()
		return false
	}
	e.of.lookups++
	return true
}

// EndLookup takes note that a lookup has ended.
func (e *Engine) EndLookup() {
	e.Lock()
	defer e.Unlock()
	e.of.lookups--
	e.of.wakeUp(len(e.of.waiting))
}

// waitToLend has the engine woken when a request of a worker has ended, for pages of fetchers that may
// need one, or a lookup. The caller holds the lock.
func (e *Engine) waitToLend() {
	if !e.lends {
		e.of.lending, e.lends = append(e.of.lending, e), true
	}
}

// Leave takes note that the engine has nothing to fetch at the moment.
func (e *Engine) Leave() {
	e.Lock()
	defer e.Unlock()
	e.full = false
	e.queue(false)
}

// Change puts other limits in force, for all engines.
func (e *Engine) Change(l Limits, now time.Time) {
	e.of.Change(l)
	e.next, e.scarce = time.Time{}, false
	e.hold(false, now)
}

// Idle takes note that workers are what the crawl waits for, or that nothing may be handed out at all.
func (e *Engine) Idle(now time.Time) {
	e.scarce = false
	e.hold(false, now)
}

// hold takes note of whether hosts that are due wait for the rate.
func (e *Engine) hold(held bool, now time.Time) {
	switch {
	case held && e.since.IsZero():
		e.since = now
	case !held && !e.since.IsZero():
		e.waited += now.Sub(e.since)
		e.since = time.Time{}
	}
}

// Waited is for how long hosts that were due have waited for the rate.
func (e *Engine) Waited(now time.Time) time.Duration {
	if e.since.IsZero() {
		return e.waited
	}
	return e.waited + now.Sub(e.since)
}
