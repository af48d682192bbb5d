package archive

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	must.Do(t, os.MkdirAll(dir, 0o755))
	must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
}

func TestOpenCutsToTheMarks(t *testing.T) {
	type files map[string]string
	tests := []struct {
		name  string
		marks []Mark
		have  files
		want  files
		next  string // the file the next line goes to
		after []Mark // where the marks say more when it is open
	}{
		{
			name: "nothing there",
			next: "pages-000001.jsonl.open",
		},
		{
			name:  "a torn tail",
			marks: []Mark{FileMark{File: "pages-000001.jsonl", Length: 2}.Mark()},
			have:  files{"pages-000001.jsonl.open": "a\nb\n{\"to"},
			want:  files{"pages-000001.jsonl.open": "a\n"},
			next:  "pages-000001.jsonl.open",
		},
		{
			name:  "whole as it is",
			marks: []Mark{FileMark{File: "pages-000001.jsonl", Length: 4}.Mark()},
			have:  files{"pages-000001.jsonl.open": "a\nb\n"},
			want:  files{"pages-000001.jsonl.open": "a\nb\n"},
			next:  "pages-000001.jsonl.open",
		},
		{
			name:  "complete, with a mark that does not say so yet",
			marks: []Mark{FileMark{File: "pages-000001.jsonl", Length: 4}.Mark()},
			have:  files{"pages-000001.jsonl": "a\nb\n"},
			want:  files{"pages-000001.jsonl": "a\nb\n"},
			next:  "pages-000002.jsonl.open",
			after: []Mark{FileMark{File: "pages-000001.jsonl", Length: 4, Complete: true}.Mark()},
		},
		{
			name:  "complete",
			marks: []Mark{FileMark{File: "pages-000001.jsonl", Length: 4, Complete: true}.Mark()},
			have:  files{"pages-000001.jsonl": "a\nb\n"},
			want:  files{"pages-000001.jsonl": "a\nb\n"},
			next:  "pages-000002.jsonl.open",
		},
		{
			name:  "complete, and it has not got its name yet",
			marks: []Mark{FileMark{File: "pages-000001.jsonl", Length: 4, Complete: true}.Mark()},
			have:  files{"pages-000001.jsonl.open": "a\nb\n"},
			want:  files{"pages-000001.jsonl": "a\nb\n"},
			next:  "pages-000002.jsonl.open",
		},
		{
			name:  "complete and moved away",
			marks: []Mark{FileMark{File: "pages-000003.jsonl", Length: 4, Complete: true}.Mark()},
			next:  "pages-000004.jsonl.open",
		},
		{
			name:  "complete and changed by somebody",
			marks: []Mark{FileMark{File: "pages-000003.jsonl", Length: 4, Complete: true}.Mark()},
			have:  files{"pages-000003.jsonl": "a\n", "pages-000002.jsonl": "much longer\n"},
			want:  files{"pages-000003.jsonl": "a\n", "pages-000002.jsonl": "much longer\n"},
			next:  "pages-000004.jsonl.open",
		},
		{
			name:  "completed behind the mark",
			marks: []Mark{FileMark{File: "pages-000001.jsonl", Length: 2}.Mark()},
			have:  files{"pages-000001.jsonl": "a\nb\n"},
			want:  files{"pages-000001.jsonl.open": "a\n", "pages-000001.jsonl.unmarked": "a\nb\n"},
			next:  "pages-000001.jsonl.open",
		},
		{
			name:  "the database is older than complete files, and so than those being written",
			marks: []Mark{FileMark{File: "pages-000001.jsonl", Length: 2}.Mark()},
			have: files{"pages-000001.jsonl": "a\nb\n", "pages-000001.jsonl.unmarked": "x\n",
				"pages-000002.jsonl":      "c\n",
				"pages-000003.jsonl.open": "d\n"},
			want: files{"pages-000001.jsonl.open": "a\n", "pages-000001.jsonl.unmarked": "x\n",
				"pages-000001.jsonl.unmarked.2": "a\nb\n",
				"pages-000002.jsonl.unmarked":   "c\n", "pages-000003.jsonl.unmarked": "d\n"},
			next: "pages-000001.jsonl.open",
		},
		{
			name:  "setting aside was broken off before the copy had its name",
			marks: []Mark{FileMark{File: "pages-000001.jsonl", Length: 2}.Mark()},
			have:  files{"pages-000001.jsonl.open.new": "a\n", "pages-000001.jsonl.unmarked": "a\nb\n"},
			want:  files{"pages-000001.jsonl.open": "a\n", "pages-000001.jsonl.unmarked": "a\nb\n"},
			next:  "pages-000001.jsonl.open",
		},
		{
			name:  "setting aside was broken off before the copy was whole",
			marks: []Mark{FileMark{File: "pages-000001.jsonl", Length: 4}.Mark()},
			have:  files{"pages-000001.jsonl.open.new": "a\n", "pages-000001.jsonl": "a\nb\nc\n"},
			want:  files{"pages-000001.jsonl.open": "a\nb\n", "pages-000001.jsonl.unmarked": "a\nb\nc\n"},
			next:  "pages-000001.jsonl.open",
		},
		{
			name:  "files that were never marked",
			marks: []Mark{FileMark{File: "pages-000002.jsonl", Length: 2}.Mark()},
			have: files{"pages-000001.jsonl": "a\n", "pages-000002.jsonl.open": "b\nc\n",
				"pages-000003.jsonl.open": "d\n",
				"pages-000004.jsonl.open": "e"},
			want: files{"pages-000001.jsonl": "a\n", "pages-000002.jsonl.open": "b\n"},
			next: "pages-000002.jsonl.open",
		},
		{
			name:  "older files not yet renamed",
			marks: []Mark{FileMark{File: "pages-000003.jsonl", Length: 2}.Mark()},
			have: files{"pages-000001.jsonl.open": "a\n", "pages-000002.jsonl.open": "b\n",
				"pages-000003.jsonl.open": "c\n"},
			want: files{"pages-000001.jsonl": "a\n", "pages-000002.jsonl": "b\n", "pages-000003.jsonl.open": "c\n"},
			next: "pages-000003.jsonl.open",
		},
		{
			name:  "older files moved away",
			marks: []Mark{FileMark{File: "pages-000009.jsonl", Length: 2, Complete: true}.Mark()},
			have:  files{"pages-000009.jsonl": "c\n"},
			want:  files{"pages-000009.jsonl": "c\n"},
			next:  "pages-000010.jsonl.open",
		},
		{
			name:  "complete files of somebody else behind the mark",
			marks: []Mark{FileMark{File: "pages-000001.jsonl", Length: 2}.Mark()},
			have:  files{"pages-000001.jsonl": "a\n", "pages-000002.jsonl": "x\n"},
			want:  files{"pages-000001.jsonl": "a\n", "pages-000002.jsonl.unmarked": "x\n"},
			next:  "pages-000003.jsonl.open",
			after: []Mark{FileMark{File: "pages-000001.jsonl", Length: 2, Complete: true}.Mark()},
		},
		{
			name: "no marks, but files of a crawl before",
			have: files{"pages-000001.jsonl": "x\n", "pages-000002.jsonl.open": "y\n"},
			want: files{"pages-000001.jsonl": "x\n", "pages-000002.jsonl.unmarked": "y\n"},
			next: "pages-000003.jsonl.open",
		},
		{
			name:  "an empty mark needs no file",
			marks: []Mark{FileMark{File: "pages-000004.jsonl", Length: 0}.Mark()},
			next:  "pages-000005.jsonl.open",
		},
		{
			name:  "files of others are left alone",
			marks: []Mark{FileMark{File: "pages-000001.jsonl", Length: 2}.Mark()},
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
			assert.Equal(t, len(names(t, o.Dir)), len(tt.want), "files")
			for name, want := range tt.want {
				got, err := os.ReadFile(filepath.Join(o.Dir, name))
				assert.True(t, err == nil && string(got) == want, "%s holds %q (%v), want %q", name, got, err, want)
			}
			if tt.after == nil {
				tt.after = tt.marks
			}
			assert.Slice(t, mustSync(t, w), tt.after, "marks", tt.marks, "became")
			mustAppend(t, w, "next")
			mustSync(t, w)
			got, err := os.ReadFile(filepath.Join(o.Dir, tt.next))
			assert.True(t, err == nil && string(got) == tt.want[tt.next]+"next\n",
				"the next line is not in %s: %q (%v)", tt.next, got, err)
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
		{"missing", FileMark{File: "pages-000002.jsonl", Length: 2}.Mark(), ErrMissing, "pages-000002.jsonl"},
		{"short", FileMark{File: "pages-000001.jsonl", Length: 20}.Mark(), ErrShort,
			"has 4 bytes, and the crawl committed 20"},
		{"negative", FileMark{File: "pages-000001.jsonl", Length: -1}.Mark(), nil, "no mark"},
		{"twice", FileMark{File: "pages-000005.jsonl", Length: 2}.Mark(), nil, "with and without"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			have := []string{"pages-000001.jsonl.open", "pages-000003.jsonl.open", "pages-000004.jsonl",
				"pages-000005.jsonl",
				"pages-000005.jsonl.open"}
			for _, name := range have {
				write(t, o.Dir, name, "a\nb\n")
			}
			_, err := Open(o, []Mark{tt.mark})
			assert.True(t, err != nil && (tt.want == nil || errors.Is(err, tt.want)) &&
				strings.Contains(err.Error(), tt.text), "got %v", err)
			wantNames(t, o.Dir, have...) // a directory that is refused is left as it was
		})
	}
}

func TestSettingAsideOverwritesNothing(t *testing.T) {
	o := options(t)
	for name, text := range map[string]string{".open": "a\n", ".unmarked": "b\n", ".unmarked.2": "c\n"} {
		write(t, o.Dir, "pages-000001.jsonl"+name, text)
	}
	w := mustOpen(t, o, nil)
	wantNames(t, o.Dir, "pages-000001.jsonl.unmarked", "pages-000001.jsonl.unmarked.2", "pages-000001.jsonl.unmarked.3")
	got, err := os.ReadFile(filepath.Join(o.Dir, "pages-000001.jsonl.unmarked.3"))
	assert.True(t, err == nil && string(got) == "a\n", "%q (%v)", got, err)
	assert.Slice(t, w.Aside(), []Aside{{"pages-000001.jsonl", "pages-000001.jsonl.unmarked.3", false, 0}})
}
