package console

import (
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestInterruptible: the first signal ends the context. Another one within a second is the same wish, a later one ends
// the process.
func TestInterruptible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals, code := make(chan os.Signal), 0
		ctx, end := interruptible(t.Context(), signals, io.Discard, "stopping", func(c int) { code = c })
		defer end()
		if synctest.Wait(); ctx.Err() != nil {
			t.Error("the context has ended before a signal")
		}
		for i, step := range []struct {
			after time.Duration
			code  int
		}{{0, 0}, {0, 0}, {sameWish - time.Millisecond, 0}, {2 * time.Millisecond, exitInterrupted}} {
			time.Sleep(step.after)
			signals <- os.Interrupt
			synctest.Wait()
			assert.True(t, code == step.code && ctx.Err() != nil, "signal %d: exit code %d, want %d; context: %v", i+1,
				code, step.code, ctx.Err())
		}
	})
}
