package archive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// options returns options with small files, so that a few lines fill one.
func options(t testing.TB) Options {
	o := DefaultOptions()
	o.Dir = filepath.Join(t.TempDir(), "output")
	o.MaxFileBytes = 100
	return o
}

func mustOpen(t testing.TB, o Options, marks []Mark) *Writer {
	t.Helper()
	w := must.Get(Open(o, marks))(t)
	t.Cleanup(func() { w.Close() })
	return w
}

func mustAppend(t testing.TB, w *Writer, lines ...string) {
	t.Helper()
	for _, l := range lines {
		must.Do(t, w.Append(itemOf(l), time.Now()))
	}
}

// itemOf returns an item of one line for FormatJSONL.
func itemOf(line string) *Item {
	return &Item{records: []*Record{{Content: spool.Of([]byte(line + "\n"))}}}
}

func mustSync(t testing.TB, w *Writer) []Mark {
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
		if strings.Contains(name, SuffixUnmarked) || !strings.Contains(name, ".jsonl") {
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
	all := must.Get(OSDisk{}.List(dir))(t)
	slices.Sort(all)
	return all
}

func wantNames(t testing.TB, dir string, want ...string) {
	t.Helper()
	assert.Slice(t, names(t, dir), want, "files")
}

func wantOutput(t testing.TB, dir string, want []string) {
	t.Helper()
	assert.Slice(t, output(t, dir), want, "output")
}

// finish ends a writer cleanly, and returns the marks that must be committed by then.
func finish(t testing.TB, w *Writer) []Mark {
	t.Helper()
	marks, err := w.Finish()
	if err == nil {
		err = w.Committed()
	}
	must.Do(t, err)
	w.Close()
	return marks
}

func TestFilesRotateBetweenLines(t *testing.T) {
	o := options(t)
	w := mustOpen(t, o, nil)
	wantNames(t, o.Dir)
	mustAppend(t, w, lines(0, 12)...)
	want := []Mark{FileMark{File: "pages-000003.jsonl", Length: 40}.Mark()}
	got := mustSync(t, w)
	must.True(t, slices.Equal(got, want), "marks %v, want %v", got, want)
	// A file whose mark is not committed keeps its suffix: the commit may still fail.
	wantNames(t, o.Dir, "pages-000001.jsonl.open", "pages-000002.jsonl.open", "pages-000003.jsonl.open")
	must.Do(t, w.Committed())
	wantNames(t, o.Dir, "pages-000001.jsonl", "pages-000002.jsonl", "pages-000003.jsonl.open")
	mustAppend(t, w, lines(12, 1)...)
	mustSync(t, w)
	finish(t, w)
	wantNames(t, o.Dir, "pages-000001.jsonl", "pages-000002.jsonl", "pages-000003.jsonl")
	wantOutput(t, o.Dir, lines(0, 13))
}

func TestLongLineHasAFileOfItsOwn(t *testing.T) {
	o := options(t)
	w := mustOpen(t, o, nil)
	long := strings.Repeat("x", 1000)
	mustAppend(t, w, "a", long, "b")
	mustSync(t, w)
	wantOutput(t, o.Dir, []string{"a", long, "b"})
	wantNames(t, o.Dir, "pages-000001.jsonl.open", "pages-000002.jsonl.open", "pages-000003.jsonl.open")
}

func TestSyncWithoutLinesMovesNothing(t *testing.T) {
	o := options(t)
	w := mustOpen(t, o, nil)
	marks := mustSync(t, w)
	must.True(t, len(marks) == 0, "marks of nothing: %v", marks)
	mustAppend(t, w, "a")
	first := mustSync(t, w)
	second := mustSync(t, w)
	must.True(t, slices.Equal(first, second), "marks moved from %v to %v", first, second)
}

func TestFinishDropsWhatWasNotSynced(t *testing.T) {
	o := options(t)
	w := mustOpen(t, o, nil)
	mustAppend(t, w, "a")
	mustSync(t, w)
	mustAppend(t, w, lines(0, 9)...)
	finish(t, w)
	wantNames(t, o.Dir, "pages-000001.jsonl")
	wantOutput(t, o.Dir, []string{"a"})
}

func TestClosedWriterRefuses(t *testing.T) {
	o := options(t)
	w := mustOpen(t, o, nil)
	w.Close()
	w.Close()
	_, syncErr := w.Sync()
	_, finishErr := w.Finish()
	for _, err := range []error{w.Append(itemOf("a"), time.Now()), syncErr, finishErr, w.Rollback(nil), w.Committed()} {
		assert.Is(t, err, ErrClosed)
	}
	wantNames(t, o.Dir)
}

func TestNoneWritesNothingAndCarriesMarks(t *testing.T) {
	o := options(t)
	o.Formats = []string{FormatNone}
	before := []Mark{FileMark{File: "pages-000007.jsonl", Length: 70}.Mark(),
		FileMark{File: "crawl-20260101000000-000002-h.warc.gz", Length: 123}.Mark()}
	w := mustOpen(t, o, before)
	mustAppend(t, w, "a")
	got := mustSync(t, w)
	must.True(t, slices.Equal(got, before), "marks %v came back as %v", before, got)
	_, err := os.Stat(o.Dir)
	must.True(t, errors.Is(err, os.ErrNotExist), "there is a directory: %v", err)
}

func TestMarksOfOtherFormsAreCarried(t *testing.T) {
	foreign := FileMark{File: "crawl-20260101000000-000002-h.warc.gz", Length: 123}.Mark()
	w := mustOpen(t, options(t), []Mark{foreign})
	mustAppend(t, w, "a")
	want := []Mark{foreign, FileMark{File: "pages-000001.jsonl", Length: 2}.Mark()}
	got := mustSync(t, w)
	must.True(t, slices.Equal(got, want), "got %v, want %v", got, want)
}

func TestRollback(t *testing.T) {
	o := options(t)
	w := mustOpen(t, o, nil)
	for range 2 { // the first commit fails once
		mustAppend(t, w, lines(0, 7)...)
		mustSync(t, w)
		wantOutput(t, o.Dir, lines(0, 7))
		must.Do(t, w.Rollback(nil))
		wantNames(t, o.Dir)
	}
	mustAppend(t, w, lines(0, 7)...)
	committed := mustSync(t, w)
	mustAppend(t, w, lines(100, 20)...)
	mustSync(t, w)
	must.Do(t, w.Rollback(committed))
	wantOutput(t, o.Dir, lines(0, 7))
	mustAppend(t, w, lines(7, 5)...)
	committed = mustSync(t, w)
	w.Close()

	w = mustOpen(t, o, committed)
	wantOutput(t, o.Dir, lines(0, 12))
	assert.True(t, w.Rollback(nil) != nil, "a crawl that began with marks was rolled back to nothing")
}

// recorder is a format whose sink is of another kind: it has no files, and keeps nothing.
type recorder struct {
	Lines
	Sink
	fail     error
	reverted int
	restored int
}

const recorderMark Mark = `{"Receiver":"a","Number":1}`

func (r *recorder) NewSink(*Options, Disk) (Sink, error) { return r, nil }
func (r *recorder) Owns(m Mark) bool                     { return m == recorderMark }
func (r *recorder) Adopt() error                         { return nil }
func (r *recorder) Restore(*Mark) error                  { r.restored++; return nil }
func (r *recorder) Append(*Record, time.Time) error      { return r.fail }
func (r *recorder) Sync() error                          { return r.fail }
func (r *recorder) Mark() (Mark, bool)                   { return recorderMark, true }
func (r *recorder) Revert() error                        { r.reverted++; return nil }
func (r *recorder) Committed() error                     { return r.fail }
func (r *recorder) LetGo()                               {}
func (r *recorder) Aside() []Aside                       { return nil }

func TestConcurrentSinks(t *testing.T) {
	o := options(t)
	r := &recorder{Lines: Lines{Format: "record",
		Encode: func(v *Visit) ([]byte, error) { return []byte(v.Page.URL), nil }}}
	o.Known, o.Formats = append(o.Known, r), []string{FormatJSONL, "record"}
	e := must.Get(NewEncoder(o, nil))(t)
	w := mustOpen(t, o, nil)
	encoded := func(url string) []byte {
		return must.Get(Page{URL: url}.Encode())(t)
	}
	append := func(url string) {
		t.Helper()
		item, err := e.Encode(&Visit{Page: &Page{URL: url}})
		if err == nil {
			err = w.Append(item, time.Now())
		}
		must.Do(t, err)
	}
	append("a")
	pages := FileMark{File: "pages-000001.jsonl", Length: int64(len(encoded("a")))}
	want := []Mark{pages.Mark(), recorderMark}
	got := mustSync(t, w)
	must.True(t, slices.Equal(got, want), "got %v, want %v", got, want)
	append("b")
	r.fail = errors.New("no room")
	_, err := w.Sync()
	must.True(t, errors.Is(err, r.fail), "got %v", err)
	assert.Equal(t, len(output(t, o.Dir)), 1, "lines")
	assert.Equal(t, r.restored, 1, "the sink that failed was not rolled back")
	r.fail = nil
	append("b")
	mustSync(t, w)
	assert.Equal(t, len(output(t, o.Dir)), 2, "lines")
}

func BenchmarkAppend(b *testing.B) {
	o := options(b)
	o.MaxFileBytes = DefaultOptions().MaxFileBytes
	w := mustOpen(b, o, nil)
	encoded := must.Get(fullPage().Encode())(b)
	item := itemOf(strings.TrimSuffix(string(encoded), "\n"))
	b.SetBytes(int64(len(encoded)))
	for b.Loop() {
		must.Do(b, w.Append(item, time.Now()))
	}
}
