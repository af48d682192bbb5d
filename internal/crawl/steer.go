package crawl

import (
	"context"
	"errors"
)

// ErrDraining says that a crawl takes no more URLs because it is to end when it is done.
var ErrDraining = errors.New("the crawl is draining: it takes no more URLs")

// steering is how the operator wants the crawl to go on.
type steering struct {
	stop    bool
	winding bool
	done    chan struct{}
}

// Drain makes the crawl end when it is done with all that it knows and what that leads to, as with ExitWhenDone; on false it goes on as before. Until then it
// takes no URLs from outside. Any goroutine may call it. The error is ErrNotRunning, or that of the context.
func (e *Engine) Drain(ctx context.Context, on bool) error {
	return e.steer(ctx, &steering{winding: on})
}

// Stop makes Run end as if its context had ended: what is in flight may finish within Live.ShutdownGrace. It returns at once. Any goroutine may
// call it; the errors are those of Drain.
func (e *Engine) Stop(ctx context.Context) error { return e.steer(ctx, &steering{stop: true}) }

func (e *Engine) steer(ctx context.Context, s *steering) error {
	d := e.desk.Load()
	if d == nil {
		return ErrNotRunning
	}
	s.done = make(chan struct{})
	select {
	case d.steers <- s:
		<-s.done
		return nil
	case <-d.closed:
		return ErrNotRunning
	case <-ctx.Done():
		return ctx.Err()
	}
}

// steer follows.
func (r *run) steer(s *steering) {
	if s.stop || s.winding != r.winding {
		r.log.Info("the operator steers the crawl", "stop", s.stop, "drain", s.winding)
	}
	r.stopped, r.winding = s.stop, s.winding
	r.refusing.Store(r.winding)
	r.report("running")
	close(s.done)
}

// ends reports whether the crawl is over when all is done.
func (r *run) ends() bool { return r.winding || r.force.Load().ExitWhenDone }
