package archive

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// failingDisk fails one operation, or every write once its room is used up.
type failingDisk struct {
	osDisk
	room  int // bytes that can still be written
	fail  int // this many operations from now fails; 0: none does
	times int // how many fail from then on
	seen  int // operations so far
}

var errInjected = fmt.Errorf("injected: %w", syscall.EIO)

// turn counts an operation and says whether it fails.
func (d *failingDisk) turn() error {
	d.seen++
	if d.fail > 0 && d.seen >= d.fail && d.seen < d.fail+d.times {
		return errInjected
	}
	return nil
}

func (d *failingDisk) list(dir string) ([]string, error) {
	if err := d.turn(); err != nil {
		return nil, err
	}
	return d.osDisk.list(dir)
}

func (d *failingDisk) create(path string) (file, error) {
	if err := d.turn(); err != nil {
		return nil, err
	}
	f, err := d.osDisk.create(path)
	return &failingFile{f, d}, err
}

func (d *failingDisk) reopen(path string) (file, error) {
	if err := d.turn(); err != nil {
		return nil, err
	}
	f, err := d.osDisk.reopen(path)
	return &failingFile{f, d}, err
}

func (d *failingDisk) rename(from, to string) error {
	if err := d.turn(); err != nil {
		return err
	}
	return d.osDisk.rename(from, to)
}

func (d *failingDisk) remove(path string) error {
	if err := d.turn(); err != nil {
		return err
	}
	return d.osDisk.remove(path)
}

func (d *failingDisk) syncDir(dir string) error {
	if err := d.turn(); err != nil {
		return err
	}
	return d.osDisk.syncDir(dir)
}

type failingFile struct {
	file
	disk *failingDisk
}

// Write writes half of what it cannot write as a whole.
func (f *failingFile) Write(p []byte) (int, error) {
	if err := f.disk.turn(); err != nil {
		n, _ := f.file.Write(p[:len(p)/2])
		return n, err
	}
	if len(p) > f.disk.room {
		n, _ := f.file.Write(p[:f.disk.room])
		f.disk.room = 0
		return n, syscall.ENOSPC
	}
	f.disk.room -= len(p)
	return f.file.Write(p)
}

func (f *failingFile) Sync() error {
	if err := f.disk.turn(); err != nil {
		return err
	}
	return f.file.Sync()
}

func (f *failingFile) Truncate(n int64) error {
	if err := f.disk.turn(); err != nil {
		return err
	}
	return f.file.Truncate(n)
}

func (f *failingFile) Close() error {
	if err := f.disk.turn(); err != nil {
		f.file.Close()
		return err
	}
	return f.file.Close()
}

// batch appends and syncs lines from the first, as often as it takes.
func batch(w *Writer, all []string) ([]Mark, error) {
	for _, l := range all {
		if err := w.Append(itemOf(l), time.Now()); err != nil {
			return nil, err
		}
	}
	return w.Sync()
}

func TestFullDisk(t *testing.T) {
	o := options(t)
	o.MaxFileBytes = 1000
	d := &failingDisk{room: 500}
	w, err := open(o, nil, d)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	marks, err := batch(w, lines(0, 20))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // it stays full for a while
		if _, err := batch(w, lines(20, 100)); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("got %v", err)
		}
		wantOutput(t, o.Dir, lines(0, 20))
		wantNames(t, o.Dir, "pages-000001.jsonl.open")
		if got := w.marks(); !slices.Equal(got, marks) {
			t.Fatalf("a failed batch moved the marks from %v to %v", marks, got)
		}
	}
	d.room = 1 << 20
	if _, err := batch(w, lines(20, 100)); err != nil {
		t.Fatal(err)
	}
	wantOutput(t, o.Dir, lines(0, 120))
}

// TestEveryOperationFails runs three batches over several files once for each operation of the disk, lets
// that one and a number of those after it fail, and tries again until it works.
func TestEveryOperationFails(t *testing.T) {
	for _, inARow := range []int{1, 4} {
		for fail := 1; ; fail++ {
			o := options(t)
			o.Dir = filepath.Join(o.Dir, fmt.Sprint(inARow, fail))
			d := &failingDisk{room: 1 << 20, fail: fail, times: inARow}
			survive(t, o, d)
			if t.Failed() {
				t.Fatalf("with operations %d to %d failing", fail, fail+inARow-1)
			}
			if d.seen < fail {
				break // every operation had its turn
			}
		}
	}
}

func survive(t *testing.T, o Options, d *failingDisk) {
	t.Helper()
	var w *Writer
	var marks []Mark
	attempt := func(what string, f func() error) {
		for try := 0; ; try++ {
			err := f()
			if err == nil {
				return
			}
			if try > 20 || !errors.Is(err, errInjected) {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	reopen := func() {
		attempt("open", func() (err error) { w, err = open(o, marks, d); return err })
	}
	reopen()
	var want []string
	for i := range 3 {
		attempt("batch", func() error {
			committed, err := batch(w, lines(100*i, 12))
			if err == nil {
				marks = committed
			} else if d.fail+d.times <= d.seen {
				wantOutput(t, o.Dir, want)
			}
			return err
		})
		want = append(want, lines(100*i, 12)...)
		wantOutput(t, o.Dir, want)
		if i == 1 { // between, the process dies in the middle of a batch
			batchLines := lines(900, 30)
			for _, l := range batchLines {
				if err := w.Append(itemOf(l), time.Now()); err != nil {
					break
				}
			}
			abandon(w)
			reopen()
			wantOutput(t, o.Dir, want)
		}
	}
	if err := w.Close(); err != nil {
		if !errors.Is(err, errInjected) {
			t.Fatal(err)
		}
		reopen()
	}
	wantOutput(t, o.Dir, want)
}
