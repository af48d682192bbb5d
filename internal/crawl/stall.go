package crawl

import (
	"errors"
	"time"

	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/storage"
)

// retryFull is how long to wait between two tries to write to a full disk.
const retryFull = time.Second

// noRoom is what the log says once when nothing can be written.
const noRoom = "the disk is full, or as full as it may be: nothing is dispatched until there is room again"

// noOutput is that where it is the output alone.
const noOutput = "the output cannot be written: nothing is dispatched until it can"

// noDescriptors is that where no file can be opened.
const noDescriptors = "this process has as many files and connections open as it may: nothing is dispatched until there is room again; " +
	"raise the limit (ulimit -n, or LimitNOFILE= of a service)"

// passing reports whether an error goes away when somebody makes room, or gives a directory back.
func passing(err error) bool {
	return (errors.Is(err, storage.ErrNoSpace) || errors.Is(err, errOutput)) && !errors.Is(err, storage.ErrInDoubt)
}

// stall stops dispatching because something cannot be written now; any other error ends the
// crawl. where is noCommit or noStart.
func (r *run) stall(where *error, err error) {
	if !passing(err) {
		r.fail(err)
		return
	}
	if r.stalled() == nil {
		message := noOutput
		switch {
		case fetch.OutOfDescriptors(err):
			message = noDescriptors
		case errors.Is(err, storage.ErrNoSpace):
			message = noRoom
		}
		r.log.Error(message, "error", err)
	}
	if fetch.OutOfDescriptors(err) {
		r.client.CloseIdle() // they are the ones that can be done without
	}
	*where = err
}

// unstall takes note that something could be written.
func (r *run) unstall(where *error) {
	if *where == nil {
		return
	}
	*where = nil
	if r.stalled() == nil {
		r.log.Info("all can be written again: going on")
	}
}

// stalled is why nothing is dispatched; nil: it is.
func (r *run) stalled() error {
	if r.noCommit != nil {
		return r.noCommit
	}
	return r.noStart
}

// takeStall takes what the committer has said and nobody has read.
func (r *run) takeStall() {
	select {
	case err := <-r.stalls:
		r.stall(&r.noCommit, err)
	default:
	}
}
