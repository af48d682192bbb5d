package fetch

import (
	"context"
	"fmt"
	"net"
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

// op is the name of the phase in errors.
func (p phase) op() string {
	return [...]string{"request", "connect", "tls", "send", "header", "body"}[p]
}

// timeout is the kind that running out of time in the phase has.
func (p phase) timeout() Kind {
	return [...]Kind{KindConnectTimeout, KindConnectTimeout, KindTLSTimeout,
		KindHeaderTimeout, KindHeaderTimeout, KindBodyTimeout}[p]
}

// timeoutError is the cause of a context that a watch ended.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string   { return fmt.Sprintf("nothing within %v", e.after) }
func (e *timeoutError) Timeout() bool   { return true }
func (e *timeoutError) Temporary() bool { return true }

// watch ends a request in time: its context is cancelled when the phase at
// hand, or the request as a whole, has taken too long. It belongs to the
// goroutine of one Do.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	total  *time.Timer
	timer  *time.Timer // of the phase
	phase  phase
	pace   pace
}

func newWatch(parent context.Context, total time.Duration) *watch {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watch{ctx: ctx, cancel: cancel}
	w.total = w.after(total)
	return w
}

func (w *watch) after(d time.Duration) *time.Timer {
	cause := &timeoutError{after: d}
	return time.AfterFunc(d, func() { w.cancel(cause) })
}

// enter begins a phase that may last d. A zero d keeps the running timer.
func (w *watch) enter(p phase, d time.Duration) {
	w.phase = p
	if d == 0 {
		return
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	w.timer = w.after(d)
}

// progress gives the phase at hand d from now.
func (w *watch) progress(d time.Duration) { w.timer.Reset(d) }

// arrived ends the bounds in time: what is still to be done is not for the network.
func (w *watch) arrived() {
	w.total.Stop()
	w.timer.Stop()
}

// stop releases the timers and the context.
func (w *watch) stop() {
	w.total.Stop()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel(context.Canceled)
}

// interrupt makes every pending and later read and write of c fail when the
// watch ends. The returned function takes that back and reports whether c is
// still untouched.
func (w *watch) interrupt(c net.Conn) (release func() bool) {
	return context.AfterFunc(w.ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}
