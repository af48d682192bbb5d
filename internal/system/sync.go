package system

import (
	"errors"
	"os"
)

// SyncDir makes the names in a directory durable: what was created, renamed or removed there.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
