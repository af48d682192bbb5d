package politeness

import (
	"testing"
	"time"
)

// at is d after the start of every test. Like an instant of the real clock it has a monotonic reading.
var epoch = time.Now()

func at(d time.Duration) time.Time { return epoch.Add(d) }

func ok(d time.Duration) Result { return Result{Duration: d} }

func TestReadyCountsFromTheEnd(t *testing.T) {
	o := DefaultOptions()
	o.Delay = 5 * time.Second
	h := NewHost(&o, State{}, at(0))
	if !h.Ready().IsZero() {
		t.Fatalf("a host never asked is ready at %v", h.Ready())
	}
	for _, end := range []time.Duration{3 * time.Second, 8 * time.Second, 20 * time.Second, 25*time.Second + 1} {
		h.Ended(at(end), ok(time.Second))
		if got, want := h.Ready().Sub(epoch), end+5*time.Second; got != want {
			t.Errorf("after an end at %v: ready at %v, want %v", end, got, want)
		}
	}
}
