package crawl

import (
	"context"
	"errors"
	"io"
	"path/filepath"

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
	ErrSlowCopy = backup.ErrSlowCopy
)

// copyMargin is how many bytes stay free for the crawl where a copy is made on the disk first.
const copyMargin = 64 << 20

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
	c := &backup.Copier{Context: ctx, Writer: w}
	n, err = e.store.Backup(func(size int64) (io.Writer, error) {
		begin(size)
		if e.hasRoomForCopy(size) {
			spooled = e.shared.spool.NewWriter(0)
			c.Writer = spooled
		} else {
			c.Limit(size, e.o.Now)
		}
		return c, nil
	})
	if c.Failed != nil {
		err = c.Failed // the store makes a text of it
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
	return content.WriteTo(&backup.Copier{Context: ctx, Writer: w})
}

// hasRoomForCopy reports whether the disk has space for a copy besides the crawl.
func (e *Engine) hasRoomForCopy(size int64) bool {
	free, err := e.space.Free(e.o.Spool.Dir)
	return err == nil && free >= uint64(size)+e.space.Least+copyMargin
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
			c := backup.Copier{Context: ctx, Writer: w}
			_, err := e.store.Backup(func(size int64) (io.Writer, error) {
				begin(size)
				return &c, nil
			})
			return errors.Join(c.Failed, err)
		},
	}
}
