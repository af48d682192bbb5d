package inspect

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestLinesAreDocumented holds the second part of docs/OUTPUT.md to the fields of a URL.
func TestLinesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/OUTPUT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n# What is known of every URL")
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
		if always := strings.Contains(row, "| always"); always != (optional == "") {
			t.Errorf("%s: the row says %q", name, row)
		}
	}
	if rows := strings.Count(text, "\n| `"); rows != fields {
		t.Errorf("%d rows for %d fields", rows, fields)
	}
}
