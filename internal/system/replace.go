//go:build !core

package system

import (
	"errors"
	"os"
	"path/filepath"
)

// ReplaceFile replaces a file, or makes one, durably: after a crash it has the old content or the new one. It calls
// commit when the new content is on disk and the file is still the old one; an error of commit leaves it so.
func ReplaceFile(path string, content []byte, mode os.FileMode, commit func() error) error {
	fresh := path + ".new"
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = commit()
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return SyncDir(filepath.Dir(path))
}

// WriteFile is ReplaceFile for a file of the group, with nothing to commit.
func WriteFile(path string, content []byte) error {
	return ReplaceFile(path, content, 0o640, func() error { return nil })
}
