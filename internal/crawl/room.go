package crawl

import (
	"errors"
	"fmt"

	"github.com/amble-crawler/amble/storage"
)

// checkRoom refuses to write while less room is left on the disk than is to be
// kept free. What is kept is for the end: the last commits of a crawl that is
// asked to stop may use it. A disk that cannot be asked is written to.
func (e *Engine) checkRoom() error {
	if e.o.MinFree == 0 || e.ending.Load() {
		return nil
	}
	for _, dir := range []string{e.o.DataDir, e.o.Archive.Dir} {
		free, err := e.free(dir)
		if err == nil && free < e.o.MinFree {
			return fmt.Errorf("%w: %s has %d MiB free and %d MiB are to be left (storage.min_free); make room or set less",
				storage.ErrNoSpace, dir, free>>20, e.o.MinFree>>20)
		}
	}
	return nil
}

// roomError says about a database that is as large as it may be what can be done.
func (e *Engine) roomError(err error) error {
	if errors.Is(err, storage.ErrMaxSize) {
		return fmt.Errorf("%w; it may have %d MiB (storage.max_size): set more", err, e.o.Storage.MaxBytes>>20)
	}
	return err
}
