package inspect

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/output/csvout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/storage"
)

// TestLinesAreDocumented holds the second part of docs/OUTPUT.md to the fields of a URL.
func TestLinesAreDocumented(t *testing.T) {
	page := must.Get(os.ReadFile("../../../docs/OUTPUT.md"))(t)
	_, text, _ := strings.Cut(string(page), "\n# What is known of every URL")
	text, _, _ = strings.Cut(text, "\n# What is known of every host")
	fields := 0
	for field := range reflect.TypeFor[URL]().Fields() {
		fields++
		name, optional, _ := strings.Cut(field.Tag.Get("json"), ",")
		_, row, found := strings.Cut(text, "\n| `"+name+"` | ")
		if !found {
			t.Errorf("%s has no row", name)
			continue
		}
		row, _, _ = strings.Cut(row, "\n")
		assert.Equal(t, strings.Contains(row, "| always"), (optional == ""), name, "the row says", row)
	}
	assert.Equal(t, strings.Count(text, "\n| `"), fields, "rows for fields")
}

// TestStatesAreInTheGlossary: docs/GLOSSARY.md has a row for each state of a host and of a URL, and no other.
func TestStatesAreInTheGlossary(t *testing.T) {
	page := must.Get(os.ReadFile("../../../docs/GLOSSARY.md"))(t)
	var urls []string
	for s := storage.Queued; s <= storage.Retrying; s++ {
		urls = append(urls, s.String())
	}
	for title, states := range map[string][]string{"host": HostFilters(), "URL": urls} {
		_, text, _ := strings.Cut(string(page), "\n| State of a "+title+" |")
		text, _, _ = strings.Cut(text, "\n\n")
		var rows []string
		for _, row := range regexp.MustCompile("\n\\| `([a-z]+)` \\|").FindAllStringSubmatch(text, -1) {
			rows = append(rows, row[1])
		}
		slices.Sort(rows)
		slices.Sort(states)
		assert.Slice(t, rows, states, "states of a", title, "the page the code")
	}
}

// TestHostsAreDocumented holds the table of hosts in docs/OUTPUT.md to the columns of their CSV.
func TestHostsAreDocumented(t *testing.T) {
	page := must.Get(os.ReadFile("../../../docs/OUTPUT.md"))(t)
	_, text, _ := strings.Cut(string(page), "\n# What is known of every host")
	var rows []string
	for _, row := range regexp.MustCompile("\n\\| `([a-z_]+)` \\|").FindAllStringSubmatch(text, -1) {
		rows = append(rows, row[1])
	}
	assert.Slice(t, rows, csvout.Columns[Host](), "the page the columns")
}

// docs/ERRORS.md has a row for every reason and no other, and says of each kind of failure what is
// done about it.
func TestErrorsPage(t *testing.T) {
	text := must.Get(os.ReadFile("../../../docs/ERRORS.md"))(t)
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|.*\\| ([^|]+) \\|$").FindAllStringSubmatch(
		string(text), -1) {
		name, again := row[1], row[2]
		listed = append(listed, name)
		r, err := ParseReason(name)
		if err != nil {
			t.Errorf("%s is in the page and no reason", name)
			continue
		}
		if r < storage.ReasonFetch {
			continue
		}
		if k := fetch.Kind(r - storage.ReasonFetch); (again == "yes") != k.Temporary() && k != fetch.KindDNSNotFound {
			t.Errorf("%s: the page says again: %s, Temporary is %v", name, again, k.Temporary())
		}
	}
	for _, name := range ReasonNames() {
		assert.Equal(t, strings.Count(strings.Join(append([]string{""}, append(listed, "")...), " "), " "+name+" "), 1,
			name, "rows in the page")
	}
	assert.True(t, slices.Contains(listed, "loop"), "the rows are not found")
}
