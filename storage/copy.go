package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/amble-crawler/amble/internal/system"
)

// Backup writes a copy of the database, as of one moment, while commits go on. It calls begin with
// the length of the copy in bytes and writes to the writer that begin returns. It returns the
// number of bytes written. Meanwhile, pages that commits set free cannot be used again, so the file
// grows by what is rewritten; later commits use that room.
func (s *Store) Backup(begin func(size int64) (io.Writer, error)) (n int64, err error) {
	err = s.db.View(func(tx *txn) error {
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

// SnapshotFile is the file beside a database that becomes it: see RestoreFile.
const SnapshotFile = FileName + ".snapshot"

// RemoveLeftovers removes the copies of a database that processes have left that were killed. No process may use it.
func RemoveLeftovers(dir string) (err error) {
	for _, name := range []string{FileName + ".compact", FileName + ".upgrade", FileName + ".erase", SnapshotFile} {
		if cause := os.Remove(filepath.Join(dir, name)); !errors.Is(cause, os.ErrNotExist) {
			err = errors.Join(err, cause)
		}
	}
	return err
}

// upgrade replaces a file of an older version by one of this version, as Compact does. After kill -9 at
// any moment the file is the old one or the new one. The store has the old file until it is opened again.
func (s *Store) upgrade() error {
	fresh := s.path + ".upgrade"
	err := s.copyTo(fresh, s.path)
	if err == nil {
		err = os.Rename(fresh, s.path)
	}
	if err != nil {
		return errors.Join(spaceError(err), os.Remove(fresh))
	}
	return errors.Join(system.SyncDir(filepath.Dir(s.path)), s.db.Close())
}

// copyTo writes all rows in the order of their keys to a new file of this version, which gets the mode of like.
func (s *Store) copyTo(path, like string) error {
	return writeDatabase(path, like, func(w *rowWriter) error {
		return s.db.View(func(tx *txn) error { return copyRows(tx, w) })
	})
}

func copyRows(tx *txn, w *rowWriter) error {
	for _, name := range buckets() { // an older file lacks some
		if err := w.Begin(name); err != nil {
			return err
		}
	}
	return tx.Buckets(func(name []byte, b *bucket) error {
		isMeta := bytes.Equal(name, bucketMeta)
		err := w.Begin(name)
		if err == nil && isMeta {
			err = putVersion(w.Put)
		}
		if err != nil {
			return err
		}
		return b.Each(func(k, v []byte) error {
			if isMeta && (bytes.Equal(k, metaVersion) || bytes.Equal(k, metaSums)) {
				return nil
			}
			return w.Put(k, v)
		})
	})
}

// writeDatabase makes a new file durable whose rows fill writes. It gets the mode of like.
func writeDatabase(path, like string, fill func(to *rowWriter) error) error {
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	to, err := openDatabase(path, info.Mode().Perm(), Options{NoSync: true})
	if err != nil {
		return err
	}
	err = os.Chmod(path, info.Mode().Perm()) // whatever the umask
	rows := &rowWriter{DB: to}
	if err == nil {
		err = fill(rows)
	}
	if err == nil {
		err = rows.End()
	}
	if err == nil {
		err = to.Sync()
	}
	return errors.Join(err, rows.Drop(), to.Close())
}
