package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"
)

// position is an offset in a file of a series. The length whole means that all files up to the
// serial number are complete, and that none of them is checked.
type position struct {
	serial   int
	name     string // of the file; empty if the length is whole
	length   int64
	complete bool // nothing more is written to the file
}

// done reports whether a complete file gets its final name when the position is committed.
func (p position) done(serial int) bool { return serial < p.serial || serial == p.serial && p.complete }

const whole = -1

// full is a file that has all its records and still has SuffixOpen.
type full struct {
	serial int
	name   string
}

// SeriesOptions say what is special about the files of a format.
type SeriesOptions struct {
	Naming    Naming
	Extension string // of new files: a file with another one is not continued
	Packer    Packer // compresses the records of a file together; nil: they are written as they are
	// Head returns the first record of a file that is begun; nil: there is none.
	Head func(name string, now time.Time) (*Record, error)
	// Index is kept next to each file; nil: there is none.
	Index Index
	// Fit returns a record as the current file has it; nil: as it is.
	Fit func(*Record) (*Record, error)
	// Continues reports whether records can follow those of a file, which it reads from its start; nil: always.
	Continues func(file io.Reader) (bool, error)
}

// Index is what a format keeps next to each file of a series, in step with it. Names are those of complete files.
type Index interface {
	Full() bool                                   // it takes no more: the file is full, too
	Begin(name string) error                      // a new file
	Add(offset, length int64, entry []byte) error // a record of the file being written, with its Record.Entry
	Flush() error                                 // pass everything to the system
	Resume(name, path string, length int64) error // a file that was cut to a length
	Complete(name, path string) error             // the file, at path, is complete
	Forget(name string) error                     // what only an unfinished file needs
	Sweep(open string) error                      // what a crash left, except of the open file
	SetAside(name, suffix string) error           // the file gets the suffix
	Drop()                                        // close without what was not flushed
}

// Series is a Sink of numbered files. The size of each file is bounded, and its age while records come.
type Series struct {
	c        SeriesOptions
	disk     Disk
	dir      string
	maxBytes int64
	maxAge   time.Duration // 0: no limit

	base     position // behind the files that existed before this crawl, if it began without a mark
	synced   position // the last mark
	written  position // where the next record goes
	dirty    bool     // something was appended since the last mark
	next     int      // serial number of the next new file
	finished []full
	out      stream    // to the current file; without one, the next record begins one
	began    time.Time // when the current file was begun or continued; zero: set by its first record
	created  bool      // the directory must be synced
	torn     bool      // a failure is not undone yet: Revert must come first
	aside    []Aside   // files that were set aside
}

// NewSeries returns a sink of files in the directory of the options.
func NewSeries(o *Options, d Disk, c SeriesOptions) *Series {
	s := &Series{c: c, disk: d, dir: o.Dir, maxBytes: o.MaxFileBytes, maxAge: o.MaxFileAge}
	s.out.packer = c.Packer
	return s
}

// Append adds a record to the current file or, if that is full, to a new one.
func (s *Series) Append(r *Record, now time.Time) error {
	if s.torn {
		if err := s.Revert(); err != nil {
			return err
		}
	}
	if s.full(r, now) {
		if err := s.finish(); err != nil {
			return err
		}
	}
	if s.out.file == nil {
		if err := s.begin(now); err != nil {
			return err
		}
	}
	if s.began.IsZero() {
		s.began = now
	}
	return s.write(r)
}

// full reports whether the current file takes no more.
func (s *Series) full(r *Record, now time.Time) bool {
	if s.out.file == nil || s.out.length == 0 && !s.out.frame {
		return false
	}
	size := r.Size()
	if s.out.packer != nil {
		size = 0 // unknown
	}
	return s.out.length+size > s.maxBytes ||
		s.maxAge > 0 && !s.began.IsZero() && now.Sub(s.began) >= s.maxAge ||
		s.c.Index != nil && s.c.Index.Full()
}

// write adds a record to the current file and to its index.
func (s *Series) write(r *Record) error {
	at := s.out.length
	s.dirty = true
	var err error
	if s.c.Fit != nil {
		r, err = s.c.Fit(r)
	}
	if err == nil {
		err = s.out.write(r)
	}
	if err == nil && s.c.Index != nil {
		err = s.c.Index.Add(at, s.out.length-at, r.Entry)
	}
	if err != nil {
		return fmt.Errorf("archive: write %s: %w", s.openPath(s.written.name), err)
	}
	s.written.length = s.out.length
	return nil
}

// begin opens the next file.
func (s *Series) begin(now time.Time) error {
	name := s.c.Naming.Make(s.next, now)
	f, err := s.disk.Create(s.openPath(name))
	if err != nil {
		return fmt.Errorf("archive: begin a file: %w", err)
	}
	s.use(f, position{serial: s.next, name: name})
	s.began = now
	s.next++
	s.created = true
	if s.c.Index != nil {
		if err := s.c.Index.Begin(name); err != nil {
			return err
		}
	}
	if s.c.Head == nil {
		return nil
	}
	r, err := s.c.Head(name, now)
	if err != nil {
		return err
	}
	return s.write(r)
}

// use makes f the file being written. at has its length.
func (s *Series) use(f File, at position) {
	s.written, s.began = at, time.Time{}
	s.out.use(f, at.length)
}

// finish ends the current file: it is full.
func (s *Series) finish() error {
	if err := s.flush(); err != nil {
		return err
	}
	f := s.out.file
	s.out.file, s.written.complete = nil, true
	s.finished = append(s.finished, full{s.written.serial, s.written.name})
	if err := f.Close(); err != nil {
		return fmt.Errorf("archive: close %s: %w", s.openPath(s.written.name), err)
	}
	return nil
}

// flush makes what was written to the current file survive a power cut.
func (s *Series) flush() error {
	err := s.out.flush()
	if err == nil && s.c.Index != nil {
		err = s.c.Index.Flush()
	}
	if err != nil {
		return fmt.Errorf("archive: sync %s: %w", s.openPath(s.written.name), err)
	}
	s.written.length = s.out.length
	return nil
}

// Sync makes everything that was appended survive a power cut, and moves the mark behind it.
func (s *Series) Sync() error {
	if s.torn {
		if err := s.Revert(); err != nil {
			return err
		}
	}
	if !s.dirty {
		return nil
	}
	if s.out.file != nil {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if s.created {
		if err := s.disk.SyncDir(s.dir); err != nil {
			return fmt.Errorf("archive: sync %s: %w", s.dir, err)
		}
		s.created = false
	}
	s.synced, s.dirty = s.written, false
	return nil
}

// Committed gives the complete files their final names: the mark is committed. An error loses
// nothing: the next call tries again.
func (s *Series) Committed() error {
	if s.torn || len(s.finished) == 0 || !s.synced.done(s.finished[0].serial) {
		return nil
	}
	for len(s.finished) > 0 && s.synced.done(s.finished[0].serial) {
		if err := s.complete(s.finished[0].name); err != nil {
			return err
		}
		s.finished = s.finished[1:]
	}
	if err := s.disk.SyncDir(s.dir); err != nil {
		return fmt.Errorf("archive: sync %s: %w", s.dir, err)
	}
	return nil
}

// Expire completes a file that is older than its limit, so that it does not wait for a record that
// may never come. It does nothing while records are not synced.
func (s *Series) Expire(now time.Time) (moved bool, err error) {
	if s.torn || s.dirty {
		return false, nil
	}
	if s.began.IsZero() {
		s.began = now
	}
	if s.out.file != nil && (s.maxAge == 0 || now.Sub(s.began) < s.maxAge || s.written.length == 0) {
		return false, nil
	}
	return s.End()
}

// End completes the current file and moves the mark there. It drops what was not synced.
func (s *Series) End() (moved bool, err error) {
	if s.torn || s.dirty {
		if err := s.Revert(); err != nil {
			return false, err
		}
	}
	if s.out.file == nil {
		moved, s.synced = s.written != s.synced, s.written // else an earlier attempt stopped here
		return moved, nil
	}
	if s.written.length == 0 {
		s.LetGo()
		if err := s.disk.Remove(s.openPath(s.written.name)); err != nil {
			return false, fmt.Errorf("archive: remove an empty file: %w", err)
		}
		return false, nil
	}
	if err := s.finish(); err != nil {
		return false, err
	}
	s.synced = s.written
	return true, nil
}

// complete gives a file its final name, after its index is written. It may be interrupted and repeated.
func (s *Series) complete(name string) error {
	_, err := s.disk.Size(s.openPath(name))
	renamed := errors.Is(err, fs.ErrNotExist)
	if s.c.Index != nil && !renamed {
		if err := s.c.Index.Complete(name, s.openPath(name)); err != nil {
			return err
		}
	}
	if !renamed {
		if err := s.disk.Rename(s.openPath(name), s.path(name)); err != nil {
			return fmt.Errorf("archive: complete a file: %w", err)
		}
	}
	if s.c.Index != nil {
		return s.c.Index.Forget(name)
	}
	return nil
}

// LetGo closes the open files. What was not flushed is lost.
func (s *Series) LetGo() {
	s.out.drop()
	if s.c.Index != nil {
		s.c.Index.Drop()
	}
}

// Mark returns the position of the last sync; it is not ok before the first sync.
func (s *Series) Mark() (Mark, bool) {
	if s.synced.length == whole {
		return "", false
	}
	return FileMark{s.synced.name, s.synced.length, s.synced.complete}.Mark(), true
}

// Owns implements Sink.
func (s *Series) Owns(m Mark) bool {
	_, _, suffix, ok := s.c.Naming.Parse(fileOf(m).File)
	return ok && suffix == ""
}

// Aside implements Sink.
func (s *Series) Aside() []Aside { return s.aside }

func (s *Series) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Series) openPath(name string) string { return s.path(name) + SuffixOpen }
