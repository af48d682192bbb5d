package archive

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestOpenCutsToTheMarks(t *testing.T) {
	type files map[string]string
	tests := []struct {
		name  string
		marks []Mark
		have  files
		want  files
		next  string // the file the next line goes to
	}{
		{
			name: "nothing there",
			next: "pages-000001.jsonl.open",
		},
		{
			name:  "a torn tail",
			marks: []Mark{{"pages-000001.jsonl", 2}},
			have:  files{"pages-000001.jsonl.open": "a\nb\n{\"to"},
			want:  files{"pages-000001.jsonl.open": "a\n"},
			next:  "pages-000001.jsonl.open",
		},
		{
			name:  "whole as it is",
			marks: []Mark{{"pages-000001.jsonl", 4}},
			have:  files{"pages-000001.jsonl.open": "a\nb\n"},
			want:  files{"pages-000001.jsonl.open": "a\nb\n"},
			next:  "pages-000001.jsonl.open",
		},
		{
			name:  "closed in order",
			marks: []Mark{{"pages-000001.jsonl", 4}},
			have:  files{"pages-000001.jsonl": "a\nb\n"},
			want:  files{"pages-000001.jsonl": "a\nb\n"},
			next:  "pages-000002.jsonl.open",
		},
		{
			name:  "completed behind the mark",
			marks: []Mark{{"pages-000001.jsonl", 2}},
			have:  files{"pages-000001.jsonl": "a\nb\n"},
			want:  files{"pages-000001.jsonl.open": "a\n"},
			next:  "pages-000001.jsonl.open",
		},
		{
			name:  "files that were never marked",
			marks: []Mark{{"pages-000002.jsonl", 2}},
			have:  files{"pages-000001.jsonl": "a\n", "pages-000002.jsonl.open": "b\nc\n", "pages-000003.jsonl.open": "d\n", "pages-000004.jsonl.open": "e"},
			want:  files{"pages-000001.jsonl": "a\n", "pages-000002.jsonl.open": "b\n"},
			next:  "pages-000002.jsonl.open",
		},
		{
			name:  "older files not yet renamed",
			marks: []Mark{{"pages-000003.jsonl", 2}},
			have:  files{"pages-000001.jsonl.open": "a\n", "pages-000002.jsonl.open": "b\n", "pages-000003.jsonl.open": "c\n"},
			want:  files{"pages-000001.jsonl": "a\n", "pages-000002.jsonl": "b\n", "pages-000003.jsonl.open": "c\n"},
			next:  "pages-000003.jsonl.open",
		},
		{
			name:  "older files moved away",
			marks: []Mark{{"pages-000009.jsonl", 2}},
			have:  files{"pages-000009.jsonl": "c\n"},
			want:  files{"pages-000009.jsonl": "c\n"},
			next:  "pages-000010.jsonl.open",
		},
		{
			name:  "complete files of somebody else behind the mark",
			marks: []Mark{{"pages-000001.jsonl", 2}},
			have:  files{"pages-000001.jsonl": "a\n", "pages-000002.jsonl": "x\n"},
			want:  files{"pages-000001.jsonl": "a\n", "pages-000002.jsonl.unmarked": "x\n"},
			next:  "pages-000003.jsonl.open",
		},
		{
			name: "no marks, but files of a crawl before",
			have: files{"pages-000001.jsonl": "x\n", "pages-000002.jsonl.open": "y\n"},
			want: files{"pages-000001.jsonl": "x\n", "pages-000002.jsonl.unmarked": "y\n"},
			next: "pages-000003.jsonl.open",
		},
		{
			name:  "an empty mark needs no file",
			marks: []Mark{{"pages-000004.jsonl", 0}},
			next:  "pages-000005.jsonl.open",
		},
		{
			name:  "files of others are left alone",
			marks: []Mark{{"pages-000001.jsonl", 2}},
			have:  files{"pages-000001.jsonl.open": "a\n", "notes.txt": "n", "pages-9.jsonl": "z"},
			want:  files{"pages-000001.jsonl.open": "a\n", "notes.txt": "n", "pages-9.jsonl": "z"},
			next:  "pages-000001.jsonl.open",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			for name, content := range tt.have {
				write(t, o.Dir, name, content)
			}
			w := mustOpen(t, o, tt.marks)
			if got := names(t, o.Dir); len(got) != len(tt.want) {
				t.Errorf("files are %q", got)
			}
			for name, want := range tt.want {
				if got, err := os.ReadFile(filepath.Join(o.Dir, name)); err != nil || string(got) != want {
					t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
				}
			}
			if got := mustSync(t, w); !slices.Equal(got, tt.marks) {
				t.Errorf("marks %v became %v", tt.marks, got)
			}
			mustAppend(t, w, "next")
			mustSync(t, w)
			if got, err := os.ReadFile(filepath.Join(o.Dir, tt.next)); err != nil || string(got) != tt.want[tt.next]+"next\n" {
				t.Errorf("the next line is not in %s: %q (%v)", tt.next, got, err)
			}
		})
	}
}

func TestOpenRefusesLostOutput(t *testing.T) {
	tests := []struct {
		name string
		mark Mark
		want error  // nil: any
		text string // in the message
	}{
		{"missing", Mark{"pages-000002.jsonl", 2}, ErrMissing, "pages-000002.jsonl"},
		{"short", Mark{"pages-000001.jsonl", 20}, ErrShort, "has 4 bytes, of which the crawl committed 20"},
		{"negative", Mark{"pages-000001.jsonl", -1}, nil, "no mark"},
		{"twice", Mark{"pages-000005.jsonl", 2}, nil, "with and without"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			have := []string{"pages-000001.jsonl.open", "pages-000003.jsonl.open", "pages-000004.jsonl", "pages-000005.jsonl", "pages-000005.jsonl.open"}
			for _, name := range have {
				write(t, o.Dir, name, "a\nb\n")
			}
			_, err := Open(o, []Mark{tt.mark})
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v", err)
			}
			wantNames(t, o.Dir, have...) // a directory that is refused is left as it was
		})
	}
}

func TestSettingAsideOverwritesNothing(t *testing.T) {
	o := options(t)
	write(t, o.Dir, "pages-000001.jsonl.open", "a\n")
	write(t, o.Dir, "pages-000001.jsonl.unmarked", "b\n")
	if _, err := Open(o, nil); err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Fatalf("got %v", err)
	}
	wantNames(t, o.Dir, "pages-000001.jsonl.open", "pages-000001.jsonl.unmarked")
}
