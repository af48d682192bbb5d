package crawl

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/fetch"
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
		free: storage.FreeBytes,
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

// mayPass reports whether an error goes away when somebody makes room, or gives a directory back.
func mayPass(err error) bool {
	return (errors.Is(err, storage.ErrNoSpace) || errors.Is(err, errOutput)) && !errors.Is(err, storage.ErrInDoubt)
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
	noOutput      = "the output cannot be written: nothing is dispatched until it can"
	noDescriptors = "this process has as many files and connections open as it may: nothing is dispatched " +
		"until there is room again; raise the limit (ulimit -n, or LimitNOFILE= of a service)"
)

// stall stops dispatching because something cannot be written now; any other error ends the crawl.
// where is noCommit or noStart.
func (d *dispatcher) stall(where *error, err error) {
	if !mayPass(err) {
		d.fail(err)
		return
	}
	if d.stalled() == nil {
		message := noOutput
		switch {
		case fetch.OutOfDescriptors(err):
			message = noDescriptors
		case errors.Is(err, storage.ErrNoSpace):
			message = noRoom
		}
		d.log.Error(message, "error", err)
	}
	if fetch.OutOfDescriptors(err) {
		d.connections.CloseIdle() // they are the ones that can be done without
	}
	*where = err
}

// unstall takes note that something could be written.
func (d *dispatcher) unstall(where *error) {
	if *where == nil {
		return
	}
	*where = nil
	if d.stalled() == nil {
		d.log.Info("all can be written again: going on")
	}
}

// stalled returns why nothing is dispatched; nil: it is.
func (d *dispatcher) stalled() error {
	if d.noCommit != nil {
		return d.noCommit
	}
	return d.noStart
}

// takeStall takes what the committer has reported and nobody has read.
func (d *dispatcher) takeStall() {
	select {
	case err := <-d.stalls:
		d.stall(&d.noCommit, err)
	default:
	}
}
