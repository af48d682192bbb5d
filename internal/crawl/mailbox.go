package crawl

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// ErrNotRunning says that the crawl has not begun yet, or is ending: nothing can be given to it.
var ErrNotRunning = errors.New("the crawl is starting or ending")

// mailbox is where other goroutines reach the dispatcher, which serves them between all else that
// it does. A nil mailbox belongs to a crawl that has not begun. It is safe for concurrent use.
type mailbox struct {
	calls     chan func(*dispatcher) // unbuffered; each is short
	additions chan *addition         // unbuffered; each waits for the commit of the one before
	closed    chan struct{}          // closed by the dispatcher when it serves nobody any more
	draining  atomic.Bool            // the crawl takes no URLs from outside
}

func newMailbox() *mailbox {
	return &mailbox{calls: make(chan func(*dispatcher)), additions: make(chan *addition), closed: make(chan struct{})}
}

// isOpen reports whether a dispatcher serves the mailbox.
func (m *mailbox) isOpen() bool {
	if m == nil {
		return false
	}
	select {
	case <-m.closed:
		return false
	default:
		return true
	}
}

// call has the dispatcher run f, and returns when it has. The error is ErrNotRunning or that of the
// context, and f did not run.
func (m *mailbox) call(ctx context.Context, f func(*dispatcher)) error {
	if m == nil {
		return ErrNotRunning
	}
	done := make(chan struct{})
	select {
	case m.calls <- func(d *dispatcher) { f(d); close(done) }:
		<-done
		return nil
	case <-m.closed:
		return ErrNotRunning
	case <-ctx.Done():
		return ctx.Err()
	}
}

// submit has the dispatcher run command, and returns when what that changed is on disk. The error
// is that of call, that of command, which then has changed nothing, or why the commit failed. After
// the error of the context the command may be in force.
func (m *mailbox) submit(ctx context.Context, command func(*dispatcher) error) error {
	committed := make(chan error, 1)
	err := m.call(ctx, func(d *dispatcher) {
		if err := command(d); err != nil {
			committed <- err
			return
		}
		d.pending.waiting = append(d.pending.waiting, committed)
	})
	if err != nil {
		return err
	}
	select {
	case err := <-committed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// add has an addition committed and waits for that. After an error nobody knows whether it was
// committed.
func (m *mailbox) add(ctx context.Context, a *addition) (added, error) {
	a.answer = make(chan added, 1)
	select {
	case m.additions <- a:
	case <-m.closed:
		return added{}, ErrNotRunning
	case <-ctx.Done():
		return added{}, ctx.Err()
	}
	select {
	case done := <-a.answer:
		return done, done.err
	case <-ctx.Done():
		return added{}, ctx.Err()
	}
}

// additions returns the channel that the next addition comes from; nil while one waits for its
// commit.
func (d *dispatcher) additions() <-chan *addition {
	if d.addition != nil {
		return nil
	}
	return d.mailbox.additions
}

// answerAddition tells whoever added URLs what their commit did.
func (b *batch) answerAddition() {
	if b.addition == nil {
		return
	}
	if b.err != nil {
		b.addition.answer <- added{err: fmt.Errorf("commit the URLs: %w", b.err)}
		return
	}
	b.addition.answer <- added{results: b.rows.InsertResults, changed: b.result.Changed, took: b.took}
}
