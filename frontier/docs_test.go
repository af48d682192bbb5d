package frontier

import (
	"bufio"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// TestDocumentedTraps holds docs/TRAPS.md to its word.
func TestDocumentedTraps(t *testing.T) {
	file, err := os.Open("../docs/TRAPS.md")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	o := DefaultTrapOptions()
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	seen := map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		cells := strings.Split(strings.Trim(lines.Text(), "| "), "|")
		cell := func(fromEnd int) string { return strings.Trim(cells[len(cells)-fromEnd], " `") }
		if len(cells) < 3 || !strings.HasPrefix(cell(2), "/") || !strings.HasPrefix(cell(3), "/") {
			continue
		}
		page := mustURL(t, "https://example.com"+cell(3))
		got := o.Check(mustURL(t, "https://example.com"+cell(2)), page, now).String()
		want := cell(1)
		if want == "no" {
			want = storage.NoTrap.String()
		}
		if got != want {
			t.Errorf("%s on %s: %s, the page says %s", cell(2), cell(3), got, want)
		}
		seen[got]++
	}
	for trap := storage.TrapDepth; trap <= storage.TrapGrowth; trap++ {
		if seen[trap.String()] == 0 {
			t.Errorf("no example of %s", trap)
		}
	}
	if seen["none"] < 5 {
		t.Errorf("%d examples of links that are taken", seen["none"])
	}
}
