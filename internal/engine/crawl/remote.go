package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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

// checkFetcher takes note of a fetcher that calls. The error is remote.ErrCutOff.
func (r *remoteLeases) checkFetcher(name string, now time.Time) error {
	if r.Fetcher(name, now).CutOff {
		return fmt.Errorf("fetcher %s: %w", name, remote.ErrCutOff)
	}
	return nil
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

// restoreCutOffs takes over which fetchers are cut off.
func (pm *permits) restoreCutOffs() error {
	found, err := pm.store.Marks(marks.CutOff)
	for name := range found {
		pm.remote.Fetcher(strings.TrimPrefix(name, marks.CutOff), time.Time{}).CutOff = true
	}
	return err
}
