package warcfiles

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// failingDisk fails one operation, or every write once its room is used up. It never syncs, since
// the test has no power cut.
type failingDisk struct {
	archive.OSDisk
	room  int // bytes that can still be written
	fail  int // this many operations from now fails; 0: none does
	times int // how many fail from then on
	seen  int // operations so far
}

var errInjected = fmt.Errorf("injected: %w", syscall.EIO)

// turn counts an operation and reports whether it fails.
func (d *failingDisk) turn() error {
	d.seen++
	if d.fail > 0 && d.seen >= d.fail && d.seen < d.fail+d.times {
		return errInjected
	}
	return nil
}

func (d *failingDisk) List(dir string) ([]string, error) {
	if err := d.turn(); err != nil {
		return nil, err
	}
	return d.OSDisk.List(dir)
}

func (d *failingDisk) Create(path string) (archive.File, error) {
	if err := d.turn(); err != nil {
		return nil, err
	}
	f, err := d.OSDisk.Create(path)
	return &failingFile{f, d}, err
}

func (d *failingDisk) Reopen(path string) (archive.File, error) {
	if err := d.turn(); err != nil {
		return nil, err
	}
	f, err := d.OSDisk.Reopen(path)
	return &failingFile{f, d}, err
}

func (d *failingDisk) Open(path string) (io.ReadCloser, error) {
	if err := d.turn(); err != nil {
		return nil, err
	}
	return d.OSDisk.Open(path)
}

func (d *failingDisk) Rename(from, to string) error {
	if err := d.turn(); err != nil {
		return err
	}
	return d.OSDisk.Rename(from, to)
}

func (d *failingDisk) Remove(path string) error {
	if err := d.turn(); err != nil {
		return err
	}
	return d.OSDisk.Remove(path)
}

func (d *failingDisk) SyncDir(dir string) error {
	if err := d.turn(); err != nil {
		return err
	}
	return nil
}

type failingFile struct {
	archive.File
	disk *failingDisk
}

// Write writes half of the bytes that do not fit.
func (f *failingFile) Write(p []byte) (int, error) {
	if err := f.disk.turn(); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	if len(p) > f.disk.room {
		n, _ := f.File.Write(p[:f.disk.room])
		f.disk.room = 0
		return n, syscall.ENOSPC
	}
	f.disk.room -= len(p)
	return f.File.Write(p)
}

func (f *failingFile) Sync() error {
	if err := f.disk.turn(); err != nil {
		return err
	}
	return nil
}

func (f *failingFile) Truncate(n int64) error {
	if err := f.disk.turn(); err != nil {
		return err
	}
	return f.File.Truncate(n)
}

func (f *failingFile) Close() error {
	if err := f.disk.turn(); err != nil {
		f.File.Close()
		return err
	}
	return f.File.Close()
}

// batch appends and syncs lines from the first one, until that succeeds.
func batch(e *archive.Encoder, w *archive.Writer, all []string) ([]archive.Mark, error) {
	for _, l := range all {
		item, err := e.Encode(&archive.Visit{Page: &archive.Page{URL: l}})
		if err == nil {
			err = w.Append(item, time.Now())
		}
		if err != nil {
			return nil, err
		}
	}
	return w.Sync()
}

func TestFullDisk(t *testing.T) {
	o := rawLines(t)
	o.MaxFileBytes = 1000
	d := &failingDisk{room: 500}
	w := must.Get(archive.OpenOn(o, nil, d))(t)
	defer w.Close()
	e := newEncoder(t, o)
	marks := must.Get(batch(e, w, lines(0, 20)))(t)
	for range 3 { // it stays full for a while
		_, err := batch(e, w, lines(20, 100))
		must.True(t, errors.Is(err, syscall.ENOSPC), "got %v", err)
		wantOutput(t, o.Dir, lines(0, 20))
		wantNames(t, o.Dir, "pages-000001.jsonl.open")
		got := w.Marks()
		must.True(t, slices.Equal(got, marks), "a failed batch moved the marks from %v to %v", marks, got)
	}
	d.room = 1 << 20
	must.Get(batch(e, w, lines(20, 100)))(t)
	wantOutput(t, o.Dir, lines(0, 120))
}

// TestEveryOperationFails runs three batches over several files once for each operation of the
// disk. That operation and a number of later ones fail; the batch is retried until it succeeds.
func TestEveryOperationFails(t *testing.T) {
	all := compressions(t)
	for name, records := range map[string]archive.Compression{
		archive.FormatJSONL: {}, "gzip": all["gzip"], "zstd dictionary": all["zstd dictionary"],
	} {
		o := rawLines(t)
		dir := o.Dir
		o.Formats, o.MaxFileAge = []string{archive.FormatJSONL}, 24*time.Hour
		if records.Format != "" {
			o.Known, o.Formats, o.Records = known(), []string{Name}, records
			o.MaxFileBytes = int64(6000 + len(warc.Compression(records).Start())) // a handful of visits
		}
		items := someItems(t, o, 4*perBatch)
		for _, inARow := range []int{1, 4} {
			step := inARow
			if o.Has(Name) {
				step++ // it has many more operations
			}
			for fail := 1; ; fail += step {
				o.Dir = filepath.Join(dir, fmt.Sprint(name, inARow, fail))
				d := &failingDisk{room: 1 << 20, fail: fail, times: inARow}
				survive(t, o, d, items)
				must.True(t, !t.Failed(), "%s with operations %d to %d failing", name, fail, fail+inARow-1)
				if d.seen < fail {
					break // every operation had its turn
				}
			}
		}
	}
}

// survivor writes batches to a disk that fails, and retries until it succeeds.
type survivor struct {
	t     *testing.T
	o     archive.Options
	disk  *failingDisk
	items []*archive.Item // of the lines that are written, by number
	w     *archive.Writer
	marks []archive.Mark
}

const perBatch = 5

func survive(t *testing.T, o archive.Options, d *failingDisk, items []*archive.Item) {
	t.Helper()
	s := &survivor{t: t, o: o, disk: d, items: items}
	s.reopen()
	for i := range 3 {
		s.attempt("batch", func() error {
			err := s.batch(i)
			if err != nil && d.fail+d.times <= d.seen {
				s.want(i * perBatch)
			}
			return err
		})
		s.want((i + 1) * perBatch)
		if i == 0 {
			s.attempt("expire", func() error {
				marks, err := s.w.Expire(startOfTime.Add(48 * time.Hour))
				if marks != nil {
					s.marks = marks
				}
				return err
			})
			s.attempt("commit", s.w.Committed)
			s.want(perBatch)
		}
		if i == 1 { // between, the process dies in the middle of a batch
			for _, item := range s.items[3*perBatch:] {
				if err := s.w.Append(item, startOfTime); err != nil {
					break
				}
			}
			s.w.Close()
			s.reopen()
			s.want((i + 1) * perBatch)
		}
	}
	s.attempt("finish", func() error {
		marks, err := s.w.Finish()
		if marks != nil {
			s.marks = marks
		}
		return err
	})
	s.attempt("commit", s.w.Committed)
	s.w.Close()
	s.want(3 * perBatch)
	s.reopen() // all is complete, and none of it needed
	s.want(3 * perBatch)
	if o.Has(Name) {
		verify(t, o.Dir)
	}
}

// someItems returns items for one format, numbered.
func someItems(t *testing.T, o archive.Options, n int) (items []*archive.Item) {
	e := newEncoder(t, o)
	for i := range n {
		if o.Has(archive.FormatJSONL) {
			items = append(items, mustEncode(t, e, &archive.Visit{Page: &archive.Page{URL: lines(i, 1)[0]}}))
			continue
		}
		x := exchangeOf("http://h.test/"+lines(i, 1)[0], "", i)
		items = append(items, mustEncode(t, e, &archive.Visit{Exchange: x}))
	}
	return items
}

func (s *survivor) attempt(what string, f func() error) {
	s.t.Helper()
	for try := 0; ; try++ {
		err := f()
		if err == nil {
			return
		}
		if try > 20 || !errors.Is(err, errInjected) {
			s.t.Fatalf("%s: %v", what, err)
		}
	}
}

func (s *survivor) reopen() {
	s.t.Helper()
	s.attempt("open", func() (err error) { s.w, err = archive.OpenOn(s.o, s.marks, s.disk); return err })
}

func (s *survivor) batch(i int) error {
	for _, item := range s.items[i*perBatch : (i+1)*perBatch] {
		if err := s.w.Append(item, startOfTime); err != nil {
			return err
		}
	}
	marks, err := s.w.Sync()
	if err == nil {
		s.marks = marks
	}
	return err
}

// want checks that the files have the first n items and nothing else.
func (s *survivor) want(n int) {
	s.t.Helper()
	if s.o.Has(archive.FormatJSONL) {
		wantOutput(s.t, s.o.Dir, lines(0, n))
		return
	}
	var want []string
	for _, l := range lines(0, n) {
		want = append(want, "http://h.test/"+l)
	}
	if got := captures(s.t, s.o.Dir); !slices.Equal(got, want) {
		s.t.Errorf("captures are %q, want %q", got, want)
	}
}
