package politeness

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestReasonsAreDocumented compares docs/POLITENESS.md with the names that reports show, and its
// table with the backoff.
func TestReasonsAreDocumented(t *testing.T) {
	b := must.Get(os.ReadFile("../docs/POLITENESS.md"))(t)
	text := string(b)
	for r := ReasonDelay; int(r) < len(reasonNames); r++ {
		assert.Contains(t, text, "| `"+r.String()+"` |\n", r, "has no row")
	}
	row := "| Backoff |"
	for level := uint8(1); level <= maxLevel; level++ {
		row += " " + spell(backoff(level, 0)) + " |"
	}
	assert.Contains(t, text, row+"\n", "the table of backoffs should read", row)
}

// spell writes a duration as the document does: 8 min, 1 h 4 min.
func spell(d time.Duration) string {
	hours, minutes := d/time.Hour, d%time.Hour/time.Minute
	switch {
	case hours == 0:
		return fmt.Sprintf("%d min", minutes)
	case minutes == 0:
		return fmt.Sprintf("%d h", hours)
	}
	return fmt.Sprintf("%d h %d min", hours, minutes)
}
