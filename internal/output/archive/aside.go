package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
)

// Aside is a file that was set aside: it has records that the crawl's database does not have.
type Aside struct {
	File string // its name when complete
	As   string // its name now
	// Older means that the database is an older copy. Otherwise it never had a mark of this format.
	Older bool
	Kept  int64 // bytes at the start that the database has; a file of the old name has them, too
}

// crashTail is an upper bound, in bytes, of what a crash leaves behind a mark in one file: about
// what one commit writes.
const crashTail = 64 << 20

// IsAhead reports whether the output certainly has more than was committed before a mark, and not
// only what a crash left: then the database is an older copy, because files are completed only
// after a commit. The error says that the output has less.
func (s *Series) IsAhead(m *Mark) (bool, error) {
	at, err := s.position(m)
	if err == nil {
		err = s.bringBack(at)
	}
	if err != nil {
		return false, err
	}
	entries, err := s.entries()
	if err != nil {
		return false, err
	}
	found, err := s.inspect(at, entries)
	if err != nil {
		return false, err
	}
	behind := slices.ContainsFunc(entries, func(e entry) bool { return e.serial > at.serial && e.suffix == "" })
	return behind || found.suffix == "" && found.size > at.length || found.size > at.length+crashTail, nil
}

// SetAsideTail sets aside whatever files have behind a mark, because the database is an older copy. It may be
// interrupted at any moment and repeated. The files that show that the database is older come last.
func (s *Series) SetAsideTail(m *Mark) error {
	at, err := s.position(m)
	if err != nil {
		return err
	}
	entries, err := s.entries()
	if err != nil {
		return err
	}
	for _, suffix := range []string{SuffixOpen, ""} {
		for _, e := range entries {
			if e.suffix != suffix || e.serial < at.serial ||
				e.serial == at.serial && (at.complete || e.name != at.name) {
				continue
			}
			kept := int64(0)
			if e.serial == at.serial {
				size, err := s.disk.Size(s.path(e.file))
				if err != nil {
					return fmt.Errorf("archive: check a marked file: %w", err)
				}
				if size <= at.length {
					continue
				}
				if kept = at.length; kept > 0 {
					if err := s.copyPrefix(e, kept); err != nil {
						return fmt.Errorf("archive: copy %d bytes of %s: %w", kept, s.path(e.file), err)
					}
				}
			}
			if err := s.setAside(e, true, kept); err != nil {
				return err
			}
		}
	}
	return s.bringBack(at)
}

// suffixNew is the suffix of a copy of the start of a file that is about to be set aside.
const suffixNew = SuffixOpen + ".new"

// copyPrefix copies the first bytes of a file.
func (s *Series) copyPrefix(e entry, length int64) error {
	source, err := s.disk.Open(s.path(e.file))
	if err != nil {
		return err
	}
	defer source.Close()
	target := s.path(e.name) + suffixNew
	if err := s.disk.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := s.disk.Create(target)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, source, length)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// bringBack renames the copy of the start of a marked file to the name of that file, if the file was set aside.
func (s *Series) bringBack(at position) error {
	copied := s.path(at.name) + suffixNew
	size, err := s.disk.Size(copied)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, other := s.entries()
	if err = errors.Join(err, other); err != nil {
		return err
	}
	taken := slices.ContainsFunc(entries, func(e entry) bool { return e.name == at.name && !IsAside(e.suffix) })
	if taken || size != at.length || at.complete {
		err = s.disk.Remove(copied) // the last attempt stopped here, and the database is another one now
	} else {
		err = s.disk.Rename(copied, s.openPath(at.name))
	}
	if err != nil {
		return fmt.Errorf("archive: bring back a file: %w", err)
	}
	return nil
}

// setAside takes a file out of the output without losing it. It never uses an existing name.
func (s *Series) setAside(e entry, older bool, kept int64) error {
	suffix := SuffixUnmarked
	for n := 2; ; n++ {
		if _, err := s.disk.Size(s.path(e.name) + suffix); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return fmt.Errorf("archive: set a file aside: %w", err)
		}
		suffix = SuffixUnmarked + "." + strconv.Itoa(n)
	}
	if s.c.Index != nil {
		if err := s.c.Index.SetAside(e.name, suffix); err != nil {
			return err
		}
	}
	if err := s.disk.Rename(s.path(e.file), s.path(e.name)+suffix); err != nil {
		return fmt.Errorf("archive: set a file aside: %w", err)
	}
	s.aside = append(s.aside, Aside{File: e.name, As: e.name + suffix, Older: older, Kept: kept})
	return nil
}
