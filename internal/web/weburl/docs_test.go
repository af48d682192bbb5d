package weburl

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestDocumentedExamples checks every example of docs/URLS.md. Its code spans are a text and its
// canonical form, after the page if the text is a reference.
func TestDocumentedExamples(t *testing.T) {
	document := must.Get(os.ReadFile("../../../docs/URLS.md"))(t)
	examples := 0
	for line := range strings.Lines(string(document)) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := cellsOf(t, line)
		if len(cells) == 0 {
			continue // a heading
		}
		examples++
		t.Run(strings.Join(cells, " "), func(t *testing.T) {
			checkExample(t, cells)
		})
	}
	assert.AtLeast(t, examples, 50, "only examples were found: has the form of the tables changed?")
}

var codeSpan = regexp.MustCompile("`([^`]*)`")

// cellsOf returns the code spans of a table row, and unquotes those that are Go strings.
func cellsOf(t *testing.T, row string) []string {
	t.Helper()
	var cells []string
	for _, span := range codeSpan.FindAllStringSubmatch(row, -1) {
		cell := span[1]
		if strings.HasPrefix(cell, `"`) {
			unquoted, err := strconv.Unquote(cell)
			must.Do(t, err, cell)
			cell = unquoted
		}
		cells = append(cells, cell)
	}
	return cells
}

func checkExample(t *testing.T, cells []string) {
	t.Helper()
	if rules := documentedRules[cells[0]]; rules != nil && len(cells) == 3 {
		u := must.Get(Parse(cells[1]))(t)
		u, _ = rules.Apply(u)
		checkResult(t, u, nil, cells[2])
		return
	}
	var base URL
	if len(cells) == 3 {
		page := must.Get(Parse(cells[0]))(t)
		base, cells = page, cells[1:]
	}
	must.True(t, len(cells) == 2, "a row with %d cells of code", len(cells))
	u, err := sameAsFull(t, base, cells[0])
	checkResult(t, u, err, cells[1])
}
