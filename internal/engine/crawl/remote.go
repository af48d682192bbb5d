//go:build !core

package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/storage"
)

// A remote lease is a page lease that leaves the process: a fetcher elsewhere makes the request and
// reports its result. It is a lease of the one frontier like any other. Its line is in the start
// ledger before it leaves, and its host has a request in flight until the fetcher reports or the
// deadline passes. Lookups of names, fetches of robots.txt and long matches stay with the workers.

// Lease waits until at least one lease can be given, and returns as many as can be given then, up
// to r.N; none when r.Wait is over. A lease that it returns is in the start ledger. The error is
// that of ctx, and leases that were given are put back; remote.ErrLease, remote.ErrCutOff, ErrNotRunning, or
// inspect.ErrUnknown for an unknown host. Any goroutine may call it.
func (l *lendings) Lease(ctx context.Context, r remote.Request) ([]remote.Lease, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	m, w := l.mailbox.Load(), l.lender.Load()
	if !m.isOpen() || w == nil {
		return nil, ErrNotRunning
	}
	host := storage.NoHost
	if r.Host != "" {
		h, err := l.store.HostByName(r.Host)
		if errors.Is(err, storage.ErrNotFound) {
			return nil, fmt.Errorf("host %s: %w", r.Host, inspect.ErrUnknown)
		}
		if err != nil {
			return nil, err
		}
		host = h.ID
	}
	waited, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	for {
		wait := &leaseWait{request: r, host: host, done: make(chan struct{})}
		if err := wait.run(ctx, waited, m); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			putBack := make([]remote.Report, len(wait.given))
			for i, given := range wait.given {
				putBack[i] = remote.Report{Fetcher: r.Fetcher, ID: remote.ID(given.remote.ID), NotDone: true}
			}
			_, err := l.Report(context.WithoutCancel(ctx), putBack)
			return nil, errors.Join(ctx.Err(), err)
		}
		leases, err := l.lend(ctx, m, w, wait.given, r.Bare)
		if len(leases) > 0 || err != nil || waited.Err() != nil {
			return leases, err
		}
	}
}

// Extend sets the deadline of leases of a fetcher to visibility from now. The new deadlines are in
// the start ledger when it returns; those of leases that are out no more are zero. Any goroutine
// may call it.
func (l *lendings) Extend(
	ctx context.Context, fetcher string, ids []remote.ID, visibility time.Duration,
) (deadlines []time.Time, err error) {
	if err := remote.ValidateVisibility(visibility); err != nil {
		return nil, err
	}
	deadlines = make([]time.Time, len(ids))
	callErr := l.mailbox.Load().call(ctx, func(d *dispatcher) {
		if err = d.remote.checkFetcher(fetcher, d.o.Now()); err != nil {
			return
		}
		for i, id := range ids {
			if deadlines[i], err = d.extend(fetcher, id, visibility); err != nil {
				return
			}
		}
	})
	return deadlines, errors.Join(callErr, err)
}

// Report takes in the results of leases, and returns when those that were accepted are committed:
// one result for each report. Bodies are worked on in the caller's goroutine. The error is
// remote.ErrCutOff, ErrNotRunning, that of ctx, or why the commit failed; after it, reports may have been
// accepted. Any goroutine may call it.
func (l *lendings) Report(ctx context.Context, reports []remote.Report) ([]remote.Result, error) {
	m, w := l.mailbox.Load(), l.lender.Load()
	if !m.isOpen() || w == nil {
		return nil, ErrNotRunning
	}
	c := &claims{all: make([]claim, len(reports)), done: make(chan struct{})}
	for i := range reports {
		c.all[i] = l.newClaim(&reports[i])
	}
	if err := m.call(ctx, func(d *dispatcher) { d.claim(c) }); err != nil {
		return nil, err
	}
	<-c.done
	results := make([]remote.Result, len(reports))
	for i := range c.all {
		results[i] = c.all[i].result
		if res := c.all[i].res; res != nil {
			w.ServeReport(res, &reports[i])
			w.results <- completion{res}
		}
	}
	for i := range c.all {
		if c.all[i].committed == nil {
			continue
		}
		select {
		case err := <-c.all[i].committed:
			c.err = errors.Join(c.err, err)
		case <-ctx.Done():
			return results, ctx.Err()
		}
	}
	return results, c.err
}

// newClaim finds out which lease a report is for, as far as the store knows it.
func (l *lendings) newClaim(r *remote.Report) claim {
	c := claim{report: r, result: remote.Invalid, at: storage.Position{Host: storage.NoHost}}
	if !r.IsValid() {
		return c
	}
	c.result = remote.Unknown
	if r.ID == "" {
		head, host, err := l.store.Lookup(r.URL)
		if err != nil {
			return c
		}
		c.at = storage.Position{Host: host.ID, Ordinal: head.Ordinal}
	}
	c.open = true
	return c
}

// Fetchers returns the fetchers of this run and those that are cut off, by name. Any goroutine may
// call it.
func (l *lendings) Fetchers(ctx context.Context) (list []remote.Fetcher, err error) {
	err = l.mailbox.Load().call(ctx, func(d *dispatcher) { list = d.remote.Fetchers() })
	return list, err
}

// CutOff refuses all further requests and reports of a fetcher, in this run and those to come. Its
// leases run out at their deadlines, since its requests may still be under way. It returns when
// that is on disk. Any goroutine may call it.
func (l *lendings) CutOff(ctx context.Context, fetcher string) error {
	return l.setCutOff(ctx, fetcher, true)
}

// Admit ends a CutOff. It returns when that is on disk. Any goroutine may call it.
func (l *lendings) Admit(ctx context.Context, fetcher string) error {
	return l.setCutOff(ctx, fetcher, false)
}

func (l *lendings) setCutOff(ctx context.Context, fetcher string, on bool) error {
	if !remote.IsFetcherName(fetcher) {
		return fmt.Errorf("fetcher %q: %w", fetcher, inspect.ErrUnknown)
	}
	return l.mailbox.Load().submit(ctx, func(d *dispatcher) error { return d.setCutOff(fetcher, on) })
}

// setCutOff cuts a fetcher off, or ends that.
func (ld *lender) setCutOff(name string, on bool) error {
	now := ld.o.Now()
	f := ld.remote.Fetcher(name, now)
	var mark []byte
	if f.CutOff = on; on {
		mark = []byte(now.UTC().Format(time.RFC3339))
		for _, w := range slices.Clone(ld.remote.waiters) {
			if w.request.Fetcher == name {
				w.err = fmt.Errorf("fetcher %s: %w", name, remote.ErrCutOff)
				ld.remote.removeWaiter(w)
			}
		}
	}
	ld.pending.setMark(marks.CutOff+name, mark)
	ld.log.Info("the operator cuts a fetcher off or admits it", "fetcher", name, "cut_off", on)
	ld.report("running")
	return nil
}

// lend makes leases of what the dispatcher has given. Pages whose use is refused are not lent.
func (l *lendings) lend(
	ctx context.Context, m *mailbox, w *workers, given []*lentPage, bare bool,
) ([]remote.Lease, error) {
	at := make([]storage.Position, len(given))
	for i, page := range given {
		at[i] = page.remote.At
	}
	metadata, err := l.store.MetadataOf(at)
	if err != nil {
		return nil, errors.Join(err, m.putBack(ctx, given))
	}
	leases := make([]remote.Lease, 0, len(given))
	for i, page := range given {
		x := page.remote
		if refusal, refused := w.RefusesUse(&page.lease); refused {
			res := &work.Result{Lease: page.lease, Remote: &work.RemoteResult{Lease: x}}
			res.Page = refusal
			err = errors.Join(err, m.call(ctx, func(d *dispatcher) {
				if d.remote.IsOut(x) { // else it has run out meanwhile
					d.complete(res)
				}
			}))
			continue
		}
		lease := w.Describe(&page.lease, x, bare)
		lease.Metadata = metadata[i]
		leases = append(leases, lease)
	}
	return leases, err
}

// putBack ends leases that nobody gets.
func (m *mailbox) putBack(ctx context.Context, given []*lentPage) error {
	return m.call(context.WithoutCancel(ctx), func(d *dispatcher) {
		for _, page := range given {
			if x := page.remote; d.remote.IsOut(x) {
				now := d.o.Now()
				back := broken(&page.lease, x, now, now)
				back.Page.Report = frontier.Report{End: now}
				d.complete(back)
			}
		}
	})
}

// run waits until the request is answered, or waited or ctx end. The error is ErrNotRunning, remote.ErrCutOff or
// remote.ErrLease.
func (w *leaseWait) run(ctx, waited context.Context, m *mailbox) error {
	uncancelled := context.WithoutCancel(ctx)
	if err := m.call(uncancelled, func(d *dispatcher) { d.addWaiter(w) }); err != nil {
		return err
	}
	select {
	case <-w.done:
		return w.err
	case <-waited.Done():
	}
	if ctx.Err() == nil {
		_ = m.call(uncancelled, func(d *dispatcher) { w.lastChance, w.mark = true, d.loads.Mark() })
		select {
		case <-w.done:
			return w.err
		case <-ctx.Done():
		case <-time.After(loadTimeout):
		}
	}
	// After an error the dispatcher has turned the request away.
	_ = m.call(uncancelled, func(d *dispatcher) { d.remote.removeWaiter(w) })
	<-w.done
	return w.err
}

// addWaiter takes in a request for leases.
func (ld *lender) addWaiter(w *leaseWait) {
	r := &ld.remote
	w.err = r.checkFetcher(w.request.Fetcher, ld.o.Now())
	if w.err == nil && len(r.waiters) >= maxWaiters {
		w.err = fmt.Errorf("%w: %d requests wait already", remote.ErrLease, maxWaiters)
	}
	if w.err != nil || ld.lend(w) {
		close(w.done)
		return
	}
	r.waiters = append(r.waiters, w)
}

// removeWaiter ends a request, whether it has leases or not.
func (r *remoteLeases) removeWaiter(w *leaseWait) {
	if i := slices.Index(r.waiters, w); i >= 0 {
		r.waiters = slices.Delete(r.waiters, i, i+1)
		close(w.done)
	}
}

// extend moves the deadline of a lease; zero: it is not out, or not the fetcher's.
func (ld *lender) extend(fetcher string, id remote.ID, visibility time.Duration) (time.Time, error) {
	now := ld.o.Now()
	x, _ := ld.remote.Find(string(id))
	if x == nil || x.IsClaimed() || x.Fetcher != fetcher || !now.Before(x.Ends) {
		return time.Time{}, nil
	}
	l, _ := ld.f.LeaseOf(x.FrontierID)
	until := now.Add(visibility)
	if longest := x.Began.Add(remote.MaxLeaseLife); until.After(longest) {
		until = longest
	}
	before := x.Deadline
	x.Deadline = until.Round(0)
	offset, err := ld.ledger.lend(l, x)
	if err != nil {
		x.Deadline = before
		return time.Time{}, err
	}
	ld.remote.Extend(x, until, offset)
	return x.Deadline, nil
}
