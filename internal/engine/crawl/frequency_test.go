package crawl

import (
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/storage"
)

// The store has the numbers of extract.
func TestFrequencies(t *testing.T) {
	for f := extract.FrequencyUnknown; f <= extract.Never; f++ {
		assert.Equal(t, storage.Frequency(f).String(), f.String(), f, "is", f, "in the store")
	}
}
