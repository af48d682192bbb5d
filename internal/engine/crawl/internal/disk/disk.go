// Package disk says whether a crawl may write: how much space has to stay free, which errors pass when somebody makes
// room, and since when nothing can be dispatched because of one.
package disk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/storage"
)

// Space is the space that has to stay free on the disk. The last commits of a crawl that ends
// may use it. It is safe for concurrent use.
type Space struct {
	Least    uint64   // bytes
	Dirs     []string // on whose disks
	MaxBytes int      // of the database
	Free     func(dir string) (uint64, error)
	reserve  atomic.Bool // may be used
}

// UseReserve lets commits use all space there is.
func (s *Space) UseReserve() { s.reserve.Store(true) }

// Check returns storage.ErrNoSpace if too little space is free. A disk that cannot be examined is
// written to.
func (s *Space) Check() error {
	if s.Least == 0 || s.reserve.Load() {
		return nil
	}
	for _, dir := range s.Dirs {
		free, err := s.Free(dir)
		if err == nil && free < s.Least {
			return fmt.Errorf("%w: %s has %d MiB free, and %d MiB must stay free (storage.min_free); "+
				"make room or set less", storage.ErrNoSpace, dir, free>>20, s.Least>>20)
		}
	}
	return nil
}

// Explain adds to the error of a commit what can be done about a database of the greatest size.
func (s *Space) Explain(err error) error {
	if errors.Is(err, storage.ErrMaxSize) {
		return fmt.Errorf("%w; it may have %d MiB (storage.max_size): set more", err, s.MaxBytes>>20)
	}
	return err
}

// errOutput says that the output cannot be written for a reason that may pass.
var errOutput = errors.New("the output cannot be written")

// OutputError marks what can pass: a full disk as the store does, and a directory that is gone,
// read-only or out of order. If the files do not hold what was committed, waiting does not help.
func OutputError(err error) error {
	switch {
	case err == nil, errors.Is(err, archive.ErrMissing), errors.Is(err, archive.ErrShort),
		errors.Is(err, archive.ErrClosed):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", storage.ErrNoSpace, err)
	}
	return fmt.Errorf("%w: %w", errOutput, err)
}

// MayPass reports whether an error goes away when somebody makes room, or gives a directory or the
// log of the cluster back.
func MayPass(err error) bool {
	return (errors.Is(err, storage.ErrNoSpace) || errors.Is(err, errOutput) || errors.Is(err, storage.ErrLogDown)) &&
		!errors.Is(err, storage.ErrInDoubt)
}

// Again is how long to wait between two tries to write to a full disk.
const Again = time.Second

// Wait reports that something cannot be written, and waits before the next try; false: the
// context has ended.
func Wait(ctx context.Context, stalls chan<- error, err error) bool {
	select {
	case stalls <- err:
	default: // the dispatcher knows
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(Again):
		return true
	}
}

// What the log says once when nothing can be written: no room on the disk, no output, no
// descriptors.
const (
	NoRoom        = "the disk is full, or as full as it may be: nothing is dispatched until there is room again"
	noLog         = "the log of the cluster cannot be written: nothing is dispatched until it can"
	noOutput      = "the output cannot be written: nothing is dispatched until it can"
	noDescriptors = "this process has as many files and connections open as it may: nothing is dispatched " +
		"until there is room again; raise the limit (ulimit -n, or LimitNOFILE= of a service)"
)

// Stall is why nothing can be dispatched: something cannot be written now. The dispatcher owns it.
type Stall struct {
	Log       *slog.Logger
	CloseIdle func() bool  // closes the connections that can be done without
	Reports   <-chan error // holds one: why the committer or a worker cannot write
	commit    error        // why nothing can be committed; the committer tries again by itself
	start     error        // why the ledger cannot be written; the next lease tries again
	startAt   time.Time    // of the last try
}

// Why returns the reason; nil: all can be written.
func (s *Stall) Why() error {
	if s.commit != nil {
		return s.commit
	}
	return s.start
}

// Holds reports whether nothing may be given out now.
func (s *Stall) Holds(now func() time.Time) bool {
	return s.commit != nil || s.start != nil && now().Sub(s.startAt) < Again
}

// CommitFailed takes note that nothing can be committed now. An error that does not pass comes back.
func (s *Stall) CommitFailed(err error) error { return s.begin(&s.commit, err) }

// StartFailed takes note that the ledger cannot be written now. An error that does not pass comes
// back.
func (s *Stall) StartFailed(err error, now time.Time) error {
	s.startAt = now
	return s.begin(&s.start, err)
}

func (s *Stall) begin(where *error, err error) error {
	if !MayPass(err) {
		return err
	}
	if s.Why() == nil {
		message := noOutput
		switch {
		case fetch.OutOfDescriptors(err):
			message = noDescriptors
		case errors.Is(err, storage.ErrNoSpace):
			message = NoRoom
		case errors.Is(err, storage.ErrLogDown):
			message = noLog
		}
		s.Log.Error(message, "error", err)
	}
	if fetch.OutOfDescriptors(err) {
		s.CloseIdle()
	}
	*where = err
	return nil
}

// Committed takes note of a commit, and before it of a report that nobody has read.
func (s *Stall) Committed() {
	select {
	case err := <-s.Reports:
		_ = s.CommitFailed(err) // reports are of what passes
	default:
	}
	s.end(&s.commit)
}

// Started takes note that the ledger could be written.
func (s *Stall) Started() { s.end(&s.start) }

func (s *Stall) end(where *error) {
	if *where == nil {
		return
	}
	*where = nil
	if s.Why() == nil {
		s.Log.Info("all can be written again: going on")
	}
}
