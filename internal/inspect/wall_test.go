package inspect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/wall"
	"github.com/amble-crawler/amble/storage"
)

// TestWallOf: what is shown of a wall follows its state as it is stored.
func TestWallOf(t *testing.T) {
	var state wall.State
	at := time.Unix(1_800_000_000, 0)
	shown := func() *Wall {
		t.Helper()
		b, _ := state.AppendBinary(nil) // its error is always nil
		w, err := wallOf(&storage.Host{Wall: b})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	refuse := func(n int) {
		for i := range n {
			at = at.Add(time.Minute)
			target := fmt.Sprintf("/%d/%d", i%5, i)
			a := wall.Answer{Status: 403, Took: time.Second, URL: uint64(at.Unix()) * 7919}
			a.Section, a.Top = wall.Sections(target)
			state.Observe(at, a)
		}
	}
	if w := shown(); w != nil {
		t.Errorf("without a response: %+v", w)
	}
	refuse(1)
	if w := shown(); w == nil || !w.Suspected || w.Kind != "refusal" || w.Parked {
		t.Errorf("after one refusal: %+v", w)
	}
	refuse(20)
	if w := shown(); w == nil || w.Suspected || w.Probes == 0 || !w.Parked ||
		!strings.Contains(w.Evidence, "refused with 403") {
		t.Errorf("after 21 refusals: %+v", w)
	}
	if _, err := wallOf(&storage.Host{Name: "a.test", Wall: []byte("x")}); err == nil {
		t.Error("a damaged state is read")
	}
}
