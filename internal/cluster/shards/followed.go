//go:build !core

package shards

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// register is a journal.Register.
type register interface {
	Read(context.Context) (data []byte, sequence uint64, err error)
	Write(ctx context.Context, data []byte, expected uint64) (uint64, error)
	Values(ctx context.Context, take func(data []byte, sequence uint64)) error
}

// followed is a register of the cluster, and what this node knows of it. It may be used concurrently.
type followed[T any] struct {
	name     string // for people
	log      *slog.Logger
	register register
	encode   func(T) []byte
	decode   func([]byte) (T, error)

	mu       sync.Mutex // guards what follows; nothing blocks under it
	newest   T          // it is not changed
	sequence uint64     // 0: nobody has written it
	changed  chan struct{}
}

// run reads what is written until the context ends.
func (f *followed[T]) run(ctx context.Context) {
	for failed := 0; ctx.Err() == nil; failed++ {
		err := f.register.Values(ctx, func(data []byte, sequence uint64) {
			failed = 0
			if err := f.take(data, sequence); err != nil {
				f.log.Error("a register of the cluster cannot be followed", "error", err)
			}
		})
		if ctx.Err() == nil && failed%warnAgain == 0 {
			f.log.Warn("a register of the cluster cannot be read; it is tried again", "register", f.name, "error", err)
		}
		pause(ctx, retryRead)
	}
}

// read reads the value from the servers. It may be an old one. The error is storage.ErrLogDown if they do not
// answer.
func (f *followed[T]) read(ctx context.Context) error {
	data, sequence, err := f.register.Read(ctx)
	if err == nil && sequence > 0 {
		err = f.take(data, sequence)
	}
	return err
}

// take takes a value of the register.
func (f *followed[T]) take(data []byte, sequence uint64) error {
	value, err := f.decode(data)
	if err != nil {
		return fmt.Errorf("read %s: %w", f.name, err)
	}
	f.see(value, sequence)
	return nil
}

func (f *followed[T]) see(value T, sequence uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if sequence <= f.sequence {
		return
	}
	f.newest, f.sequence = value, sequence
	close(f.changed)
	f.changed = make(chan struct{})
}

// latest returns the newest value that is known, its sequence, and a channel that is closed when there is another.
func (f *followed[T]) latest() (value T, sequence uint64, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest, f.sequence, f.changed
}

// errUnchanged is what a change returns that changes nothing.
var errUnchanged = errors.New("nothing changes")

// retryWrite is how long to wait before a register is written again.
const retryWrite = 20 * time.Millisecond

// change replaces the value by what next returns for it, and returns the sequence of the new one. It is tried
// again until it is written, the context ends or next returns an error. What next finds to be true when it is
// called was true after the value was read.
func (f *followed[T]) change(ctx context.Context, next func(T) (T, error)) (sequence uint64, err error) {
	for {
		now, sequence, _ := f.latest()
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return 0, err
		}
		if ctx.Err() != nil {
			return 0, errors.Join(ctx.Err(), err)
		}
		changed, nextErr := next(now)
		if nextErr != nil {
			return sequence, nextErr
		}
		if sequence, err = f.register.Write(ctx, f.encode(changed), sequence); err == nil {
			f.see(changed, sequence)
			return sequence, nil
		}
		pause(ctx, retryWrite)
		_ = f.read(ctx) // the next write is refused otherwise
	}
}
