//go:build !core

package requestlog

import "fmt"

// File is a file of a log as others see it. All but the newest never change, except by an erasure, and the newest only
// grows.
type File struct {
	Serial int
	Path   string
}

// Files returns the files of a log, oldest first. A directory that does not exist has none.
func Files(dir string) ([]File, error) {
	files, err := list(dir)
	if err != nil {
		return nil, fmt.Errorf("list the request log: %w", err)
	}
	all := make([]File, len(files))
	for i, f := range files {
		all[i] = File{Serial: f.serial, Path: path(dir, f.serial)}
	}
	return all, nil
}
