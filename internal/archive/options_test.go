package archive

import (
	"errors"
	"strings"
	"testing"
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
