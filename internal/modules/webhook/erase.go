//go:build !core

package webhook

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/system"
)

// rewindFile says that lines of the queue are not where they were.
const rewindFile = "webhook.rewind"

// Output is the files of an output directory, for an erasure.
type Output interface {
	Recover() error
	Files() ([]string, error)
	Count(ctx context.Context, file string) (archive.ErasedFile, error)
	Erase(ctx context.Context, file string, commit func(archive.ErasedFile) error) error
}

// Rewinding returns files whose erasures the queue of their directory survives: what is left of its files is posted
// from their start, under new ids, because an id names a place. An erasure that was interrupted has to be made again.
func Rewinding(dir string, files Output) Output { return rewinding{files, dir} }

type rewinding struct {
	Output
	dir string
}

// Erase is part of Output.
func (r rewinding) Erase(ctx context.Context, file string, commit func(archive.ErasedFile) error) error {
	err := r.Output.Erase(ctx, file, commit)
	if _, _, _, queued := naming().Parse(file); !queued {
		return err
	}
	return errors.Join(err, system.WriteFile(filepath.Join(r.dir, rewindFile), nil))
}

// rewound moves the cursor to the start of its file, with a new name, if an erasure has asked for it.
func (c *cursor) rewound(dir string) error {
	path := filepath.Join(dir, rewindFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	c.Offset, c.Queue = 0, rand.Text()
	if err := c.save(dir); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}
