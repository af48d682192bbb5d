package crawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/backup"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/disk"
	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/internal/web/spool"
)

func newDiskSpace(o *Options) *disk.Space {
	return &disk.Space{
		Least: o.MinFree, Dirs: []string{o.DataDir, o.Archive.Dir}, MaxBytes: o.Storage.MaxBytes,
		Free: system.FreeBytes,
	}
}

// Errors of [Engine.Backup].
var (
	ErrCopying  = errors.New("a copy of the database is being made already: try again when it is complete")
	ErrSlowCopy = errors.New("the copy of the database was taken too slowly")
)

// The pace at which a copy has to be taken that goes from the database straight to whoever wants
// it.
const (
	copyGrace  = time.Minute // in which nothing is expected
	copyRate   = 32 << 20    // bytes a second, from then on
	copyMargin = 64 << 20    // bytes that stay free for the crawl where a copy is made on the disk first
)

// Backup writes a copy of the database as of one moment to w, after it has called begin with the
// length of the copy in bytes. As long as it reads the database, the file grows by what commits
// rewrite. So it copies to a file of its own first, at the pace of the disk, and gives that to w at
// the pace of w. Where there is no room for the file, w has to take the copy at once, within a
// minute and at 32 MiB/s behind that; else the error is ErrSlowCopy. There is one copy at a time,
// for others the error is ErrCopying. Any goroutine may call it, until Close.
func (e *Engine) Backup(ctx context.Context, w io.Writer, begin func(size int64)) (n int64, err error) {
	if !e.copying.TryLock() {
		return 0, ErrCopying
	}
	defer e.copying.Unlock()
	defer func() {
		if err != nil && ctx.Err() == nil {
			e.log.Warn("a copy of the database is not complete", "written", n, "error", err)
		}
	}()
	var spooled *spool.Writer
	c := &copier{ctx: ctx, w: w}
	n, err = e.store.Backup(func(size int64) (io.Writer, error) {
		begin(size)
		if e.hasRoomForCopy(size) {
			spooled = e.shared.spool.NewWriter(0)
			c.w = spooled
		} else {
			c.limit(size, e.o.Now)
		}
		return c, nil
	})
	if c.failed != nil {
		err = c.failed // the store makes a text of it
	}
	if spooled == nil {
		return n, err
	}
	defer spooled.Discard()
	if err != nil {
		return 0, err
	}
	content := spooled.Content()
	defer content.Close()
	return content.WriteTo(&copier{ctx: ctx, w: w})
}

// hasRoomForCopy reports whether the disk has space for a copy besides the crawl.
func (e *Engine) hasRoomForCopy(size int64) bool {
	free, err := e.space.Free(e.o.Spool.Dir)
	return err == nil && free >= uint64(size)+e.space.Least+copyMargin
}

// copier writes until nobody wants the copy any more, or it has taken too long.
type copier struct {
	ctx    context.Context
	w      io.Writer
	check  func() error // whether it may go on; nil: it may
	failed error
}

// limit sets the time in which a copy of a size has to be taken.
func (c *copier) limit(size int64, now func() time.Time) {
	within := copyGrace + time.Duration(size/copyRate)*time.Second
	until := now().Add(within)
	c.check = func() error {
		if !now().After(until) {
			return nil
		}
		return fmt.Errorf("%w: %d MiB have to be taken within %v, because data_dir has no room to copy them first; "+
			"make that room, or take the copy to a disk of this machine and send it from there",
			ErrSlowCopy, size>>20, within)
	}
}

// Write is part of io.Writer.
func (c *copier) Write(p []byte) (n int, err error) {
	err = c.ctx.Err()
	if err == nil && c.check != nil {
		err = c.check()
	}
	if err == nil {
		n, err = c.w.Write(p)
	}
	c.failed = err
	return n, err
}

// BackupDir is the directory below a data directory that holds the second copy of the database.
const BackupDir = "backup"

// newBackups returns what makes second copies; nil: the options ask for none, or a log of the cluster replaces them.
func (e *Engine) newBackups() *backup.Maker {
	if e.o.BackupEvery == 0 || e.o.Journal != nil {
		return nil
	}
	return &backup.Maker{
		Every: e.o.BackupEvery, Dir: filepath.Join(e.o.DataDir, BackupDir), Now: e.o.Now, Log: e.log,
		HasRoom: e.hasRoomForCopy,
		Database: func(ctx context.Context, w io.Writer, begin func(size int64)) error {
			if !e.copying.TryLock() {
				return ErrCopying
			}
			defer e.copying.Unlock()
			c := copier{ctx: ctx, w: w}
			_, err := e.store.Backup(func(size int64) (io.Writer, error) {
				begin(size)
				return &c, nil
			})
			return errors.Join(c.failed, err)
		},
	}
}
