// Package backup makes the second copy of a database while it is written to.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/time/rate"

	"github.com/amble-crawler/amble/storage"
)

const (
	backupRate  = 32 << 20    // bytes a second that a second copy is written at, so that commits stay quick
	backupPiece = 1 << 20     // bytes written at a time
	backupAgain = time.Minute // after a copy that could not be made
)

// Maker makes the second copy of the database.
type Maker struct {
	Every    time.Duration
	Dir      string // of the copy
	Now      func() time.Time
	Log      *slog.Logger
	Database func(context.Context, io.Writer, func(size int64)) error
	HasRoom  func(size int64) bool
}

// errNoRoom says that there is no room for a second copy.
var errNoRoom = errors.New("the disk has no room for a second copy besides storage.min_free: make room, or set " +
	"storage.backup_every to 0s")

// Run makes a copy each time that the last one is old enough, until the context ends.
func (b *Maker) Run(ctx context.Context) {
	for {
		wait, err := b.due()
		if err == nil && wait <= 0 {
			wait, err = b.Every, b.make(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			b.Log.Error("there is no new second copy of the database", "directory", b.Dir, "error", err)
			wait = backupAgain
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// due returns the time until the next copy is due.
func (b *Maker) due() (time.Duration, error) {
	info, err := os.Stat(filepath.Join(b.Dir, storage.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return min(b.Every, info.ModTime().Add(b.Every).Sub(b.Now())), nil
}

// make makes a copy and reads it. Only one that is whole replaces the one before.
func (b *Maker) make(ctx context.Context) (err error) {
	started := b.Now()
	if err := os.MkdirAll(b.Dir, 0o750); err != nil {
		return err
	}
	if err := removeParts(b.Dir); err != nil {
		return err
	}
	part, err := os.MkdirTemp(b.Dir, backupPart)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	path := filepath.Join(part, storage.FileName)
	size, err := b.write(ctx, path)
	if err != nil {
		return err
	}
	var damage error
	err = storage.CheckDamaged(ctx, part, func(f storage.Finding) {
		if damage == nil {
			damage = fmt.Errorf("%w: %s; the copy before is kept", storage.ErrCorrupt, f.Text)
		}
	})
	if err = errors.Join(err, damage); err != nil {
		return err
	}
	if err := os.Rename(path, filepath.Join(b.Dir, storage.FileName)); err != nil {
		return err
	}
	b.Log.Info("the second copy of the database is complete", "directory", b.Dir, "bytes", size,
		"took", b.Now().Sub(started))
	return nil
}

// backupPart begins the names of directories of copies that are not complete.
const backupPart = "part-"

// removeParts removes what a process left that was killed.
func removeParts(dir string) error {
	parts, err := filepath.Glob(filepath.Join(dir, backupPart+"*"))
	for _, part := range parts {
		err = errors.Join(err, os.RemoveAll(part))
	}
	return err
}

// write writes a copy of the database, and makes it durable.
func (b *Maker) write(ctx context.Context, path string) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return 0, err
	}
	roomy := true
	w := &pacedWriter{ctx: ctx, w: f, rate: rate.NewLimiter(backupRate, backupPiece)}
	err = b.Database(ctx, w, func(n int64) {
		if size, roomy = n, b.HasRoom(n); !roomy {
			w.failed = errNoRoom
		}
	})
	if !roomy {
		err = errNoRoom
	}
	if err == nil {
		err = f.Sync()
	}
	return size, errors.Join(err, f.Close())
}

// pacedWriter writes at a rate.
type pacedWriter struct {
	ctx    context.Context
	w      io.Writer
	rate   *rate.Limiter
	failed error
}

// Write is part of io.Writer.
func (p *pacedWriter) Write(b []byte) (n int, err error) {
	for err = p.failed; err == nil && n < len(b); {
		piece := b[n:min(len(b), n+backupPiece)]
		if err = p.rate.WaitN(p.ctx, len(piece)); err == nil {
			var m int
			m, err = p.w.Write(piece)
			n += m
		}
	}
	return n, err
}
