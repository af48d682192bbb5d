package crawl

import (
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
