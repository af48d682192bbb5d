//go:build !core

package requestlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// file is a file of the log.
type file struct {
	serial  int
	size    int64 // as counted for MaxSize: a file takes at least a block
	written time.Time
}

// blockBytes is the disk space of the smallest file.
const blockBytes = 4 << 10

const pattern = "requests-%010d.log"

func path(dir string, serial int) string { return filepath.Join(dir, fmt.Sprintf(pattern, serial)) }

// list returns the files of a log, oldest first. A directory that does not exist has none.
func list(dir string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []file
	for _, entry := range entries {
		f := file{}
		if n, err := fmt.Sscanf(entry.Name(), pattern, &f.serial); n != 1 || err != nil ||
			path("", f.serial) != entry.Name() {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // just deleted
		}
		if err != nil {
			return nil, err
		}
		f.size, f.written = max(info.Size(), blockBytes), info.ModTime()
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b file) int { return a.serial - b.serial })
	return files, nil
}

// parts is the least number of files of a full log, so that each deletion removes a small part of
// it.
const parts = 16

// maxFile bounds a file, and with it the memory of a reader.
const maxFile = 64 << 20

// fileBytes returns the length from which a file is complete.
func (o Options) fileBytes() int64 { return min(o.MaxSize/parts, maxFile) }

// fileAge returns the age from which a file is complete.
func (o Options) fileAge() time.Duration {
	if o.Keep == 0 {
		return 1<<63 - 1
	}
	return max(o.Keep/parts, time.Minute)
}
