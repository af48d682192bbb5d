package fetch

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// phase is one part of a request.
type phase uint8

const (
	phaseRequest phase = iota // nothing done yet
	phaseConnect
	phaseTLS
	phaseSend
	phaseHeader
	phaseBody
)

// op returns the name of the phase in errors.
func (p phase) op() string {
	return [...]string{"request", "connect", "tls", "send", "header", "body"}[p]
}

// timeout returns the kind of a timeout in the phase.
func (p phase) timeout() Kind {
	return [...]Kind{KindConnectTimeout, KindConnectTimeout, KindTLSTimeout,
		KindHeaderTimeout, KindHeaderTimeout, KindBodyTimeout}[p]
}

// timeoutError is the cause of a context that a watch ended.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string   { return fmt.Sprintf("nothing within %v", e.after) }
func (e *timeoutError) Timeout() bool   { return true }
func (e *timeoutError) Temporary() bool { return true }

// watch ends a request in time: it cancels the request's context when the current phase, or the
// whole request, has taken too long. It belongs to the goroutine of one Do, and has one timer for both.
type watch struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	now     func() time.Time
	account *account
	phase   phase
	pace    pace
	header  http.Header // of the response

	mu      sync.Mutex // guards what follows
	total   bound      // of the request
	part    bound      // of its phase
	timer   *time.Timer
	rings   time.Time // when the timer rings; by then no bound is over
	stopped bool
}

// bound is how long a request, or a phase of it, may last. Time in which the request waits for bandwidth does not
// count.
type bound struct {
	lasts  time.Duration // 0: for ever
	start  time.Time
	waited time.Duration // for bandwidth, until start
}

// left returns what is left of a bound at an instant until which the request has waited for bandwidth.
func (b *bound) left(now time.Time, waited time.Duration) time.Duration {
	return b.start.Add(b.lasts + waited - b.waited).Sub(now)
}

func newWatch(parent context.Context, total time.Duration, a *account, now func() time.Time) *watch {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watch{ctx: ctx, cancel: cancel, now: now, account: a}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beginLocked(&w.total, total)
	w.rings, w.timer = w.total.start.Add(total), time.AfterFunc(total, w.ring)
	return w
}

// beginLocked begins a bound.
func (w *watch) beginLocked(b *bound, lasts time.Duration) {
	*b = bound{lasts: lasts, start: w.now(), waited: w.account.waited()}
}

// ring ends the request if one of its bounds is over. Else the timer rings when the next may be: a bound that begins
// again leaves the timer as it is, and so do waits for bandwidth.
func (w *watch) ring() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	waited, still := w.account.waiting()
	now, next := w.now(), w.total
	left := next.left(now, waited+still)
	if l := w.part.left(now, waited+still); w.part.lasts > 0 && l < left {
		next, left = w.part, l
	}
	if left <= 0 {
		w.cancel(&timeoutError{after: next.lasts})
		return
	}
	w.rings = now.Add(left)
	w.timer.Reset(left)
}

// enter begins a phase that may last d. A zero d keeps the bound of the phase before.
func (w *watch) enter(p phase, d time.Duration) {
	w.phase = p
	if d > 0 {
		w.progress(d)
	}
}

// progress gives the current phase d from now.
func (w *watch) progress(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beginLocked(&w.part, d)
	if at := w.part.start.Add(d); at.Before(w.rings) && !w.stopped {
		w.rings = at
		w.timer.Reset(d)
	}
}

// arrived ends the timeouts: what is left needs no network.
func (w *watch) arrived() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// stop releases the timer and the context.
func (w *watch) stop() {
	w.arrived()
	w.cancel(context.Canceled)
}

// interrupt makes every pending and later read and write of c fail when the watch ends, and
// attributes what c receives until then to the request. The returned function undoes that and
// reports whether c is still usable.
func (w *watch) interrupt(c *meter) (release func() bool) {
	c.account.Store(w.account)
	stop := context.AfterFunc(w.ctx, c.interrupt)
	return func() bool {
		c.account.Store(nil)
		return stop()
	}
}

// guard returns a permit that ends the watch when it refuses. HTTP/2 and TLS would replace its error
// by their own.
func (w *watch) guard(permit func() error) func() error {
	if permit == nil {
		return nil
	}
	return func() error {
		err := permit()
		if err != nil {
			w.cancel(err)
		}
		return err
	}
}

// trip begins a round trip. The returned function returns how long it has taken, without waits for
// bandwidth.
func (w *watch) trip() (took func() time.Duration) {
	start, waited := w.now(), w.account.waited()
	return func() time.Duration { return w.now().Sub(start) - (w.account.waited() - waited) }
}
