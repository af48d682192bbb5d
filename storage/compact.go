//go:build !core

package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/amble-crawler/amble/internal/system"
)

// Compact rewrites the database of a directory without free pages and replaces the old file when
// the new one is complete and durable. No process may have the database open. Compact needs room
// for both files; after an error the old one is unchanged. It returns the sizes before and after,
// in bytes.
func Compact(dir string) (before, after int64, err error) {
	path := filepath.Join(dir, FileName)
	s, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if before, err = fileSize(path); err != nil {
		return 0, 0, err
	}
	fresh := path + ".compact"
	if err := s.copyTo(fresh, path); err != nil {
		return before, 0, fmt.Errorf("compact %s: %w", path, errors.Join(spaceError(err), os.Remove(fresh)))
	}
	if after, err = fileSize(fresh); err != nil {
		return before, 0, err
	}
	if err := os.Rename(fresh, path); err != nil {
		return before, 0, fmt.Errorf("compact %s: %w", path, errors.Join(err, os.Remove(fresh)))
	}
	return before, after, system.SyncDir(dir)
}
