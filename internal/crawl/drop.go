package crawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/storage"
)

// markDrop begins the names of the marks that say how far the queue of a host has been dropped.
const markDrop = "drop/"

// drop is a request to drop a host's queue.
type drop struct {
	host   storage.HostID
	below  uint32
	answer chan error // holds one
}

// DropQueue excludes the URLs of a host that wait now, queued or to be tried again, for the reason that the operator wants it so. It
// returns how many those were when that is on disk as what is to be done; the crawl does it in the background, in steps, and goes on
// with it after a restart. URLs that are found later are queued as ever; a request under way is let finish. Any goroutine may
// call it. The error is inspect.ErrUnknown, ErrNotRunning, that of the context, or why it could not be committed.
func (e *Engine) DropQueue(ctx context.Context, name string) (waiting int, err error) {
	d := e.desk.Load()
	if d == nil || d.isClosed() {
		return 0, ErrNotRunning
	}
	h, err := e.store.HostByName(name)
	if errors.Is(err, storage.ErrNotFound) {
		return 0, fmt.Errorf("host %s: %w", name, inspect.ErrUnknown)
	}
	if err != nil {
		return 0, err
	}
	q := &drop{host: h.ID, below: h.Tail, answer: make(chan error, 1)}
	select {
	case d.drops <- q:
	case <-d.closed:
		return 0, ErrNotRunning
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case err = <-q.answer:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return int(h.Of(storage.Queued) + h.Of(storage.Retrying)), err
}

// newDrop is the sweep of a drop.
func (r *run) newDrop(id storage.HostID, below uint32) *sweep {
	c := &sweep{mark: fmt.Sprintf("%s%d", markDrop, id), host: id, when: frontier.DropMatters(), below: below}
	c.decide = func(_ *storage.Head, now time.Time) (storage.Outcome, bool) { return frontier.DropOutcome(now), true }
	c.over = func(now time.Time) { r.f.Dropped(id, c.below, now) }
	return c
}

// openDrop is the sweep of a mark.
func (r *run) openDrop(name string) (*sweep, error) {
	var id storage.HostID
	_, err := fmt.Sscanf(strings.TrimPrefix(name, markDrop), "%d", &id)
	return r.newDrop(id, 0), err
}

// drop begins a drop; it is answered when that is on disk.
func (r *run) drop(q *drop) {
	r.addSweep(r.newDrop(q.host, q.below))
	r.pending.drops = append(r.pending.drops, q)
	r.f.Drop(q.host, q.below, r.now())
	r.collect()
}

// answerDrops says what became of the commit with them.
func (j *job) answerDrops(err error) {
	for _, q := range j.drops {
		q.answer <- err
	}
	j.drops = nil
}
