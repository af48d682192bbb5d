package archive

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors of [Open] and [Writer.Rollback]: the output does not hold what the marks say was committed.
var (
	ErrMissing = errors.New("archive: a marked file is missing")
	ErrShort   = errors.New("archive: a marked file is shorter than its mark")
)

// adopt readies a directory whose files the crawl knows nothing of: complete ones stay, those that
// were being written are set aside, and numbers go on behind the highest.
func (s *series) adopt() error {
	entries, err := s.entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		s.base.serial = max(s.base.serial, e.serial)
		if e.suffix == suffixOpen {
			if err := s.setAside(e, false, 0); err != nil {
				return err
			}
		}
	}
	s.base.length = whole
	return s.cut(s.base)
}

// restore goes back to a mark that was committed, or, without one, to what was there before.
func (s *series) restore(m *Mark) error {
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

// position is where a mark is.
func (s *series) position(m *Mark) (position, error) {
	serial, name, suffix, ok := s.naming.parse(m.File)
	if !ok || suffix != "" || m.Length < 0 {
		return position{}, fmt.Errorf("archive: %q at %d is no mark of this output", m.File, m.Length)
	}
	return position{serial: serial, name: name, length: m.Length, complete: m.Complete}, nil
}

// revert goes back to the last mark.
func (s *series) revert() error { return s.cut(s.synced) }

// cut makes the directory hold what lies before a position and nothing else, and goes on from there.
// Nothing is changed in a directory that does not hold what it should.
func (s *series) cut(at position) error {
	s.torn = true // until the end of this is reached
	s.synced, s.written, s.finished, s.dirty = at, at, nil, false
	s.letGo()
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
	if err := s.disk.syncDir(s.dir); err != nil {
		return fmt.Errorf("archive: sync %s: %w", s.dir, err)
	}
	s.created, s.torn = false, false
	return nil
}

// entry is a file of the series as the directory has it.
type entry struct {
	file   string // as it is called now
	name   string // without its suffix
	serial int
	suffix string
}

// entries lists the files of the series.
func (s *series) entries() ([]entry, error) {
	names, err := s.disk.list(s.dir)
	if err != nil {
		return nil, fmt.Errorf("archive: list %s: %w", s.dir, err)
	}
	var entries []entry
	for _, file := range names {
		if serial, name, suffix, ok := s.naming.parse(file); ok {
			entries = append(entries, entry{file, name, serial, suffix})
		}
	}
	return entries, nil
}

// marked is the file a position lies in.
type marked struct {
	suffix string
	size   int64
	exists bool
}

// inspect looks at the file a position lies in, and refuses one that does not hold all that lies
// before it. A file that is complete is not looked at: whoever reads the output may have changed it
// or taken it away.
func (s *series) inspect(at position, entries []entry) (m marked, err error) {
	if at.length == whole {
		return marked{}, nil
	}
	path := s.path(at.name)
	for _, e := range entries {
		if e.name != at.name || isAside(e.suffix) || at.complete && e.suffix == "" {
			continue
		}
		if m.exists {
			return m, fmt.Errorf("archive: %s is there with and without the suffix %s: move the one that is a copy away", path, suffixOpen)
		}
		m = marked{suffix: e.suffix, exists: true}
	}
	if !m.exists {
		if at.length == 0 || at.complete {
			return m, nil
		}
		hint := "only files without the suffix " + suffixOpen + " may be moved away"
		if i := slices.IndexFunc(entries, func(e entry) bool { return e.name == at.name }); i >= 0 {
			hint = "it may be " + entries[i].file + ", which was set aside when an older copy of the database was here"
		}
		return m, fmt.Errorf("%w: %s, of which %d bytes belong to the crawl: put it back (%s)", ErrMissing,
			path+suffixOpen, at.length, hint)
	}
	if m.size, err = s.disk.size(path + m.suffix); err != nil {
		return m, fmt.Errorf("archive: look at a marked file: %w", err)
	}
	if m.size < at.length {
		return m, fmt.Errorf("%w: %s has %d bytes, of which the crawl committed %d: put the whole file back",
			ErrShort, path+m.suffix, m.size, at.length)
	}
	return m, nil
}

// sweep deletes the unfinished files behind a position, and gives those before it their final
// names.
func (s *series) sweep(at position, entries []entry) error {
	s.next = at.serial + 1
	for _, e := range entries {
		var err error
		switch {
		case e.suffix != suffixOpen:
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
	if s.index == nil {
		return nil
	}
	return s.index.sweep(func(name string) bool { return name == at.name })
}

// remove deletes a file of which nothing was committed.
func (s *series) remove(e entry) error {
	if s.index != nil {
		if err := s.index.forget(e.name); err != nil {
			return err
		}
	}
	return s.disk.remove(s.path(e.file))
}

// resume cuts the marked file to its mark and goes on writing it. One that is complete stays so,
// and the next record begins a new file; so it does where files are packed in another way by now.
func (s *series) resume(at position, m marked) error {
	if m.exists && m.suffix == "" { // and the mark is from before marks said so
		s.synced.complete, s.written.complete = true, true
	}
	if m.suffix != suffixOpen {
		return nil
	}
	f, err := s.disk.reopen(s.openPath(at.name))
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
	if s.index != nil {
		if err := s.index.resume(at.name, s.openPath(at.name), at.length); err != nil {
			return err
		}
	}
	if at.complete {
		s.letGo()
		return s.complete(at.name)
	}
	if !strings.HasSuffix(at.name, s.extension) {
		s.letGo()
		s.finished = append(s.finished, full{at.serial, at.name})
		s.synced.complete, s.written.complete = true, true
	}
	return nil
}
