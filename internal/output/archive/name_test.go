package archive

import (
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

var pageNames = numbered("pages-", ".jsonl", "")

func TestNamingParse(t *testing.T) {
	tests := []struct {
		name   string
		serial int
		suffix string
		ok     bool
	}{
		{"pages-000001.jsonl", 1, "", true},
		{"pages-000012.jsonl.open", 12, ".open", true},
		{"pages-000012.jsonl.unmarked", 12, ".unmarked", true},
		{"pages-1234567.jsonl", 1234567, "", true},
		{"pages-000000.jsonl", 0, "", false},
		{"pages-1.jsonl", 0, "", false},
		{"pages-+00001.jsonl", 0, "", false},
		{"pages--00001.jsonl", 0, "", false},
		{"pages-0000001.jsonl", 0, "", false},
		{"pages-99999999999999999999.jsonl", 0, "", false},
		{"pages-000001.jsonl.open.open", 0, "", false},
		{"pages-000001.jsonl.gz", 1, "", true},
		{"pages-000001.jsonl.zst.open", 1, ".open", true},
		{"pages-000001.jsonl.bz2", 0, "", false},
		{"pages-000001.jsonl.zst.gz", 0, "", false},
		{"warc-000001.jsonl", 0, "", false},
		{"../pages-000001.jsonl", 0, "", false},
		{".open", 0, "", false},
		{"", 0, "", false},
	}
	for _, tt := range tests {
		serial, _, suffix, ok := pageNames.Parse(tt.name)
		assert.True(t, serial == tt.serial && suffix == tt.suffix && ok == tt.ok, "%q: got %d %q %v", tt.name, serial,
			suffix, ok)
	}
}

func FuzzNamingParse(f *testing.F) {
	for _, s := range []string{"pages-000001.jsonl", "pages-000001.jsonl.open", "pages-.jsonl",
		"pages-000001", ".jsonl"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		serial, base, suffix, ok := pageNames.Parse(name)
		must.True(t, !ok || base+suffix == name && strings.HasPrefix(name, "pages-"+SerialText(serial)+".jsonl"),
			"%q is taken for number %d with suffix %q", name, serial, suffix)
	})
}
