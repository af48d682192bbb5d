package archive

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestOutputIsDocumented holds docs/OUTPUT.md to the fields of a line.
func TestOutputIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/OUTPUT.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(page), "\n# What is known of every URL") // of internal/inspect
	rows := strings.Count(text, "\n| `")
	for field := range reflect.TypeFor[line]().Fields() {
		name, optional, _ := strings.Cut(field.Tag.Get("json"), ",")
		_, row, found := strings.Cut(text, "\n| `"+name+"` | ")
		if !found {
			t.Errorf("%s has no row", name)
			continue
		}
		row, _, _ = strings.Cut(row, "\n")
		if always := strings.Contains(row, "| always. "); always != (optional == "") {
			t.Errorf("%s: the row says %q", name, row)
		}
	}
	if files, fields := 3, reflect.TypeFor[line]().NumField(); rows != files+fields {
		t.Errorf("%d rows for %d kinds of files and %d fields", rows, files, fields)
	}
}
