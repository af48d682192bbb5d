package crawl

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

// BackupDir is the directory below a data directory that holds the second copy of the database.
const BackupDir = "backup"

const (
	backupRate  = 32 << 20    // bytes a second that a second copy is written at, so that commits stay quick
	backupPiece = 1 << 20     // bytes written at a time
	backupAgain = time.Minute // after a copy that could not be made
)

// backups makes the second copy of the database.
type backups struct {
	every    time.Duration
	dir      string // of the copy
	now      func() time.Time
	log      *slog.Logger
	database func(context.Context, io.Writer, func(size int64)) error
	hasRoom  func(size int64) bool
}

// errNoRoom says that there is no room for a second copy.
var errNoRoom = errors.New("the disk has no room for a second copy besides storage.min_free: make room, or set " +
	"storage.backup_every to 0s")

// newBackups returns what makes second copies; nil: the options ask for none, or a log of the cluster replaces them.
func (e *Engine) newBackups() *backups {
	if e.o.BackupEvery == 0 || e.o.Journal != nil {
		return nil
	}
	return &backups{
		every: e.o.BackupEvery, dir: filepath.Join(e.o.DataDir, BackupDir), now: e.o.Now, log: e.log,
		hasRoom: e.hasRoomForCopy,
		database: func(ctx context.Context, w io.Writer, begin func(size int64)) error {
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

// run makes a copy each time that the last one is old enough, until the context ends.
func (b *backups) run(ctx context.Context) {
	for {
		wait, err := b.due()
		if err == nil && wait <= 0 {
			wait, err = b.every, b.make(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			b.log.Error("there is no new second copy of the database", "directory", b.dir, "error", err)
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
func (b *backups) due() (time.Duration, error) {
	info, err := os.Stat(filepath.Join(b.dir, storage.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return min(b.every, info.ModTime().Add(b.every).Sub(b.now())), nil
}

// make makes a copy and reads it. Only one that is whole replaces the one before.
func (b *backups) make(ctx context.Context) (err error) {
	started := b.now()
	if err := os.MkdirAll(b.dir, 0o750); err != nil {
		return err
	}
	if err := removeParts(b.dir); err != nil {
		return err
	}
	part, err := os.MkdirTemp(b.dir, backupPart)
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
	if err := os.Rename(path, filepath.Join(b.dir, storage.FileName)); err != nil {
		return err
	}
	b.log.Info("the second copy of the database is complete", "directory", b.dir, "bytes", size,
		"took", b.now().Sub(started))
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
func (b *backups) write(ctx context.Context, path string) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return 0, err
	}
	roomy := true
	w := &pacedWriter{ctx: ctx, w: f, rate: rate.NewLimiter(backupRate, backupPiece)}
	err = b.database(ctx, w, func(n int64) {
		if size, roomy = n, b.hasRoom(n); !roomy {
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
