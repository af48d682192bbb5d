//go:build !core

package warcfiles

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
)

// Collection reads the files of an output directory. It changes nothing, and may be used while a
// crawl writes the files. It keeps no file open. It is safe for concurrent use.
type Collection struct {
	dir    string
	known  []archive.Format
	listed atomic.Pointer[[]File] // by byTime
}

// OpenCollection returns the collection of a directory, with the files of some formats, this one among them. The
// error wraps fs.ErrNotExist if there is no such directory.
func OpenCollection(dir string, known []archive.Format) (*Collection, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return &Collection{dir: dir, known: known}, nil
}

// File is a file of the output.
type File struct {
	Name   string // its name when complete
	Format string
	Open   bool // it is being written
	Size   int64

	serial int
}

// Files lists the files, by format and in the order in which they were written, without those that
// were set aside.
func (c *Collection) Files() ([]File, error) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	var files []File
	for _, format := range c.known {
		naming := format.Naming()
		for _, e := range entries {
			serial, name, suffix, ok := naming.Parse(e.Name())
			if !ok || archive.IsAside(suffix) {
				continue
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				info, err = os.Stat(filepath.Join(c.dir, name)) // it has just been completed
			}
			if err != nil {
				return nil, fmt.Errorf("archive: %w", err)
			}
			files = append(files, File{Name: name, Format: format.Name(), Open: suffix == archive.SuffixOpen,
				Size: info.Size(), serial: serial})
		}
	}
	order := archive.Names(c.known)
	slices.SortFunc(files, func(a, b File) int {
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.Format), slices.Index(order, b.Format)),
			cmp.Compare(a.serial, b.serial), strings.Compare(a.Name, b.Name))
	})
	return files, nil
}

// warcs lists the WARC files.
func (c *Collection) warcs() ([]File, error) {
	files, err := c.Files()
	return slices.DeleteFunc(files, func(f File) bool { return f.Format != Name }), err
}

// open opens a file, which may have been completed since it was listed.
func (c *Collection) open(f File) (*os.File, error) {
	path := filepath.Join(c.dir, f.Name)
	if f.Open {
		opened, err := os.Open(path + archive.SuffixOpen)
		if !errors.Is(err, fs.ErrNotExist) {
			return opened, err
		}
	}
	return os.Open(path)
}

// openIndex opens the index of a WARC file. sorted reports whether it is that of a complete file;
// else it is a journal.
func (c *Collection) openIndex(f File) (opened *os.File, sorted bool, err error) {
	base := filepath.Join(c.dir, baseOf(f.Name))
	if f.Open {
		opened, err = os.Open(base + journalExtension)
		if !errors.Is(err, fs.ErrNotExist) {
			return opened, false, err
		}
	}
	opened, err = os.Open(base + indexExtension)
	return opened, true, err
}

// Contents summarises the index of a WARC file.
type Contents struct {
	Captures    int
	First, Last time.Time // of the captures; zero if there are none
}

// Contents counts the captures of a WARC file. Files of lines have none.
func (c *Collection) Contents(f File) (n Contents, err error) {
	if f.Format != Name {
		return n, nil
	}
	err = c.searchFile(f, "", func(e *warc.Entry) error {
		n.Captures++
		if n.First.IsZero() || e.Time.Before(n.First) {
			n.First = e.Time
		}
		if e.Time.After(n.Last) {
			n.Last = e.Time
		}
		return nil
	})
	if err != nil {
		return n, fmt.Errorf("archive: index of %s: %w", f.Name, err)
	}
	return n, nil
}

// Complete lists the WARC files to which nothing is added any more, and counts the others. Each of their records is
// committed.
func (c *Collection) Complete() (files []File, open int, err error) {
	all, err := c.warcs()
	for _, f := range all {
		if f.Open {
			open++
		} else {
			files = append(files, f)
		}
	}
	return files, open, err
}

// OpenFile opens a file of the collection.
func (c *Collection) OpenFile(f File) (*os.File, error) { return c.open(f) }

// IndexName returns the name of the index of a complete file; empty: it has none.
func IndexName(f File) string {
	if f.Format != Name {
		return ""
	}
	return baseOf(f.Name) + indexExtension
}
