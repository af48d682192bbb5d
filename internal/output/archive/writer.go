package archive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// ErrClosed is the error of a [Writer] that was closed.
var ErrClosed = errors.New("archive: the writer is closed")

// Writer appends the results of requests to the files of all formats. It has one owner: its methods
// must not be called concurrently.
type Writer struct {
	sinks   []Sink // of all formats that are written: Options.Written
	carried []Mark // of formats that are not written at present; every Sync returns them
	aside   []Aside
	closed  bool
}

// Open prepares the directory for writing behind marks, those that were committed last; a new crawl
// has none. It cuts what lies beyond them. It refuses a marked file that is missing or too short
// with [ErrMissing] or [ErrShort]: to go on without it would lose pages that count as fetched.
func Open(o Options, marks []Mark) (*Writer, error) {
	return OpenOn(o, marks, OSDisk{})
}

// OpenOn is Open on a disk that may fail, for tests.
func OpenOn(o Options, marks []Mark, d Disk) (*Writer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	w := &Writer{}
	if !o.IsNone() {
		if err := makeDir(o.Dir, d); err != nil {
			return nil, err
		}
	}
	var all []Sink
	for _, f := range o.Written() {
		s, err := f.NewSink(&o, d)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if err := setAsideTails(all, marks); err != nil {
		return nil, err
	}
	for _, s := range all {
		if err := w.add(s, marks); err != nil {
			s.LetGo()
			w.Close()
			return nil, err
		}
		w.aside = append(w.aside, s.Aside()...)
	}
	w.carry(marks)
	return w, nil
}

// setAsideTails sets aside what files have behind their marks if one of the files shows that the
// database is an older copy: then everything in that file and in the others was committed once. It
// changes nothing in a directory that lacks committed bytes.
func setAsideTails(all []Sink, marks []Mark) error {
	ahead := false
	for _, s := range all {
		if m := markOf(s, marks); m != nil {
			is, err := s.IsAhead(m)
			if err != nil {
				return err
			}
			ahead = ahead || is
		}
	}
	if !ahead {
		return nil
	}
	for _, s := range all {
		if m := markOf(s, marks); m != nil {
			if err := s.SetAsideTail(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeDir makes the output directory if there is none.
func makeDir(dir string, d Disk) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	err := os.MkdirAll(dir, 0o750)
	if err == nil {
		err = d.SyncDir(filepath.Dir(dir))
	}
	if err != nil {
		return fmt.Errorf("archive: make the output directory: %w", err)
	}
	return nil
}

// add prepares a sink behind its mark, if it has one, and drives it from now on.
func (w *Writer) add(s Sink, marks []Mark) error {
	var err error
	if m := markOf(s, marks); m != nil {
		err = s.Restore(m)
	} else {
		err = s.Adopt()
	}
	if err == nil {
		w.sinks = append(w.sinks, s)
	}
	return err
}

// markOf returns the sink's own mark, or nil.
func markOf(s Sink, marks []Mark) *Mark {
	for i := range marks {
		if s.Owns(marks[i]) {
			return &marks[i]
		}
	}
	return nil
}

// carry keeps the marks that belong to no sink.
func (w *Writer) carry(marks []Mark) {
	w.carried = nil
	for _, m := range marks {
		if !slices.ContainsFunc(w.sinks, func(s Sink) bool { return s.Owns(m) }) {
			w.carried = append(w.carried, m)
		}
	}
}

// Append adds an item. It may stay in memory until Sync. now decides about the age of files. A failure drops
// everything since the last mark, so that the batch can be retried from its first item.
func (w *Writer) Append(item *Item, now time.Time) error {
	if w.closed {
		return ErrClosed
	}
	for i, s := range w.sinks {
		r := item.records[i]
		if r == nil {
			continue
		}
		if err := r.each(func(r *Record) error { return s.Append(r, now) }); err != nil {
			return errors.Join(err, w.revert())
		}
	}
	return nil
}

// Sync makes everything that was appended survive a power cut, and returns the marks to commit with it. A failure
// drops everything since the last mark, so that the batch can be retried from its first item.
func (w *Writer) Sync() ([]Mark, error) {
	if w.closed {
		return nil, ErrClosed
	}
	before := w.Marks()
	if err := w.syncAll(); err != nil {
		return nil, errors.Join(err, w.Rollback(before))
	}
	return w.Marks(), nil
}

// syncAll syncs the sinks concurrently: each waits for the disk.
func (w *Writer) syncAll() error {
	errs := make([]error, len(w.sinks))
	var others sync.WaitGroup
	for i, s := range w.sinks {
		if i > 0 {
			others.Go(func() { errs[i] = s.Sync() })
		}
	}
	if len(w.sinks) > 0 {
		errs[0] = w.sinks[0].Sync()
	}
	others.Wait()
	return errors.Join(errs...)
}

// Marks returns the marks of the last Sync, Expire or Finish; before them, those of Open, which may
// have more than the marks that it was called with.
func (w *Writer) Marks() []Mark {
	marks := slices.Clone(w.carried)
	for _, s := range w.sinks {
		if m, ok := s.Mark(); ok {
			marks = append(marks, m)
		}
	}
	return marks
}

// Rollback cuts the files back to marks that were committed before the last Sync, after the commit
// of that Sync's marks has failed and before its batch is retried.
func (w *Writer) Rollback(marks []Mark) error {
	if w.closed {
		return ErrClosed
	}
	var errs []error
	for _, s := range w.sinks {
		errs = append(errs, s.Restore(markOf(s, marks)))
	}
	return errors.Join(errs...)
}

// Expire completes files that are older than Options.MaxFileAge while nothing is appended, and returns the marks to
// commit; nil: it did nothing. If they are not committed, those of the next Sync replace them. The marks of the last
// Sync must have been committed. An error loses nothing: the next call tries again.
func (w *Writer) Expire(now time.Time) ([]Mark, error) {
	return w.complete(func(s Sink) (bool, error) { return s.Expire(now) })
}

// Finish drops what was not synced, completes the files and returns the marks to commit; nil: the marks are unchanged.
func (w *Writer) Finish() ([]Mark, error) { return w.complete(Sink.End) }

// complete completes files, and returns the marks if one has moved.
func (w *Writer) complete(f func(Sink) (bool, error)) ([]Mark, error) {
	if w.closed {
		return nil, ErrClosed
	}
	any := false
	var errs []error
	for _, s := range w.sinks {
		moved, err := f(s)
		any, errs = any || moved, append(errs, err)
	}
	if !any {
		return nil, errors.Join(errs...)
	}
	return w.Marks(), errors.Join(errs...)
}

// Committed records that the marks of the last Sync, Expire or Finish are committed: files that are complete according
// to them get their final names. An error loses nothing: the next call, or the next Open, tries again.
func (w *Writer) Committed() error {
	if w.closed {
		return ErrClosed
	}
	var errs []error
	for _, s := range w.sinks {
		errs = append(errs, s.Committed())
	}
	return errors.Join(errs...)
}

// revert drops what was appended to any sink since the last mark.
func (w *Writer) revert() error {
	var errs []error
	for _, s := range w.sinks {
		errs = append(errs, s.Revert())
	}
	return errors.Join(errs...)
}

// Close closes the files and leaves them as they are. What was appended since the last mark is
// dropped when they are opened again. A second Close does nothing.
func (w *Writer) Close() {
	if w.closed {
		return
	}
	w.closed = true
	for _, s := range w.sinks {
		s.LetGo()
	}
}

// Aside returns the files that Open set aside.
func (w *Writer) Aside() []Aside { return w.aside }
