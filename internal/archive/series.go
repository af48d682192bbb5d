package archive

import (
	"bufio"
	"fmt"
	"path/filepath"
)

// bufferBytes is how much is gathered before it is written.
const bufferBytes = 256 << 10

// position is a byte of a file of a series. Length whole means that files up to the serial number are
// complete and none of them is looked at.
type position struct {
	serial int
	length int64
}

const whole = -1

// series is a sink of numbered files, each at most so long.
type series struct {
	disk     disk
	dir      string
	naming   naming
	maxBytes int64

	base     position // behind the files that were there before this crawl, if it began without a mark
	synced   position // where the last mark is
	written  position // where the next record goes; equal to synced if nothing was appended since
	next     int      // serial number of the next new file
	finished []int    // serial numbers of full files that still have suffixOpen
	file     file     // the one being written; nil: the next record begins one
	buffer   *bufio.Writer
	created  bool // the directory has to be synced
	torn     bool // a failure could not be undone yet: revert comes before anything else
}

func newSeries(d disk, dir string, n naming, maxBytes int64) *series {
	return &series{disk: d, dir: dir, naming: n, maxBytes: maxBytes, buffer: bufio.NewWriterSize(nil, bufferBytes)}
}

// append adds a record, in the current file or, where it would become too long, in a new one.
func (s *series) append(record []byte) error {
	if s.torn {
		if err := s.revert(); err != nil {
			return err
		}
	}
	if err := s.settle(); err != nil {
		return err
	}
	if s.file != nil && s.written.length > 0 && s.written.length+int64(len(record)) > s.maxBytes {
		if err := s.finish(); err != nil {
			return err
		}
	}
	if s.file == nil {
		if err := s.begin(); err != nil {
			return err
		}
	}
	if _, err := s.buffer.Write(record); err != nil {
		return fmt.Errorf("archive: write %s: %w", s.openPath(s.written.serial), err)
	}
	s.written.length += int64(len(record))
	return nil
}

// begin opens the next file.
func (s *series) begin() error {
	f, err := s.disk.create(s.openPath(s.next))
	if err != nil {
		return fmt.Errorf("archive: begin a file: %w", err)
	}
	s.use(f, position{serial: s.next})
	s.next++
	s.created = true
	return nil
}

// use makes f the file being written, which is as long as at says.
func (s *series) use(f file, at position) {
	s.file, s.written = f, at
	s.buffer.Reset(f)
}

// finish ends the current file: it is full.
func (s *series) finish() error {
	if err := s.flush(); err != nil {
		return err
	}
	f := s.file
	s.file = nil
	s.finished = append(s.finished, s.written.serial)
	if err := f.Close(); err != nil {
		return fmt.Errorf("archive: close %s: %w", s.openPath(s.written.serial), err)
	}
	return nil
}

// flush makes what was written to the current file survive a power cut.
func (s *series) flush() error {
	err := s.buffer.Flush()
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("archive: sync %s: %w", s.openPath(s.written.serial), err)
	}
	return nil
}

// sync makes everything that was appended survive a power cut, and moves the mark behind it.
func (s *series) sync() error {
	if s.torn {
		if err := s.revert(); err != nil {
			return err
		}
	}
	if s.written == s.synced {
		return nil
	}
	if s.file != nil {
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
	s.synced = s.written
	return nil
}

// settle gives the full files before the mark their final names. It runs when the mark is known to be committed.
func (s *series) settle() error {
	for len(s.finished) > 0 && s.finished[0] < s.synced.serial {
		if err := s.complete(s.finished[0]); err != nil {
			return err
		}
		s.finished = s.finished[1:]
	}
	return nil
}

// complete gives a file its final name.
func (s *series) complete(serial int) error {
	if err := s.disk.rename(s.openPath(serial), s.path(serial)); err != nil {
		return fmt.Errorf("archive: complete a file: %w", err)
	}
	return nil
}

// close drops what was not synced, gives every file its final name and lets go of the directory.
func (s *series) close() error {
	if s.torn || s.written != s.synced {
		if err := s.revert(); err != nil {
			return err
		}
	}
	if err := s.settle(); err != nil {
		return err
	}
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	switch {
	case err != nil:
		return fmt.Errorf("archive: close %s: %w", s.openPath(s.written.serial), err)
	case s.written.length == 0:
		err = s.disk.remove(s.openPath(s.written.serial))
	default:
		err = s.complete(s.written.serial)
	}
	if err == nil {
		err = s.disk.syncDir(s.dir)
	}
	if err != nil {
		return fmt.Errorf("archive: close %s: %w", s.dir, err)
	}
	return nil
}

// mark is where the last sync ended; not ok before anything was ever synced.
func (s *series) mark() (Mark, bool) {
	if s.synced.length == whole {
		return Mark{}, false
	}
	return Mark{File: s.naming.name(s.synced.serial), Length: s.synced.length}, true
}

func (s *series) path(serial int) string {
	return filepath.Join(s.dir, s.naming.name(serial))
}

func (s *series) openPath(serial int) string { return s.path(serial) + suffixOpen }
