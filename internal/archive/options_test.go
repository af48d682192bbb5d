package archive

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/warc"
)

func TestOptionsValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Options)
		want   string // in the message; empty: valid
	}{
		{"defaults with a directory", func(*Options) {}, ""},
		{"none needs no directory", func(o *Options) { o.Dir, o.Formats = "", []string{"none"} }, ""},
		{"no directory", func(o *Options) { o.Dir = "" }, "dir is empty"},
		{"no format", func(o *Options) { o.Formats = nil }, "format is empty"},
		{"all", func(o *Options) { o.Formats = formats() }, ""},
		{"unknown", func(o *Options) { o.Formats = []string{"csv"} },
			`format is "csv", allowed are jsonl, warc, links, text or none`},
		{"unknown compression", func(o *Options) { o.Compress = "rar" }, `compress is "rar"`},
		{"negative age", func(o *Options) { o.MaxFileAge = -1 }, "max_age is -1ns"},
		{"prefix that leads elsewhere", func(o *Options) { o.Formats, o.Prefix = []string{"warc"}, "../x" },
			`prefix is "../x"`},
		{"gzip level", func(o *Options) { o.Formats, o.Records.Level = []string{"warc"}, 10 }, "gzip level 10"},
		{"none and another", func(o *Options) { o.Formats = []string{"jsonl", "none"} }, "none excludes all others"},
		{"twice", func(o *Options) { o.Formats = []string{"jsonl", "jsonl"} }, "jsonl is given twice"},
		{"zstd level", func(o *Options) {
			o.Formats, o.Records = []string{"warc"}, warc.Compression{Format: warc.FormatZstd, Level: 5}
		}, "zstd level 5"},
		{"no size", func(o *Options) { o.MaxFileBytes = 0 }, "max_file is 0 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := DefaultOptions()
			o.Dir = "output"
			tt.change(&o)
			err := o.Validate()
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want it to say %q", err, tt.want)
			}
			if _, err := Open(o, nil); !errors.Is(err, ErrOption) {
				t.Fatalf("Open took the options: %v", err)
			}
		})
	}
}

func TestOptionsLoad(t *testing.T) {
	load := func(path string) (Options, error) {
		o := DefaultOptions()
		o.Formats, o.Records, o.DictionaryFile = []string{FormatWARC},
			warc.Compression{Format: warc.FormatZstd, Level: 1}, path
		return o, o.Load()
	}
	if o, err := load("../warc/testdata/dictionary"); err != nil || len(o.Records.Dictionary) != 4096 {
		t.Errorf("a dictionary of %d bytes: %v", len(o.Records.Dictionary), err)
	}
	if o, err := load(""); err != nil || o.Records.Dictionary != nil {
		t.Errorf("no file: %v", err)
	}
	if _, err := load(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no dictionary"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(text); !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), text) {
		t.Errorf("a text: %v", err)
	}
}
