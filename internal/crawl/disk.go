package crawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/crawl/internal/backup"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/storage"
)

// diskSpace is the space that has to stay free on the disk. The last commits of a crawl that ends
// may use it. It is safe for concurrent use.
type diskSpace struct {
	least    uint64   // bytes
	dirs     []string // on whose disks
	maxBytes int      // of the database
	free     func(dir string) (uint64, error)
	reserve  atomic.Bool // may be used
}

func newDiskSpace(o *Options) *diskSpace {
	return &diskSpace{
		least: o.MinFree, dirs: []string{o.DataDir, o.Archive.Dir}, maxBytes: o.Storage.MaxBytes,
		free: system.FreeBytes,
	}
}

// useReserve lets commits use all space there is.
func (s *diskSpace) useReserve() { s.reserve.Store(true) }

// check returns storage.ErrNoSpace if too little space is free. A disk that cannot be examined is
// written to.
func (s *diskSpace) check() error {
	if s.least == 0 || s.reserve.Load() {
		return nil
	}
	for _, dir := range s.dirs {
		free, err := s.free(dir)
		if err == nil && free < s.least {
			return fmt.Errorf("%w: %s has %d MiB free, and %d MiB must stay free (storage.min_free); "+
				"make room or set less", storage.ErrNoSpace, dir, free>>20, s.least>>20)
		}
	}
	return nil
}

// explain adds to the error of a commit what can be done about a database of the greatest size.
func (s *diskSpace) explain(err error) error {
	if errors.Is(err, storage.ErrMaxSize) {
		return fmt.Errorf("%w; it may have %d MiB (storage.max_size): set more", err, s.maxBytes>>20)
	}
	return err
}

// errOutput says that the output cannot be written for a reason that may pass.
var errOutput = errors.New("the output cannot be written")

// outputError marks what can pass: a full disk as the store does, and a directory that is gone,
// read-only or out of order. If the files do not hold what was committed, waiting does not help.
func outputError(err error) error {
	switch {
	case err == nil, errors.Is(err, archive.ErrMissing), errors.Is(err, archive.ErrShort),
		errors.Is(err, archive.ErrClosed):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", storage.ErrNoSpace, err)
	}
	return fmt.Errorf("%w: %w", errOutput, err)
}

// mayPass reports whether an error goes away when somebody makes room, or gives a directory or the
// log of the cluster back.
func mayPass(err error) bool {
	return (errors.Is(err, storage.ErrNoSpace) || errors.Is(err, errOutput) || errors.Is(err, storage.ErrLogDown)) &&
		!errors.Is(err, storage.ErrInDoubt)
}

// retryFull is how long to wait between two tries to write to a full disk.
const retryFull = time.Second

// waitForSpace reports that something cannot be written, and waits before the next try; false: the
// context has ended.
func waitForSpace(ctx context.Context, stalls chan<- error, err error) bool {
	select {
	case stalls <- err:
	default: // the dispatcher knows
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(retryFull):
		return true
	}
}

// What the log says once when nothing can be written: no room on the disk, no output, no
// descriptors.
const (
	noRoom        = "the disk is full, or as full as it may be: nothing is dispatched until there is room again"
	noLog         = "the log of the cluster cannot be written: nothing is dispatched until it can"
	noOutput      = "the output cannot be written: nothing is dispatched until it can"
	noDescriptors = "this process has as many files and connections open as it may: nothing is dispatched " +
		"until there is room again; raise the limit (ulimit -n, or LimitNOFILE= of a service)"
)

// stall is why nothing can be dispatched: something cannot be written now. The dispatcher owns it.
type stall struct {
	log       *slog.Logger
	closeIdle func() bool  // closes the connections that can be done without
	reports   <-chan error // holds one: why the committer or a worker cannot write
	commit    error        // why nothing can be committed; the committer tries again by itself
	start     error        // why the ledger cannot be written; the next lease tries again
	startAt   time.Time    // of the last try
}

// why returns the reason; nil: all can be written.
func (s *stall) why() error {
	if s.commit != nil {
		return s.commit
	}
	return s.start
}

// holds reports whether nothing may be given out now.
func (s *stall) holds() bool {
	return s.commit != nil || s.start != nil && time.Since(s.startAt) < retryFull
}

// commitFailed takes note that nothing can be committed now. An error that does not pass comes back.
func (s *stall) commitFailed(err error) error { return s.begin(&s.commit, err) }

// startFailed takes note that the ledger cannot be written now. An error that does not pass comes
// back.
func (s *stall) startFailed(err error, now time.Time) error {
	s.startAt = now
	return s.begin(&s.start, err)
}

func (s *stall) begin(where *error, err error) error {
	if !mayPass(err) {
		return err
	}
	if s.why() == nil {
		message := noOutput
		switch {
		case fetch.OutOfDescriptors(err):
			message = noDescriptors
		case errors.Is(err, storage.ErrNoSpace):
			message = noRoom
		case errors.Is(err, storage.ErrLogDown):
			message = noLog
		}
		s.log.Error(message, "error", err)
	}
	if fetch.OutOfDescriptors(err) {
		s.closeIdle()
	}
	*where = err
	return nil
}

// committed takes note of a commit, and before it of a report that nobody has read.
func (s *stall) committed() {
	select {
	case err := <-s.reports:
		_ = s.commitFailed(err) // reports are of what passes
	default:
	}
	s.end(&s.commit)
}

// started takes note that the ledger could be written.
func (s *stall) started() { s.end(&s.start) }

func (s *stall) end(where *error) {
	if *where == nil {
		return
	}
	*where = nil
	if s.why() == nil {
		s.log.Info("all can be written again: going on")
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
	free, err := e.space.free(e.o.Spool.Dir)
	return err == nil && free >= uint64(size)+e.space.least+copyMargin
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
