package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestSyntaxLines: an error names the line that is wrong, wherever it is in a file.
func TestSyntaxLines(t *testing.T) {
	for _, c := range []struct {
		text string
		line int // of the error
	}{
		{"crawl:\n  workers: 1\n  seeds: [a\nlimits:\n  session: 1\n", 3},
		{"crawl:\n  workers: 1\n  max_depth: 2\n bad: 1\n", 4},
		{"crawl:\n  workers: 1\n   max_depth: 2\n", 3},
		{"crawl:\n  workers: 1\nfoo\nbar: 1\n", 3},
		{"a: 1\nb: 2\nc: 3\n- d\n", 4},
		{"a: \"x\nc: 3\nd: 4\n", 1},
		{"a: 1\nb: 'x\nc: 3\nd: 4\n", 2},
		{"a: 1\nb: {x: 1\nc: 3\n", 2},
		{"a: 1\nb: {x: 1,\n  y: 2}\nc: {x: 1\n", 4},
		{"a: 1\nb: x: 1\nc: 3\n", 2},
		{"a: 1\n\n\nb: @x\n", 4},
		{"a: 1\nb: *x\n", 2},
		{"*x\n", 1},
		{"a: 1\nb: [1, 2]]\nc: 1\n", 2},
		{"# c\na:\n  - 1\n  b: 2\n", 4},
		{"data_dir: x\ncrawl:\n  workers: 64\n  seeds:\n    - a\n   - b\n", 6},
		{"a: 1\nb: \"\\q\"\nc: 1\n", 2},
		{"a: 1\nb: 2\n\x01b: 2\n", 3},
		{"a: [1\n", 1},
		{"}\n", 1},
		{"a: b\n}\n", 2},
		{"a: b\n---\nc: [\n", 3},
	} {
		line, text := syntaxError([]byte(c.text))
		assert.True(t, line == c.line && text != "", "%q: line %d, %q, want line %d", c.text, line, text, c.line)
		// The same behind so much else.
		front := strings.Repeat("# nothing\n", 56) + "z:\n  - [1,\n    2]\n"
		if line, text := syntaxError([]byte(front + c.text)); line != c.line+59 || text == "" {
			t.Errorf("%q behind 59 lines: line %d, %q, want line %d", c.text, line, text, c.line+59)
		}
	}
	line, text := syntaxError([]byte("a: 1\nb: [1,\n 2]\n"))
	assert.True(t, text == "", "what is YAML: line %d, %q", line, text)
	big := []byte(fmt.Sprintf("a: |\n%s\nb: 1\n c: 2\n", strings.Repeat(" x\n", int(maxSearched)/3)))
	if _, text := syntaxError(big); text == "" {
		t.Error("a large file: no error")
	}
}
