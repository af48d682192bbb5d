package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// sameWish is how soon after the first signal another one is the same wish: GNU timeout, for one, signals the process and then its group.
const sameWish = time.Second

// interruptible returns a context that the first SIGINT or SIGTERM ends; another one, a second later or more, ends the process at once, which
// loses nothing that was committed. stop gives the signals back their usual meaning.
func interruptible(parent context.Context, say io.Writer, grace time.Duration) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var listening sync.WaitGroup
	done := make(chan struct{})
	listening.Go(func() {
		for first := (time.Time{}); ; {
			select {
			case <-done:
				return
			case <-signals:
			}
			now := time.Now()
			switch {
			case first.IsZero():
				first = now
			case now.Sub(first) < sameWish:
				continue
			default:
				fmt.Fprintln(say, "amble: stopped at once; what was committed is safe, and the next run makes up for the rest")
				os.Exit(exitInterrupted)
			}
			fmt.Fprintf(say, "amble: stopping; requests in flight have %s to end. A second signal stops at once\n", span(grace))
			cancel()
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		listening.Wait()
		cancel()
	}
}

// untilInterrupted returns a context that the first SIGINT or SIGTERM ends, for commands that say then what they did. A second later they have
// their usual meaning.
func untilInterrupted(parent context.Context) (ctx context.Context, stop func()) {
	ctx, stop = signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(sameWish, stop) })
	return ctx, stop
}

// untilDone reads until its context ends, also where a read waits: that one goes on by itself.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

// Read is part of io.Reader.
func (u *untilDone) Read(piece []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	type result struct {
		piece []byte
		err   error
	}
	done := make(chan result, 1)
	go func() {
		own := make([]byte, len(piece))
		n, err := u.r.Read(own)
		done <- result{own[:n], err}
	}()
	select {
	case r := <-done:
		return copy(piece, r.piece), r.err
	case <-u.ctx.Done():
		return 0, u.ctx.Err()
	}
}
