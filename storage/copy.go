package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Backup writes a copy of the database, as of one moment, while commits go on. It calls begin with
// the length of the copy in bytes and writes to the writer that begin returns. It returns the
// number of bytes written. Meanwhile, pages that commits set free cannot be used again, so the file
// grows by what is rewritten; later commits use that room.
func (s *Store) Backup(begin func(size int64) (io.Writer, error)) (n int64, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		w, err := begin(tx.Size())
		if err == nil {
			n, err = tx.WriteTo(w)
		}
		return err
	})
	if err != nil {
		return n, fmt.Errorf("back up %s: %w", s.path, err)
	}
	return n, nil
}

// compactTransaction is how many bytes Compact writes in one transaction.
const compactTransaction = 16 << 20

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
	return before, after, syncDir(dir)
}

// copyTo writes all rows in the order of their keys to a new file, which gets the mode of like.
func (s *Store) copyTo(path, like string) error {
	return writeDatabase(path, like, func(to *bolt.DB) error { return bolt.Compact(to, s.db, compactTransaction) })
}

// writeDatabase makes a new file durable that fill writes. It gets the mode of like.
func writeDatabase(path, like string, fill func(to *bolt.DB) error) error {
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	to, err := bolt.Open(path, info.Mode().Perm(),
		&bolt.Options{FreelistType: bolt.FreelistMapType, NoSync: true, Timeout: openTimeout})
	if err != nil {
		return err
	}
	err = os.Chmod(path, info.Mode().Perm()) // whatever the umask
	if err == nil {
		err = fill(to)
	}
	if err == nil {
		err = to.Sync()
	}
	if closing := to.Close(); closing != nil && !errors.Is(closing, berrors.ErrDatabaseNotOpen) {
		err = errors.Join(err, closing)
	}
	return err
}

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// syncDir makes a rename in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
