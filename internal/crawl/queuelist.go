package crawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// QueueStats are the numbers of one host, or of all.
type QueueStats struct {
	Queued       uint64 // URLs that are due now or later, those in process included
	InProcess    uint64 // leased
	Completed    uint64 // URLs that are due no more
	Queues       uint64 // hosts with URLs
	ActiveQueues uint64 // those with Queued URLs
}

// QueueStats returns the numbers of a host, or of all hosts if the name is empty. A host that is not
// known has zeros. The error is ErrNotRunning or that of ctx. Any goroutine may call it.
func (e *Engine) QueueStats(ctx context.Context, host string) (s QueueStats, err error) {
	m := e.mailbox.Load()
	if !m.isOpen() {
		return s, ErrNotRunning
	}
	if host == "" {
		err = m.call(ctx, func(d *dispatcher) {
			d.runOut(d.o.Now())
			all, withWork := d.f.HostsWithURLs()
			s.InProcess, s.Queues, s.ActiveQueues = uint64(len(d.remote.out)), uint64(all), uint64(withWork)
		})
		c := e.store.Counters()
		s.Queued = c.Of(storage.Queued) + c.Of(storage.Retrying)
		s.Completed = c.URLs - s.Queued
		return s, err
	}
	h, err := queueOf(e.store, host)
	if errors.Is(err, inspect.ErrUnknown) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Completed, s.Queues = uint64(h.Completed()), 1
	if s.Queued = uint64(h.URLs()) - s.Completed; s.Queued > 0 {
		s.ActiveQueues = 1
	}
	return s, m.call(ctx, func(d *dispatcher) {
		d.runOut(d.o.Now())
		if v, ok := d.f.View(h.ID); ok {
			s.InProcess = uint64(v.InFlight)
		}
	})
}

// QueueQuery selects hosts.
type QueueQuery struct {
	Start, Size     int  // of the hosts that match, by their age: how many are skipped, and the most that follow; Size 0: all
	IncludeInactive bool // also hosts that are blocked, and those without URLs that are due now or later
}

// queuesPage is how many hosts are read in one transaction.
const queuesPage = 500

// ListQueues returns names of hosts with URLs, in the order in which they became known. It reads in
// short transactions. The error is that of ctx or of the store. Any goroutine may call it.
func (e *Engine) ListQueues(ctx context.Context, q QueueQuery) (names []string, err error) {
	now, skip := e.o.Now(), q.Start
	for at := storage.HostID(1); at != storage.NoHost && (q.Size == 0 || len(names) < q.Size); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at, err = e.store.HostsFrom(at, queuesPage, func(h *storage.Host) error {
			matches, err := q.matches(h, now)
			switch {
			case err != nil || !matches || q.Size > 0 && len(names) == q.Size:
			case skip > 0:
				skip--
			default:
				names = append(names, h.Name)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list hosts: %w", err)
		}
	}
	return names, nil
}

// matches reports whether a query selects a host.
func (q *QueueQuery) matches(h *storage.Host, now time.Time) (bool, error) {
	if q.IncludeInactive || h.URLs() == h.Completed() {
		return q.IncludeInactive && h.URLs() > 0, nil
	}
	state, err := politeness.DecodeState(h.Politeness)
	return blockedUntil(&state, now).IsZero(), err
}

// URLStatus is what a client may know of a URL.
type URLStatus struct {
	Completed bool
	Due       time.Time // of a discovery the time when it was put; zero: never
	Created   time.Time // when it became known
	Metadata  storage.Metadata
}

func newURLStatus(h *storage.Head, metadata storage.Metadata) URLStatus {
	s := URLStatus{Completed: true, Due: h.Last.Due, Created: h.FirstSeen, Metadata: metadata}
	switch h.Last.State {
	case storage.Queued:
		s.Completed, s.Due = false, h.FirstSeen
	case storage.Retrying:
		s.Completed = false
	}
	return s
}

// URLStatus returns what is known of a URL. The error is inspect.ErrUnknown, or that of the store.
// Any goroutine may call it.
func (e *Engine) URLStatus(_ context.Context, u weburl.URL) (URLStatus, error) {
	u, _ = e.o.URLs.Apply(u)
	head, host, err := e.store.Lookup(u)
	if errors.Is(err, storage.ErrNotFound) || err == nil && head.RequestURI != u.RequestURI() {
		return URLStatus{}, fmt.Errorf("%s: %w", u, inspect.ErrUnknown)
	}
	if err != nil {
		return URLStatus{}, err
	}
	metadata, err := e.store.MetadataOf([]storage.Position{{Host: host.ID, Ordinal: head.Ordinal}})
	if err != nil {
		return URLStatus{}, err
	}
	return newURLStatus(&head, metadata[0]), nil
}

// URLQuery selects URLs.
type URLQuery struct {
	Host        string // empty: all hosts
	Start, Size int    // of the URLs that match: how many are skipped, and the most that follow; Size 0: all
	Filter      string // they contain it; empty: all
	IgnoreCase  bool   // of Filter
}

// filter returns a function that reports whether a URL passes the filter.
func (q *URLQuery) filter() func(weburl.URL) bool {
	switch {
	case q.Filter == "":
		return func(weburl.URL) bool { return true }
	case !q.IgnoreCase:
		return func(u weburl.URL) bool { return strings.Contains(u.String(), q.Filter) }
	}
	text := strings.ToLower(q.Filter)
	return func(u weburl.URL) bool { return strings.Contains(strings.ToLower(u.String()), text) }
}

// ListURLs calls yield for URLs, in the order in which their hosts became known, and of a host in that
// in which they did. An error of yield ends it and is returned. It reads in short transactions, none
// while yield runs. An unknown host has no URLs. Any goroutine may call it.
func (e *Engine) ListURLs(ctx context.Context, q URLQuery, yield func(weburl.URL, URLStatus) error) error {
	skip, left := q.Start, q.Size
	return e.walkURLs(ctx, &q, func(l *storage.Located) error {
		if skip > 0 {
			skip--
			return nil
		}
		if err := yield(l.URL, newURLStatus(&l.Head, l.Metadata)); err != nil {
			return err
		}
		if left--; left == 0 {
			return storage.ErrStop
		}
		return nil
	})
}

// CountURLs returns how many URLs match, whatever Start and Size are. With a filter it reads all URLs
// of the host, in short transactions. Any goroutine may call it.
func (e *Engine) CountURLs(ctx context.Context, q URLQuery) (n uint64, err error) {
	switch {
	case q.Filter != "":
		err = e.walkURLs(ctx, &q, func(*storage.Located) error {
			n++
			return nil
		})
		return n, err
	case q.Host == "":
		return e.store.Counters().URLs, nil
	}
	h, err := queueOf(e.store, q.Host)
	if errors.Is(err, inspect.ErrUnknown) {
		return 0, nil
	}
	return uint64(h.URLs()), err
}

// walkURLs calls f for the URLs that match.
func (e *Engine) walkURLs(ctx context.Context, q *URLQuery, f func(*storage.Located) error) error {
	only, from := storage.NoHost, storage.Position{}
	if q.Host != "" {
		h, err := queueOf(e.store, q.Host)
		if errors.Is(err, inspect.ErrUnknown) {
			return nil
		}
		if err != nil {
			return err
		}
		only, from.Host = h.ID, h.ID
	}
	passes := q.filter()
	_, err := e.store.Walk(ctx, from, 0, func(l *storage.Located) error {
		switch {
		case only != storage.NoHost && l.At.Host != only:
			return storage.ErrStop
		case l.Host == nil || !passes(l.URL):
			return nil
		}
		return f(l)
	})
	return err
}
