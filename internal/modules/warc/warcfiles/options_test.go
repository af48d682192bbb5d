package warcfiles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/modules/warc"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestOptionsValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*archive.Options)
		want   string // in the message; empty: valid
	}{
		{"defaults with a directory", func(*archive.Options) {}, ""},
		{"none needs no directory", func(o *archive.Options) { o.Dir, o.Formats = "", []string{"none"} }, ""},
		{"no directory", func(o *archive.Options) { o.Dir = "" }, "dir is empty"},
		{"no format", func(o *archive.Options) { o.Formats = nil }, "format is empty"},
		{"all", func(o *archive.Options) { o.Formats = archive.Names(known()) }, ""},
		{"unknown", func(o *archive.Options) { o.Formats = []string{"csv"} },
			`format is "csv", allowed are jsonl, warc, links, text or none`},
		{"unknown compression", func(o *archive.Options) { o.Compress = "rar" }, `compress is "rar"`},
		{"negative age", func(o *archive.Options) { o.MaxFileAge = -1 }, "max_age is -1ns"},
		{"prefix that leads elsewhere", func(o *archive.Options) { o.Formats, o.Prefix = []string{"warc"}, "../x" },
			`prefix is "../x"`},
		{"gzip level", func(o *archive.Options) { o.Formats, o.Records.Level = []string{"warc"}, 10 }, "gzip level 10"},
		{"none and another", func(o *archive.Options) { o.Formats = []string{"jsonl", "none"} },
			"none excludes all others"},
		{"twice", func(o *archive.Options) { o.Formats = []string{"jsonl", "jsonl"} }, "jsonl is given twice"},
		{"zstd level", func(o *archive.Options) {
			o.Formats, o.Records = []string{"warc"}, archive.Compression{Format: warc.FormatZstd, Level: 5}
		}, "zstd level 5"},
		{"no size", func(o *archive.Options) { o.MaxFileBytes = 0 }, "max_file is 0 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := archive.DefaultOptions()
			o.Known = known()
			o.Dir = "output"
			tt.change(&o)
			err := o.Validate()
			if tt.want == "" {
				must.Do(t, err)
				return
			}
			must.True(t, errors.Is(err, archive.ErrOption) && strings.Contains(err.Error(), tt.want),
				"got %v, want it to say %q", err, tt.want)
			if _, err := archive.Open(o, nil); !errors.Is(err, archive.ErrOption) {
				t.Fatalf("Open took the options: %v", err)
			}
		})
	}
}

func TestOptionsLoad(t *testing.T) {
	load := func(path string) (archive.Options, error) {
		o := archive.DefaultOptions()
		o.Known = known()
		o.Formats, o.Records, o.DictionaryFile = []string{Name},
			archive.Compression{Format: warc.FormatZstd, Level: 1}, path
		return o, o.Load()
	}
	if o, err := load("../testdata/dictionary"); err != nil || len(o.Records.Dictionary) != 4096 {
		t.Errorf("a dictionary of %d bytes: %v", len(o.Records.Dictionary), err)
	}
	o, err := load("")
	assert.True(t, err == nil && o.Records.Dictionary == nil, "no file: %v", err)
	if _, err := load(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	text := filepath.Join(t.TempDir(), "text")
	must.Do(t, os.WriteFile(text, []byte("no dictionary"), 0o600))
	if _, err := load(text); !errors.Is(err, archive.ErrOption) || !strings.Contains(err.Error(), text) {
		t.Errorf("a text: %v", err)
	}
}
