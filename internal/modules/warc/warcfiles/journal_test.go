package warcfiles

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// readsDisk counts how often a WARC file that is being written is read.
type readsDisk struct {
	archive.OSDisk
	reads int
}

func (d *readsDisk) Open(path string) (io.ReadCloser, error) {
	if strings.HasSuffix(path, ".warc.gz"+archive.SuffixOpen) {
		d.reads++
	}
	return d.OSDisk.Open(path)
}

// TestJournalIsWhole: the journal has the right offset and length of every record, so no WARC file
// is read to make its index, neither when the file is complete nor after a restart. A lost or wrong
// journal is made from the file.
func TestJournalIsWhole(t *testing.T) {
	tests := []struct {
		name    string
		restart bool
		change  func(journal string) string // nil: none
		reads   int
	}{
		{"one process", false, nil, 0},
		{"restarted", true, nil, 0},
		{"restarted without a journal", true, func(string) string { return "" }, 1},
		{"restarted with another length", true, func(s string) string {
			first, rest, _ := strings.Cut(s, " ")
			return first + " 1" + rest
		}, 2}, // from the wrong offset, then from the beginning
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := options(t)
			o.Formats, o.MaxFileBytes = []string{Name}, 1<<20
			d := &readsDisk{}
			w := must.Get(archive.OpenOn(o, nil, d))(t)
			items := someItems(t, o, 2*perBatch)
			write := func(items []*archive.Item) []archive.Mark {
				t.Helper()
				for _, item := range items {
					must.Do(t, w.Append(item, startOfTime))
				}
				return mustSync(t, w)
			}
			marks := write(items[:perBatch])
			if test.restart {
				w.Close()
				if test.change != nil {
					changeJournal(t, o.Dir, test.change)
				}
				w = must.Get(archive.OpenOn(o, marks, d))(t)
			}
			write(items[perBatch:])
			finish(t, w)
			assert.True(t, d.reads == test.reads, "the WARC file was read %d times for its index, want %d", d.reads,
				test.reads)
			got := captures(t, o.Dir)
			assert.True(t, len(got) == len(items), "captures are %q", got)
			verify(t, o.Dir)
		})
	}
}

// changeJournal rewrites the one journal of a directory.
func changeJournal(t *testing.T, dir string, change func(string) string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"+journalExtension))
	must.True(t, err == nil && len(paths) == 1, "journals: %q, %v", paths, err)
	text, err := os.ReadFile(paths[0])
	must.True(t, err == nil && len(text) != 0, "journal of %d bytes: %v", len(text), err)
	must.Do(t, os.WriteFile(paths[0], []byte(change(string(text))), 0o640))
}
