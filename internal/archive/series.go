package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/amble-crawler/amble/internal/warc"
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

// full is a file that has all its records and still has suffixOpen.
type full struct {
	serial int
	name   string
}

// series is a sink of numbered files. The size of each file is bounded, and its age while records
// come.
type series struct {
	form      form
	disk      disk
	dir       string
	naming    naming
	extension string // of new files: a file with another one is not continued
	// records is the compression of WARC records: a file with another dictionary is not continued.
	records  warc.Compression
	maxBytes int64
	maxAge   time.Duration // 0: no limit

	// Of a WARC series: the start of a file, and the index next to it. Nil: none.
	head  func(name string, now time.Time) (*record, error)
	index *index

	base     position // behind the files that existed before this crawl, if it began without a mark
	synced   position // the last mark
	written  position // where the next record goes
	dirty    bool     // something was appended since the last mark
	next     int      // serial number of the next new file
	finished []full
	out      stream    // to the current file; without one, the next record begins one
	began    time.Time // when the current file was begun or continued; zero: set by its first record
	created  bool      // the directory must be synced
	torn     bool      // a failure is not undone yet: revert must come first
	aside    []Aside   // files that were set aside
}

// append adds a record to the current file or, if that is full, to a new one.
func (s *series) append(r *record, now time.Time) error {
	if s.torn {
		if err := s.revert(); err != nil {
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
func (s *series) full(r *record, now time.Time) bool {
	if s.out.file == nil || s.out.length == 0 && !s.out.frame {
		return false
	}
	size := r.size()
	if s.out.packer != nil {
		size = 0 // unknown
	}
	return s.out.length+size > s.maxBytes ||
		s.maxAge > 0 && !s.began.IsZero() && now.Sub(s.began) >= s.maxAge ||
		s.index != nil && s.index.full()
}

// write adds a record to the current file and to its index.
func (s *series) write(r *record) error {
	at := s.out.length
	s.dirty = true
	err := s.out.write(r)
	if err == nil && s.index != nil {
		err = s.index.add(at, s.out.length-at, r.entry)
	}
	if err != nil {
		return fmt.Errorf("archive: write %s: %w", s.openPath(s.written.name), err)
	}
	s.written.length = s.out.length
	return nil
}

// begin opens the next file.
func (s *series) begin(now time.Time) error {
	name := s.naming.make(s.next, now)
	f, err := s.disk.create(s.openPath(name))
	if err != nil {
		return fmt.Errorf("archive: begin a file: %w", err)
	}
	s.use(f, position{serial: s.next, name: name})
	s.began = now
	s.next++
	s.created = true
	if s.index != nil {
		if err := s.index.begin(name); err != nil {
			return err
		}
	}
	if s.head == nil {
		return nil
	}
	r, err := s.head(name, now)
	if err != nil {
		return err
	}
	return s.write(r)
}

// use makes f the file being written. at has its length.
func (s *series) use(f file, at position) {
	s.written, s.began = at, time.Time{}
	s.out.use(f, at.length)
}

// finish ends the current file: it is full.
func (s *series) finish() error {
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
func (s *series) flush() error {
	err := s.out.flush()
	if err == nil && s.index != nil {
		err = s.index.flush()
	}
	if err != nil {
		return fmt.Errorf("archive: sync %s: %w", s.openPath(s.written.name), err)
	}
	s.written.length = s.out.length
	return nil
}

// sync makes everything that was appended survive a power cut, and moves the mark behind it.
func (s *series) sync() error {
	if s.torn {
		if err := s.revert(); err != nil {
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
		if err := s.disk.syncDir(s.dir); err != nil {
			return fmt.Errorf("archive: sync %s: %w", s.dir, err)
		}
		s.created = false
	}
	s.synced, s.dirty = s.written, false
	return nil
}

// committed gives the complete files their final names: the mark is committed. An error loses
// nothing: the next call tries again.
func (s *series) committed() error {
	if s.torn || len(s.finished) == 0 || !s.synced.done(s.finished[0].serial) {
		return nil
	}
	for len(s.finished) > 0 && s.synced.done(s.finished[0].serial) {
		if err := s.complete(s.finished[0].name); err != nil {
			return err
		}
		s.finished = s.finished[1:]
	}
	if err := s.disk.syncDir(s.dir); err != nil {
		return fmt.Errorf("archive: sync %s: %w", s.dir, err)
	}
	return nil
}

// expire completes a file that is older than its limit, so that it does not wait for a record that
// may never come. It does nothing while records are not synced.
func (s *series) expire(now time.Time) (moved bool, err error) {
	if s.torn || s.dirty {
		return false, nil
	}
	if s.began.IsZero() {
		s.began = now
	}
	if s.out.file != nil && (s.maxAge == 0 || now.Sub(s.began) < s.maxAge || s.written.length == 0) {
		return false, nil
	}
	return s.end()
}

// end completes the current file and moves the mark there. It drops what was not synced.
func (s *series) end() (moved bool, err error) {
	if s.torn || s.dirty {
		if err := s.revert(); err != nil {
			return false, err
		}
	}
	if s.out.file == nil {
		moved, s.synced = s.written != s.synced, s.written // else an earlier attempt stopped here
		return moved, nil
	}
	if s.written.length == 0 {
		s.letGo()
		if err := s.disk.remove(s.openPath(s.written.name)); err != nil {
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

// complete gives a file its final name, after its index is written. It may be interrupted and
// repeated.
func (s *series) complete(name string) error {
	_, err := s.disk.size(s.openPath(name))
	renamed := errors.Is(err, fs.ErrNotExist)
	if s.index != nil && !renamed {
		if err := s.index.complete(name, s.openPath(name)); err != nil {
			return err
		}
	}
	if !renamed {
		if err := s.disk.rename(s.openPath(name), s.path(name)); err != nil {
			return fmt.Errorf("archive: complete a file: %w", err)
		}
	}
	if s.index != nil {
		return s.index.forget(name)
	}
	return nil
}

// letGo closes the open files. What was not flushed is lost.
func (s *series) letGo() {
	s.out.drop()
	if s.index != nil {
		s.index.drop()
	}
}

// mark returns the position of the last sync; it is not ok before the first sync.
func (s *series) mark() (Mark, bool) {
	if s.synced.length == whole {
		return Mark{}, false
	}
	return Mark{File: s.synced.name, Length: s.synced.length, Complete: s.synced.complete}, true
}

func (s *series) owns(name string) bool {
	_, _, suffix, ok := s.naming.parse(name)
	return ok && suffix == ""
}

func (s *series) path(name string) string { return filepath.Join(s.dir, name) }

func (s *series) openPath(name string) string { return s.path(name) + suffixOpen }
