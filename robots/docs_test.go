package robots

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestDocument checks every example in docs/ROBOTS.md: table rows that end in a file, a URL and a
// verdict.
func TestDocument(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join("..", "docs", "ROBOTS.md")))(t)
	examples := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) < 4 {
			continue
		}
		cells = cells[len(cells)-3:]
		verdict := strings.TrimSpace(cells[2])
		if verdict != "allow" && verdict != "disallow" {
			continue
		}
		file := strings.ReplaceAll(strings.Trim(cells[0], "` "), "⏎", "\n")
		uri := strings.Trim(cells[1], "` ")
		examples++
		if v := Compile([]byte(file), "amble").Match(uri); v.Allowed != (verdict == "allow") {
			t.Errorf("%s: %+v", strings.TrimSpace(line), v)
		}
	}
	assert.AtLeast(t, examples, 30, "examples found")
}
