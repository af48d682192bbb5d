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
// whole request, has taken too long. It belongs to the goroutine of one Do.
type watch struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	now     func() time.Time
	account *account
	total   *bound
	timer   *bound // of the phase
	phase   phase
	pace    pace
	header  http.Header // of the response
}

func newWatch(parent context.Context, total time.Duration, a *account, now func() time.Time) *watch {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watch{ctx: ctx, cancel: cancel, now: now, account: a}
	w.total = w.after(total)
	return w
}

func (w *watch) after(d time.Duration) *bound {
	b := &bound{watch: w, after: d}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waited = w.account.waited()
	b.timer = time.AfterFunc(d, b.end)
	return b
}

// bound is a timer that ends a request. Time in which the request waits for bandwidth does not
// count.
type bound struct {
	watch *watch
	after time.Duration

	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	waited  time.Duration // for bandwidth, when the timer was set
	stopped bool
}

// end ends the request, unless it has waited for bandwidth in the meantime. Then the timer is
// extended by that wait.
func (b *bound) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	waited, still := b.watch.account.waiting()
	switch more := waited + still - b.waited; {
	case b.stopped:
	case more > 0:
		b.waited += more
		b.timer.Reset(more)
	default:
		b.watch.cancel(&timeoutError{after: b.after})
	}
}

// reset gives the request d from now.
func (b *bound) reset(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waited = b.watch.account.waited()
	b.timer.Reset(d)
}

func (b *bound) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	b.timer.Stop()
}

// enter begins a phase that may last d. A zero d keeps the running timer.
func (w *watch) enter(p phase, d time.Duration) {
	w.phase = p
	if d == 0 {
		return
	}
	if w.timer != nil {
		w.timer.stop()
	}
	w.timer = w.after(d)
}

// progress gives the current phase d from now.
func (w *watch) progress(d time.Duration) { w.timer.reset(d) }

// arrived ends the timeouts: what is left needs no network.
func (w *watch) arrived() {
	w.total.stop()
	w.timer.stop()
}

// stop releases the timers and the context.
func (w *watch) stop() {
	w.total.stop()
	if w.timer != nil {
		w.timer.stop()
	}
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
