package archive

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors of [Open] and [Writer.Rollback]: the output does not have what was committed according to the marks.
var (
	ErrMissing = errors.New("archive: a marked file is missing")
	ErrShort   = errors.New("archive: a marked file is shorter than its mark")
)

// Adopt prepares a directory whose files are unknown to the crawl. Complete files stay, unfinished
// ones are set aside, and new files get higher numbers.
func (s *Series) Adopt() error {
	entries, err := s.entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		s.base.serial = max(s.base.serial, e.serial)
		if e.suffix == SuffixOpen {
			if err := s.setAside(e, false, 0); err != nil {
				return err
			}
		}
	}
	s.base.length = whole
	return s.cut(s.base)
}

// Restore goes back to a committed mark or, without one, to the state of the directory before the crawl.
func (s *Series) Restore(m *Mark) error {
	if m == nil {
		if s.base.length != whole {
			return fmt.Errorf("archive: no mark for %s, which was opened with one", s.dir)
		}
		return s.cut(s.base)
	}
	at, err := s.position(m)
	if err != nil {
		return err
	}
	return s.cut(at)
}

// position returns the position of a mark.
func (s *Series) position(m *Mark) (position, error) {
	f := fileOf(*m)
	serial, name, suffix, ok := s.c.Naming.Parse(f.File)
	if !ok || suffix != "" || f.Length < 0 {
		return position{}, fmt.Errorf("archive: %q at %d is no mark of this output", f.File, f.Length)
	}
	return position{serial: serial, name: name, length: f.Length, complete: f.Complete}, nil
}

// Revert goes back to the last mark.
func (s *Series) Revert() error { return s.cut(s.synced) }

// cut makes the directory contain what lies before a position and nothing else, and goes on from
// there. It changes nothing in a directory that lacks committed bytes.
func (s *Series) cut(at position) error {
	s.torn = true // until cut succeeds
	s.synced, s.written, s.finished, s.dirty = at, at, nil, false
	s.LetGo()
	entries, err := s.entries()
	if err != nil {
		return err
	}
	marked, err := s.inspect(at, entries)
	if err != nil {
		return err
	}
	if err := s.sweep(at, entries); err != nil {
		return err
	}
	if err := s.resume(at, marked); err != nil {
		return err
	}
	if err := s.disk.SyncDir(s.dir); err != nil {
		return fmt.Errorf("archive: sync %s: %w", s.dir, err)
	}
	s.created, s.torn = false, false
	return nil
}

// entry is a file of the series in the directory.
type entry struct {
	file   string // its present name
	name   string // without its suffix
	serial int
	suffix string
}

// entries lists the files of the series.
func (s *Series) entries() ([]entry, error) {
	names, err := s.disk.List(s.dir)
	if err != nil {
		return nil, fmt.Errorf("archive: list %s: %w", s.dir, err)
	}
	var entries []entry
	for _, file := range names {
		if serial, name, suffix, ok := s.c.Naming.Parse(file); ok {
			entries = append(entries, entry{file, name, serial, suffix})
		}
	}
	return entries, nil
}

// marked is the file that a position is in.
type marked struct {
	suffix string
	size   int64
	exists bool
}

// inspect checks the file that a position is in, and refuses one that does not have all bytes before it. It does not
// check a complete file: a reader of the output may have changed it or moved it away.
func (s *Series) inspect(at position, entries []entry) (m marked, err error) {
	if at.length == whole {
		return marked{}, nil
	}
	path := s.path(at.name)
	for _, e := range entries {
		if e.name != at.name || IsAside(e.suffix) || at.complete && e.suffix == "" {
			continue
		}
		if m.exists {
			return m,
				fmt.Errorf("archive: %s is there with and without the suffix %s: move the one that is a copy away",
					path, SuffixOpen)
		}
		m = marked{suffix: e.suffix, exists: true}
	}
	if !m.exists {
		if at.length == 0 || at.complete {
			return m, nil
		}
		hint := "only files without the suffix " + SuffixOpen + " may be moved away"
		if i := slices.IndexFunc(entries, func(e entry) bool { return e.name == at.name }); i >= 0 {
			hint = "it may be " + entries[i].file + ", which was set aside when an older copy of the database was here"
		}
		return m, fmt.Errorf("%w: %s, and %d bytes of it belong to the crawl: put it back (%s)", ErrMissing,
			path+SuffixOpen, at.length, hint)
	}
	if m.size, err = s.disk.Size(path + m.suffix); err != nil {
		return m, fmt.Errorf("archive: check a marked file: %w", err)
	}
	if m.size < at.length {
		return m, fmt.Errorf("%w: %s has %d bytes, and the crawl committed %d: put the whole file back",
			ErrShort, path+m.suffix, m.size, at.length)
	}
	return m, nil
}

// sweep deletes the unfinished files behind a position, and gives those before it their final names.
func (s *Series) sweep(at position, entries []entry) error {
	s.next = at.serial + 1
	for _, e := range entries {
		var err error
		switch {
		case e.suffix != SuffixOpen:
			s.next = max(s.next, e.serial+1)
		case e.serial < at.serial:
			err = s.complete(e.name)
		case e.serial > at.serial:
			err = s.remove(e)
		}
		if err != nil {
			return fmt.Errorf("archive: tidy %s: %w", s.dir, err)
		}
	}
	if s.c.Index == nil {
		return nil
	}
	return s.c.Index.Sweep(at.name)
}

// remove deletes a file without committed bytes.
func (s *Series) remove(e entry) error {
	if s.c.Index != nil {
		if err := s.c.Index.Forget(e.name); err != nil {
			return err
		}
	}
	return s.disk.Remove(s.path(e.file))
}

// resume cuts the marked file to its mark and goes on writing it. A complete file stays complete, and the next record
// begins a new file. The same happens if the compression of the files, or its dictionary, has changed.
func (s *Series) resume(at position, m marked) error {
	if m.exists && m.suffix == "" { // the mark is of a version whose marks did not say so
		s.synced.complete, s.written.complete = true, true
	}
	if m.suffix != SuffixOpen {
		return nil
	}
	f, err := s.disk.Reopen(s.openPath(at.name))
	if err != nil {
		return fmt.Errorf("archive: reopen a file: %w", err)
	}
	if m.size > at.length {
		err = f.Truncate(at.length)
		if err == nil {
			err = f.Sync()
		}
		if err != nil {
			f.Close()
			return fmt.Errorf("archive: cut %s to %d bytes: %w", s.openPath(at.name), at.length, err)
		}
	}
	s.use(f, at)
	if s.c.Index != nil {
		if err := s.c.Index.Resume(at.name, s.openPath(at.name), at.length); err != nil {
			return err
		}
	}
	if at.complete {
		s.LetGo()
		return s.complete(at.name)
	}
	same, err := s.continues(at.name)
	if err != nil {
		return err
	}
	if !same {
		s.LetGo()
		s.finished = append(s.finished, full{at.serial, at.name})
		s.synced.complete, s.written.complete = true, true
	}
	return nil
}

// continues reports whether records can follow those of a file.
func (s *Series) continues(name string) (bool, error) {
	if !strings.HasSuffix(name, s.c.Extension) || s.c.Continues == nil {
		return strings.HasSuffix(name, s.c.Extension), nil
	}
	f, err := s.disk.Open(s.openPath(name))
	if err != nil {
		return false, fmt.Errorf("archive: reopen a file: %w", err)
	}
	defer f.Close()
	same, err := s.c.Continues(f)
	if err != nil {
		return false, fmt.Errorf("archive: read %s: %w", s.openPath(name), err)
	}
	return same, nil
}
