package storage

import (
	"fmt"
	"io"

	bolt "go.etcd.io/bbolt"
)

// Backup writes a copy of the database, as of one moment, while commits go on. It returns its length in bytes. For as long as it takes, pages
// that commits set free cannot be used again, so that the file grows by what is rewritten meanwhile; later commits use them up.
func (s *Store) Backup(w io.Writer) (n int64, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		n, err = tx.WriteTo(w)
		return err
	})
	if err != nil {
		return n, fmt.Errorf("back up %s: %w", s.path, err)
	}
	return n, nil
}
