package archive

import (
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestMarksAsStored: marks that databases have are read, those of unknown sinks too, and are stored with the same
// bytes.
func TestMarksAsStored(t *testing.T) {
	const stored = `[{"File":"pages-000003.jsonl","Length":40},` +
		`{"File":"amble-20261120121415-000001-h.warc.gz","Length":123,"Complete":true},{"Receiver":"a","Number":7}]`
	marks := must.Get(DecodeMarks([]byte(stored)))(t)
	want := []Mark{
		FileMark{File: "pages-000003.jsonl", Length: 40}.Mark(),
		FileMark{File: "amble-20261120121415-000001-h.warc.gz", Length: 123, Complete: true}.Mark(),
		`{"Receiver":"a","Number":7}`,
	}
	assert.Slice(t, marks, want, "marks")
	assert.Equal(t, string(EncodeMarks(marks)), stored, "was stored again as")
	for _, none := range []string{"", "null", "[]"} {
		marks, err := DecodeMarks([]byte(none))
		assert.True(t, err == nil && len(marks) <= 0, "%q: %q, %v", none, marks, err)
	}
	assert.Fails(DecodeMarks([]byte(`{"File":"a"}`)))(t, nil, "an object was taken for marks")
	s := Series{c: SeriesOptions{Naming: pageNames}}
	assert.True(t, s.Owns(marks[0]) && !s.Owns(marks[1]) && !s.Owns(marks[2]),
		"a series takes the marks of others for its own, or its own for others'")
}
