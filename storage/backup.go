package storage

import (
	"fmt"
	"io"

	bolt "go.etcd.io/bbolt"
)

// Backup writes a copy of the database, as of one moment, while commits go on: to the writer that
// begin returns when it is called with the length of the copy in bytes. It returns how many bytes
// were written. For as long as it takes, pages that commits set free cannot be used again, so that
// the file grows by what is rewritten meanwhile; later commits use them up.
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
