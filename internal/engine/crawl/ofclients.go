//go:build !core

package crawl

// What the service for clients of URLFrontier uses of an engine, and nobody else.

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/queues"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// CrawlsDir is the name of the directory with the other crawls of a process that has several, in its data directory.
const CrawlsDir = "crawls"

// URLStatus is what a client may know of a URL.
type URLStatus struct {
	Completed bool
	Key       string    // of its queue
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
func (v *views) URLStatus(_ context.Context, u weburl.URL) (URLStatus, error) {
	u, _ = v.o.URLs.Apply(u)
	head, host, err := v.store.Lookup(u)
	if errors.Is(err, storage.ErrNotFound) || err == nil && head.RequestURI != u.RequestURI() {
		return URLStatus{}, fmt.Errorf("%s: %w", u, inspect.ErrUnknown)
	}
	if err != nil {
		return URLStatus{}, err
	}
	metadata, err := v.store.MetadataOf([]storage.Position{{Host: host.ID, Ordinal: head.Ordinal}})
	if err != nil {
		return URLStatus{}, err
	}
	status := newURLStatus(&head, metadata[0])
	status.Key, err = v.keyOf(host.Name)
	return status, err
}

// URLQuery selects URLs.
type URLQuery struct {
	Host        string // empty: all hosts
	Start, Size int    // of the URLs that match: how many are skipped, and the most that follow; Size 0: all
	Filter      string // they contain it; empty: all
	IgnoreCase  bool   // of Filter
}

// QueueQuery selects queues.
type QueueQuery struct {
	// Of the queues that match: how many are skipped, and the most that follow; Size 0: all.
	Start, Size int
	// Also queues that are blocked, and those without URLs that are due now or later.
	IncludeInactive bool
}

// queuesPage is how many hosts are read in one transaction.
const queuesPage = 500

// queueList is a list of the keys of queues on its way.
type queueList struct {
	QueueQuery
	store store
	now   time.Time
	keys  []string
}

// isFull reports whether the list has what is wanted.
func (l *queueList) isFull() bool { return l.Size > 0 && len(l.keys) == l.Size }

func (l *queueList) add(key string) {
	if l.Start > 0 {
		l.Start--
	} else {
		l.keys = append(l.keys, key)
	}
}

// ListQueues returns keys of queues with URLs: first those of several hosts by their keys, and then the other hosts
// in the order in which they became known. It reads in short transactions. The error is that of ctx or of the
// store. Any goroutine may call it.
func (i *keyIndex) ListQueues(ctx context.Context, q QueueQuery) (keys []string, err error) {
	l := &queueList{QueueQuery: q, store: i.database, now: i.now()}
	keyed := i.any.Load()
	if keyed {
		err = l.keyed(ctx)
	}
	for at := storage.HostID(1); err == nil && at != storage.NoHost && !l.isFull(); {
		if err = ctx.Err(); err != nil {
			break
		}
		at, err = i.database.HostsFrom(at, queuesPage, func(h *storage.Host) error {
			if l.isFull() {
				return nil
			}
			matches, err := l.matches(h, l.now)
			if matches && keyed && err == nil {
				matches, err = l.isAlone(h.Name)
			}
			if matches && err == nil {
				l.add(h.Name)
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	return l.keys, nil
}

// HostsOfQueue returns the hosts whose queue has a key that is not their name, in rising order: those after a name,
// at most so many. Any goroutine may call it.
func (i *keyIndex) HostsOfQueue(key, after string, most int) ([]string, error) {
	return queues.HostsOf(i.database, key, after, most)
}

// ListURLs calls yield for URLs, in the order in which their hosts became known, and of a host in that
// in which they did. An error of yield ends it and is returned. It reads in short transactions, none
// while yield runs. An unknown host has no URLs. Any goroutine may call it.
func (v *views) ListURLs(ctx context.Context, q URLQuery, yield func(weburl.URL, URLStatus) error) error {
	skip, left := q.Start, q.Size
	host, key := "", ""
	return v.walkURLs(ctx, &q, func(l *storage.Located) (err error) {
		if skip > 0 {
			skip--
			return nil
		}
		u, status := l.URL(), newURLStatus(&l.Head, l.Metadata)
		if u.Host() != host {
			if key, err = v.keyOf(u.Host()); err != nil {
				return err
			}
			host = u.Host()
		}
		status.Key = key
		if err := yield(u, status); err != nil {
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
func (v *views) CountURLs(ctx context.Context, q URLQuery) (n uint64, err error) {
	switch {
	case q.Filter != "":
		err = v.walkURLs(ctx, &q, func(*storage.Located) error {
			n++
			return nil
		})
		return n, err
	case q.Host == "":
		return v.store.Counters().URLs, nil
	}
	h, err := queues.Of(v.store, q.Host)
	if errors.Is(err, inspect.ErrUnknown) {
		return 0, nil
	}
	return uint64(h.URLs()), err
}

// SetActive lets leases be given, or none. Puts and reports go on. It is in force and on disk when it
// returns. The errors are those of Control. Any goroutine may call it.
func (l *lendings) SetActive(ctx context.Context, on bool) error {
	return l.mailbox.Load().submit(ctx, func(d *dispatcher) error {
		mark := []byte("1")
		if on {
			mark = nil
		}
		d.remote.inactive.Store(!on)
		d.pending.setMark(marks.Inactive, mark)
		return nil
	})
}

// keyed adds the queues whose keys are not the names of their hosts.
func (l *queueList) keyed(ctx context.Context) error {
	last := ""
	for after := marks.QueueHost; !l.isFull(); {
		names, err := l.store.MarkNames(marks.QueueHost, after, queuesPage)
		if err = errors.Join(err, ctx.Err()); err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			escaped, host, _ := strings.Cut(strings.TrimPrefix(name, marks.QueueHost), "/")
			if escaped == last || l.isFull() {
				continue
			}
			h, err := queues.Of(l.store, host)
			if errors.Is(err, inspect.ErrUnknown) {
				continue
			}
			matches, err := l.matches(&h, l.now)
			if err != nil {
				return err
			}
			if key, err := url.QueryUnescape(escaped); matches && err == nil {
				last = escaped
				l.add(key)
			}
		}
		after = names[len(names)-1]
	}
	return nil
}

// isAlone reports whether a host is in the queue of its name, and no other host is.
func (l *queueList) isAlone(host string) (bool, error) {
	key, err := l.store.Mark(marks.QueueKey + host)
	if err != nil || len(key) > 0 {
		return false, err
	}
	others, err := queues.HostsOf(l.store, host, "", 1)
	return len(others) == 0, err
}

// walkURLs calls f for the URLs that match.
func (v *views) walkURLs(ctx context.Context, q *URLQuery, f func(*storage.Located) error) error {
	only, from := storage.NoHost, storage.Position{}
	if q.Host != "" {
		h, err := queues.Of(v.store, q.Host)
		if errors.Is(err, inspect.ErrUnknown) {
			return nil
		}
		if err != nil {
			return err
		}
		only, from.Host = h.ID, h.ID
	}
	passes := q.filter()
	_, err := v.store.Walk(ctx, from, 0, func(l *storage.Located) error {
		switch {
		case only != storage.NoHost && l.At.Host != only:
			return storage.ErrStop
		case l.Host == nil || !passes(l.URL()):
			return nil
		}
		return f(l)
	})
	return err
}

// matches reports whether a query selects a host.
func (q *QueueQuery) matches(h *storage.Host, now time.Time) (bool, error) {
	if q.IncludeInactive || h.URLs() == h.Completed() {
		return q.IncludeInactive && h.URLs() > 0, nil
	}
	state, err := politeness.DecodeState(h.Politeness)
	return queues.BlockedUntil(&state, now).IsZero(), err
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

// keyOf returns the key of the queue of a host, as it is on disk.
func (i *keyIndex) keyOf(host string) (string, error) {
	if !i.any.Load() {
		return host, nil
	}
	key, err := i.database.Mark(marks.QueueKey + host)
	if err != nil || len(key) == 0 {
		return host, err
	}
	return string(key), nil
}

// Overview is what is said of one of several crawls of a process.
type Overview struct {
	ID    string `json:"id"`
	Open  bool   `json:"open"`            // it is in memory; of others the rest is not known
	State string `json:"state,omitempty"` // as in the status
	Tally
}

// Tally are the numbers of one or several crawls.
type Tally struct {
	URLs     map[string]int `json:"urls,omitempty"` // by state, over all runs
	Hosts    int            `json:"hosts"`          // known; a host counts once in each crawl
	InFlight int            `json:"in_flight"`
	Requests uint64         `json:"requests"` // over all runs
	Bytes    uint64         `json:"bytes"`    // over all runs
}

// Overview returns the overview of an open crawl, without its id. Any goroutine may call it.
func (v *views) Overview() Overview {
	s := v.Status()
	return Overview{Open: true, State: s.State, Tally: Tally{
		URLs: s.URLs, Hosts: s.Hosts, InFlight: s.InFlight, Requests: s.Requests, Bytes: s.Bytes,
	}}
}

// Add adds the numbers of another crawl.
func (t *Tally) Add(more *Tally) {
	for state, n := range more.URLs {
		if t.URLs == nil {
			t.URLs = make(map[string]int)
		}
		t.URLs[state] += n
	}
	t.Hosts += more.Hosts
	t.InFlight += more.InFlight
	t.Requests += more.Requests
	t.Bytes += more.Bytes
}

// never is longer than a crawl waits for anything.
const never = 100 * 365 * 24 * time.Hour

// IsIdle reports whether nothing is under way, no fetcher has a lease, and the crawl's own workers will
// have nothing to fetch. Any goroutine may call it; the errors are those of Drain.
func (c *commands) IsIdle(ctx context.Context) (idle bool, err error) {
	err = c.mailbox.Load().call(ctx, func(d *dispatcher) { idle = d.isIdle() })
	return idle, err
}

// isIdle is IsIdle.
func (pm *permits) isIdle() bool {
	if !pm.isQuiet() || pm.remote.isWanted() {
		return false
	}
	return pm.live.Load().Workers == 0 || pm.plan == nil && pm.f.Finished(pm.o.Now(), never)
}

// Shared returns what other engines of this process may share with this one, for as long as this one
// is open.
func (e *Engine) Shared() *Shared { return e.shared }

// Forget has the other engines of the process forget what this one, whose run has ended, has requested:
// its crawl is deleted, and its fetchers decide everything. Of any other crawl that still counts.
func (e *Engine) Forget() {
	if e.gate == nil || !e.o.IgnoreRobots {
		return
	}
	e.gate.Delete(e.o.Now())
}

// MustReopen reports whether the next process has to open the crawl, because at the end of the run fetchers
// had leases of it, or hosts had holds that other crawls keep too. It is false if there are no other crawls.
// It may be called when Run has returned.
func (e *Engine) MustReopen() bool { return e.gate != nil && e.gate.MustReopen() }
