package archive

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestOutputIsDocumented compares docs/OUTPUT.md with the fields of the lines.
func TestOutputIsDocumented(t *testing.T) {
	page := must.Get(os.ReadFile("../../../docs/OUTPUT.md"))(t)
	for heading, fields := range map[string]reflect.Type{
		"A page": reflect.TypeFor[line](), "A link": reflect.TypeFor[linkLine](), "A text": reflect.TypeFor[textLine](),
	} {
		_, text, _ := strings.Cut(string(page), "\n## "+heading+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
		text, _, _ = strings.Cut(text, "\n# ")
		checkFields(t, heading, text, fields)
	}
}

func checkFields(t *testing.T, heading, text string, line reflect.Type) {
	rows := strings.Count(text, "\n| `")
	for field := range line.Fields() {
		name, optional, _ := strings.Cut(field.Tag.Get("json"), ",")
		_, row, found := strings.Cut(text, "\n| `"+name+"` | ")
		if !found {
			t.Errorf("%s: %s has no row", heading, name)
			continue
		}
		row, _, _ = strings.Cut(row, "\n")
		assert.Equal(t, strings.Contains(row, "| always. "), (optional == ""), name, "the row says", row)
	}
	assert.Equal(t, rows, line.NumField(), heading, "rows for fields")
}
