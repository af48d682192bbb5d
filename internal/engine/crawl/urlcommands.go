//go:build !core

package crawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/storage"
)

// DropQueue excludes the URLs of a host that wait now, queued or to be tried again. It returns
// their number when the command is on disk. The crawl applies it in the background, in steps, also
// after a restart. URLs found later are queued as ever, and a request in flight may finish. The
// error is inspect.ErrUnknown, ErrNotRunning, that of the context, or why the command could not be
// committed. Any goroutine may call it.
func (c *commands) DropQueue(ctx context.Context, name string) (waiting int, err error) {
	m := c.mailbox.Load()
	if !m.isOpen() {
		return 0, ErrNotRunning
	}
	h, err := c.store.HostByName(name)
	if errors.Is(err, storage.ErrNotFound) {
		return 0, fmt.Errorf("host %s: %w", name, inspect.ErrUnknown)
	}
	if err == nil {
		err = m.submit(ctx, func(d *dispatcher) error {
			d.drop(h.ID, h.Tail)
			return nil
		})
	}
	if err != nil {
		return 0, err
	}
	return int(h.Of(storage.Queued) + h.Of(storage.Retrying)), nil
}

// drop begins to drop the queue of a host, up to an ordinal.
func (g *gathering) drop(host storage.HostID, below uint32) {
	g.sweeps.add(sweep.NewDrop(host, below), g.pending)
	g.f.Drop(host, below, g.o.Now())
}

// Deletion selects URLs to delete. The zero value is all URLs.
type Deletion struct {
	Host string // canonical name; empty: all hosts
	// Before selects those that were discovered before the second of a time; zero: all of them. Of a host
	// these are its first URLs, up to the first that is younger.
	Before time.Time
}

// Delete deletes URLs, whatever their state, so that they are new when they are found again. What
// is known of their hosts stays. It returns how many URLs it deletes, when they are gone. If ctx or
// the crawl ends before, the deletion goes on all the same, also after a restart. The error is
// inspect.ErrUnknown for an unknown host, ErrNotRunning, that of ctx, or why the command could not
// be committed. Any goroutine may call it.
func (c *commands) Delete(ctx context.Context, o Deletion) (urls uint64, err error) {
	m := c.mailbox.Load()
	if !m.isOpen() {
		return 0, ErrNotRunning
	}
	all := sweep.NewDeletion(o.Before)
	begin := func(d *dispatcher) error { d.sweeps.add(all.All(), d.pending); return nil }
	if o.Host != "" {
		host, err := c.store.HostByName(o.Host)
		if errors.Is(err, storage.ErrNotFound) {
			return 0, fmt.Errorf("host %s: %w", o.Host, inspect.ErrUnknown)
		}
		if err != nil {
			return 0, err
		}
		x, err := all.Of(c.store, &host)
		if x == nil || err != nil {
			return 0, err
		}
		begin = func(d *dispatcher) error { d.delete(x); return nil }
	}
	if err := m.submit(ctx, begin); err != nil {
		return 0, err
	}
	select {
	case <-all.Done():
		return all.URLs(), nil
	case <-m.closed:
		return 0, fmt.Errorf("delete URLs: %w; the next run goes on with it", ErrNotRunning)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Retry puts the URLs of a selection back into their queues, in the background. It calls each with
// its progress: first when the command is on disk, and then now and again. Retry returns when all
// of it is on disk. If the context or each ends it earlier, the retry goes on, also in the next
// run. The error is that of the context or of each, inspect.ErrUnknown for a host or a seed that is not
// known, ErrNotRunning, or why the command could not be committed. Any goroutine may call it.
func (v *views) Retry(
	ctx context.Context, s sweep.Selection, each func(sweep.Retried) error,
) (sweep.Retried, error) {
	m := v.mailbox.Load()
	if !m.isOpen() {
		return sweep.Retried{}, ErrNotRunning
	}
	r, err := s.Begin(v.store, v.seeds)
	if err != nil {
		return sweep.Retried{}, err
	}
	err = m.submit(ctx, func(d *dispatcher) error {
		d.sweeps.addRetry(r, d.pending)
		return nil
	})
	if err != nil {
		return sweep.Retried{}, err
	}
	if err := each(r.Progress()); err != nil {
		return r.Progress(), err
	}
	tick := time.NewTicker(retryReports)
	defer tick.Stop()
	for {
		select {
		case <-r.Done():
			return r.Progress(), nil
		case <-m.closed:
			return r.Progress(), ErrNotRunning
		case <-ctx.Done():
			return r.Progress(), ctx.Err()
		case <-tick.C:
			if err := each(r.Progress()); err != nil {
				return r.Progress(), err
			}
		}
	}
}

// retryReports is how often the progress of a retry is reported.
const retryReports = time.Second

// CountRetries counts the URLs of a selection, as sweep.Count does. Any goroutine may call it.
func (v *views) CountRetries(
	ctx context.Context, s sweep.Selection, each func(sweep.Retried) error,
) (sweep.Retried, error) {
	return sweep.Count(ctx, v.store, s, v.seeds, each)
}
