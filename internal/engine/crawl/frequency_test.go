package crawl

import (
	"testing"

	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/storage"
)

// The store has the numbers of extract.
func TestFrequencies(t *testing.T) {
	for f := extract.FrequencyUnknown; f <= extract.Never; f++ {
		if s := storage.Frequency(f); s.String() != f.String() {
			t.Errorf("%d is %q, in the store %q", f, f, s)
		}
	}
}
