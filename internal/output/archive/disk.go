package archive

import (
	"io"
	"os"

	"github.com/amble-crawler/amble/internal/system"
)

// Disk has the operations that a Series needs of the file system. Tests replace it with one that fails.
type Disk interface {
	List(dir string) ([]string, error) // names, in any order
	Size(path string) (int64, error)   // fs.ErrNotExist if there is none
	Create(path string) (File, error)  // a new file, to append to
	Reopen(path string) (File, error)  // one that exists, to append to
	Open(path string) (io.ReadCloser, error)
	Rename(oldPath, newPath string) error // both in one directory
	Remove(path string) error
	SyncDir(dir string) error // makes creations, renames and removals survive a power cut
}

// File is a file that is appended to.
type File interface {
	io.WriteCloser
	Truncate(size int64) error
	Sync() error
}

// OSDisk is the disk of the operating system.
type OSDisk struct{}

func (OSDisk) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (OSDisk) Size(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (OSDisk) Create(path string) (File, error) {
	return openFile(path, os.O_CREATE|os.O_EXCL)
}

func (OSDisk) Reopen(path string) (File, error) {
	return openFile(path, 0)
}

func (OSDisk) Open(path string) (io.ReadCloser, error) { return os.Open(path) }

// openFile keeps a nil *os.File from becoming a File that is not nil.
func openFile(path string, flags int) (File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|flags, 0o640)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (OSDisk) Rename(oldPath, newPath string) error { return os.Rename(oldPath, newPath) }

func (OSDisk) Remove(path string) error { return os.Remove(path) }

func (OSDisk) SyncDir(dir string) error { return system.SyncDir(dir) }
