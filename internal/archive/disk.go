package archive

import (
	"io"
	"os"

	"github.com/amble-crawler/amble/internal/system"
)

// disk has the operations that a series needs of the file system. Tests replace it with one that
// fails.
type disk interface {
	list(dir string) ([]string, error) // names, in any order
	size(path string) (int64, error)   // fs.ErrNotExist if there is none
	create(path string) (file, error)  // a new file, to append to
	reopen(path string) (file, error)  // one that exists, to append to
	open(path string) (io.ReadCloser, error)
	rename(oldPath, newPath string) error // both in one directory
	remove(path string) error
	syncDir(dir string) error // makes creations, renames and removals survive a power cut
}

// file is a file that is appended to.
type file interface {
	io.WriteCloser
	Truncate(size int64) error
	Sync() error
}

// osDisk is the disk of the operating system.
type osDisk struct{}

func (osDisk) list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (osDisk) size(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (osDisk) create(path string) (file, error) {
	return openFile(path, os.O_CREATE|os.O_EXCL)
}

func (osDisk) reopen(path string) (file, error) {
	return openFile(path, 0)
}

func (osDisk) open(path string) (io.ReadCloser, error) { return os.Open(path) }

// openFile keeps a nil *os.File from becoming a file that is not nil.
func openFile(path string, flags int) (file, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|flags, 0o640)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osDisk) rename(oldPath, newPath string) error { return os.Rename(oldPath, newPath) }

func (osDisk) remove(path string) error { return os.Remove(path) }

func (osDisk) syncDir(dir string) error { return system.SyncDir(dir) }
