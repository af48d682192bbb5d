package csvout

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

type counts [2]int

func (counts) CSVColumns() []string { return []string{"good", "bad"} }

func (c counts) CSVCells() []string { return []string{"1", "=2"} }

type why struct{ from string }

func (w why) String() string { return "by " + w.from }

type base struct {
	URL string `json:"url"`
}

type line struct {
	base
	Status  int                 `json:"status,omitempty"`
	Depth   int                 `json:"depth"`
	Counts  counts              `json:"urls"`
	Share   float64             `json:"share"`
	Seed    bool                `json:"seed,omitempty"`
	At      time.Time           `json:"at,omitzero"`
	Tags    []string            `json:"tags,omitempty"`
	Usage   map[string]why      `json:"usage,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
	Part    *float64            `json:"part,omitempty"`
	Note    string              `json:"note,omitempty"`
	hidden  string
	Never   string `json:"-"`
}

func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := New[line](&out)
	part := 0.25
	full := line{base{"https://a.test/?a=1,2"}, 200, 3, counts{}, 12345678.5, true,
		time.Date(2026, 11, 20, 1, 2, 3, 0, time.FixedZone("", 3600)), []string{"x", "y"},
		map[string]why{"b": {"two"}, "a": {"one"}}, map[string][]string{"k": {"1", "2"}}, &part,
		"=HYPERLINK(\"http://evil.test\")\nnext, \"quoted\"", "no", "no"}
	for _, l := range []*line{&full, {base: base{"https://b.test/"}, Depth: -4}} {
		must.Do(t, w.Write(l))
	}
	must.Do(t, w.Flush())
	got := must.Get(csv.NewReader(&out).ReadAll())(t)
	want := [][]string{
		{"url", "status", "depth", "good", "bad", "share", "seed", "at", "tags", "usage", "headers", "part", "note"},
		{"https://a.test/?a=1,2", "200", "3", "1", "'=2", "12345678.5", "true", "2026-11-20T00:02:03Z", "x; y",
			"a: by one; b: by two", "k: 1; 2", "0.25", "'=HYPERLINK(\"http://evil.test\")\nnext, \"quoted\""},
		{"https://b.test/", "", "-4", "1", "'=2", "0", "", "", "", "", "", "", ""},
	}
	assert.True(t, slices.EqualFunc(got, want, slices.Equal), "got  %q\nwant %q", got, want)
	assert.Slice(t, Columns[line](), want[0], "columns")
}

// TestWriterWithoutValues: a list without values has its line of names, so that a database makes the table.
func TestWriterWithoutValues(t *testing.T) {
	var out bytes.Buffer
	err := New[base](&out).Flush()
	assert.True(t, err == nil && out.String() == "url\n", "%q, %v", out.String(), err)
}

func TestDefuse(t *testing.T) {
	for _, text := range []string{"=1", "+1", "-1", "@a", "\tx", "\rx", "\nx", "＝1", "＋1", "－1", "＠a", "="} {
		assert.Equal(t, Defuse(text), "'"+text, text, "becomes")
	}
	for _, text := range []string{"", "a=1", "'=1", "https://a.test/", "日本", "\xff\xfe", "\xef"} {
		assert.Equal(t, Defuse(text), text, "becomes")
	}
}

// FuzzDefuse: whatever a page says, the cell that is read back begins no formula, and holds the text.
func FuzzDefuse(f *testing.F) {
	f.Add("=1+1")
	f.Add("a\r\nb")
	f.Fuzz(func(t *testing.T, text string) {
		got := Defuse(text)
		assert.Equal(t, strings.TrimPrefix(got, "'"), strings.TrimPrefix(text, "'"), text, "becomes", got)
		assert.True(t, got == "" || !strings.ContainsAny(got[:1], "=+-@\t\r\n"), "%q begins a formula", got)
	})
}
