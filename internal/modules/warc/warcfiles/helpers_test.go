package warcfiles

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// options returns options with small files, so that a few lines fill one.
func options(t testing.TB) archive.Options {
	o := archive.DefaultOptions()
	o.Known = known()
	o.Dir = filepath.Join(t.TempDir(), "output")
	o.MaxFileBytes = 100
	return o
}

func mustOpen(t testing.TB, o archive.Options, marks []archive.Mark) *archive.Writer {
	t.Helper()
	w := must.Get(archive.OpenOn(o, marks, unsyncedDisk{}))(t)
	t.Cleanup(func() { w.Close() })
	return w
}

// unsyncedDisk is a disk that syncs nothing, for tests without a power cut.
type unsyncedDisk struct{ archive.OSDisk }

func (unsyncedDisk) SyncDir(string) error { return nil }

func (d unsyncedDisk) Create(path string) (archive.File, error) {
	f, err := d.OSDisk.Create(path)
	return unsynced{f}, err
}

func (d unsyncedDisk) Reopen(path string) (archive.File, error) {
	f, err := d.OSDisk.Reopen(path)
	return unsynced{f}, err
}

// unsynced is a file that loses nothing when the process dies.
type unsynced struct{ archive.File }

func (unsynced) Sync() error { return nil }

// known are the formats of a program with this one.
func known() []archive.Format {
	return slices.Concat(archive.Pages(), []archive.Format{Format()}, archive.References())
}

// rawFormat is a format whose lines are the URLs of pages.
func rawFormat() archive.Format {
	return archive.Lines{Format: archive.FormatJSONL, Prefix: "pages-", Extension: ".jsonl",
		Encode: func(v *archive.Visit) ([]byte, error) { return []byte(v.Page.URL + "\n"), nil }}
}

// rawLines returns options with that format.
func rawLines(t testing.TB) archive.Options {
	o := options(t)
	o.Known = []archive.Format{rawFormat()}
	return o
}

// mustAppend appends lines as those of pages.
func mustAppend(t testing.TB, w *archive.Writer, lines ...string) {
	t.Helper()
	e := newEncoder(t, rawLines(t))
	for _, l := range lines {
		must.Do(t, w.Append(mustEncode(t, e, &archive.Visit{Page: &archive.Page{URL: l}}), time.Now()))
	}
}

func mustSync(t testing.TB, w *archive.Writer) []archive.Mark {
	t.Helper()
	return must.Get(w.Sync())(t)
}

// lines returns n different lines of 20 bytes with their newline.
func lines(from, n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%019d", from+i))
	}
	return all
}

// output returns all lines of the crawl, as a reader of the directory finds them.
func output(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	for _, name := range names(t, dir) {
		if strings.Contains(name, archive.SuffixUnmarked) || !strings.Contains(name, ".jsonl") {
			continue
		}
		data := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		for l := range strings.Lines(string(data)) {
			text, whole := strings.CutSuffix(l, "\n")
			assert.True(t, whole, "%s ends in a torn line %q", name, l)
			all = append(all, text)
		}
	}
	return all
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	all := must.Get(archive.OSDisk{}.List(dir))(t)
	slices.Sort(all)
	return all
}

func wantNames(t testing.TB, dir string, want ...string) {
	t.Helper()
	got := names(t, dir)
	assert.True(t, slices.Equal(got, want), "files are %q, want %q", got, want)
}

func wantOutput(t testing.TB, dir string, want []string) {
	t.Helper()
	got := output(t, dir)
	assert.True(t, slices.Equal(got, want), "output is %q, want %q", got, want)
}

// finish ends a writer cleanly, and returns the marks that must be committed by then.
func finish(t testing.TB, w *archive.Writer) []archive.Mark {
	t.Helper()
	marks, err := w.Finish()
	if err == nil {
		err = w.Committed()
	}
	must.Do(t, err)
	w.Close()
	return marks
}
