package service

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestBudget: claims are served in their order as far as there is room; one larger than the budget is served when
// nobody else has any; a claim of nothing waits only while the budget is overdrawn, and for no other claim; one whose
// context ends leaves nothing behind.
func TestBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		served := make(chan string, 10)
		claim := func(ctx context.Context, name string, n int64) {
			go func() {
				if b.take(ctx, n) == nil {
					served <- name
				}
			}()
			synctest.Wait()
		}
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			for _, name := range want {
				select {
				case got := <-served:
					assert.Equal(t, got, name, "is served")
				default:
					t.Errorf("%s is not served", name)
				}
			}
			if len(served) > 0 {
				t.Errorf("%s is served too", <-served)
			}
		}
		canceled, cancel := context.WithCancel(t.Context())
		claim(t.Context(), "a", 60)
		claim(canceled, "large", 500)
		claim(t.Context(), "b", 40) // has room, and is behind another
		claim(t.Context(), "decoding", 0)
		expect("a", "decoding")
		cancel()
		expect("b")
		b.release(-10)
		claim(t.Context(), "overdrawn", 0)
		claim(t.Context(), "larger", 500)
		expect()
		b.release(20)
		expect("overdrawn")
		b.release(90)
		expect("larger")
		assert.Equal(t, b.held(), 500, "bytes are held")
	})
}
