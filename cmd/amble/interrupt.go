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

// interruptible returns a context that the first SIGINT or SIGTERM ends; the second ends the process at once, which loses nothing that was
// committed. stop gives the signals back their usual meaning.
func interruptible(parent context.Context, say io.Writer, grace time.Duration) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var listening sync.WaitGroup
	done := make(chan struct{})
	listening.Go(func() {
		for first := true; ; first = false {
			select {
			case <-done:
				return
			case <-signals:
			}
			if !first {
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
