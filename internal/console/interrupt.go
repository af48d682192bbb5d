package console

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

// sameWish is how soon after the first signal another one is taken for the same: GNU timeout, for
// example, signals the process and then its group.
const sameWish = time.Second

// Interruptible returns a context that the first SIGINT or SIGTERM ends. Another one, a second
// later or more, ends the process at once, and nothing that was committed is lost. stopping is what the
// first one prints. stop restores the default handling of the signals.
func Interruptible(parent context.Context, say io.Writer, stopping string) (ctx context.Context, stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, end := interruptible(parent, signals, say, stopping, os.Exit)
	return ctx, func() {
		signal.Stop(signals)
		end()
	}
}

// interruptible is Interruptible with the signals, and with what ends the process.
func interruptible(
	parent context.Context, signals <-chan os.Signal, say io.Writer, stopping string, exit func(code int),
) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancel(parent)
	var listening sync.WaitGroup
	done := make(chan struct{})
	listening.Go(func() {
		var again <-chan time.Time // from then on another signal is another wish
		for {
			select {
			case <-done:
				return
			case <-signals:
			}
			if again == nil {
				again = time.After(sameWish)
				fmt.Fprintln(say, stopping)
				cancel()
				continue
			}
			select {
			case <-again:
				fmt.Fprintln(say, "amble: stopped at once; what was committed is safe, and the next run fetches the "+
					"rest")
				exit(exitInterrupted)
			default:
			}
		}
	})
	return ctx, func() {
		close(done)
		listening.Wait()
		cancel()
	}
}
