//go:build !core

package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/amble-crawler/amble/internal/system"
)

// WriteRows writes every row of the database as a line of text, except for the marks of this data
// directory. Two views of one log that have followed it equally far have the same rows; before its first record,
// which has the key, they differ in that.
func (s *Store) WriteRows(w io.Writer) error {
	return s.db.View(func(tx *txn) error {
		return tx.Buckets(func(name []byte, bucket *bucket) error {
			return bucket.Each(func(k, v []byte) (err error) {
				if !bytes.Equal(name, bucketMark) || !isLocal(string(k)) {
					_, err = fmt.Fprintf(w, "%s %x %x\n", name, k, v)
				}
				return err
			})
		})
	})
}

// RestoreFile makes a snapshot, a copy by Backup from any data directory, the database of this one:
// it removes what describes the files of the other. The file is not yet at its place in dir; it is
// put there, durable, in place of a database that may be there. No process may have that open. What
// that one says of the start ledger and the request log of dir stays true, so it is kept. The output
// files are taken as they are.
func RestoreFile(snapshot, dir string) (LogPosition, error) {
	at := filepath.Join(dir, FileName)
	var position LogPosition
	kept, err := keptMarks(at)
	if err == nil {
		position, err = adoptSnapshot(snapshot, kept)
	}
	if err == nil {
		err = os.Rename(snapshot, at)
	}
	if err == nil {
		err = system.SyncDir(dir)
	}
	if err != nil {
		return LogPosition{}, fmt.Errorf("restore %s from a snapshot: %w", at, spaceError(err))
	}
	return position, nil
}

// keptMarks returns the marks of a database that a snapshot is to replace, which are about files that
// stay. It returns nothing if there is no database.
func keptMarks(path string) (map[string][]byte, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	s := &Store{rows: rows{path: path}}
	kept := make(map[string][]byte)
	err := s.open(Options{ReadOnly: true})
	if err == nil {
		err = s.db.View(func(tx *txn) error {
			for _, name := range []string{MarkLedger, MarkUncommitted, markView} {
				if v := tx.Bucket(bucketMark).Get([]byte(name)); v != nil {
					kept[name] = bytes.Clone(v)
				}
			}
			return nil
		})
	}
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	return kept, err
}

// adoptSnapshot replaces the marks of a snapshot that describe files of another data directory.
func adoptSnapshot(path string, kept map[string][]byte) (LogPosition, error) {
	if _, err := inspect(path, true); err != nil {
		return LogPosition{}, err
	}
	s := &Store{rows: rows{path: path}}
	if err := s.open(Options{MapBytes: defaultMapBytes}); err != nil {
		if s.db != nil {
			err = errors.Join(err, s.db.Close())
		}
		return LogPosition{}, err
	}
	err := s.db.Update(func(tx *txn) error {
		marks := tx.Bucket(bucketMark)
		var local [][]byte
		err := marks.Each(func(name, _ []byte) error {
			if isLocal(string(name)) {
				local = append(local, bytes.Clone(name))
			}
			return nil
		})
		for _, name := range local {
			err = errors.Join(err, marks.Delete(name))
		}
		return errors.Join(err, putMarks(marks, kept))
	})
	if err == nil && s.position.Number == 0 {
		err = fmt.Errorf("%w: the snapshot has no position in a log", ErrCorrupt)
	}
	return s.position, errors.Join(err, s.db.Close())
}
