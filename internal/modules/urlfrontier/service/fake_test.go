package service

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// fakeCrawls are crawls in memory.
type fakeCrawls struct {
	mu     sync.Mutex
	crawls map[string]*fakeCrawl
	delay  time.Duration
	uses   int // that are not released
	batch  func(n int)
}

func newFakeCrawls() *fakeCrawls {
	return &fakeCrawls{crawls: make(map[string]*fakeCrawl), delay: time.Second}
}

// Use implements Crawls.
func (f *fakeCrawls) Use(_ context.Context, id string, create bool) (Crawl, func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(id) > 128 {
		return nil, nil, ErrCrawlID
	}
	c := f.crawls[id]
	if c == nil && !create {
		return nil, nil, fmt.Errorf("crawl %s: %w", id, ErrNoCrawl)
	}
	if c == nil {
		c = &fakeCrawl{
			of: f, urls: map[weburl.URL]*fakeURL{}, byHost: map[string][]*fakeURL{}, queues: map[string]*fakeQueue{},
			keys: map[string]string{}, active: true,
		}
		f.crawls[id] = c
	}
	f.uses++
	return c, sync.OnceFunc(func() { f.mu.Lock(); f.uses--; f.mu.Unlock() }), nil
}

// IDs implements Crawls.
func (f *fakeCrawls) IDs(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.crawls)), nil
}

// Delete implements Crawls.
func (f *fakeCrawls) Delete(_ context.Context, id string) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.crawls[id]
	if c == nil {
		return 0, ErrNoCrawl
	}
	delete(f.crawls, id)
	return uint64(len(c.urls)), nil
}

// fakeURL is a URL of a fakeCrawl.
type fakeURL struct {
	u            weburl.URL
	due, created time.Time
	completed    bool
	until        time.Time // it is leased until then
	metadata     storage.Metadata
}

// fakeQueue is a host of a fakeCrawl.
type fakeQueue struct {
	crawl.QueueSettings
	last time.Time // when URLs were handed out
}

// fakeCrawl is a crawl in memory with the semantics of the reference implementation.
type fakeCrawl struct {
	of *fakeCrawls

	mu       sync.Mutex
	urls     map[weburl.URL]*fakeURL
	byHost   map[string][]*fakeURL // deleted ones too
	queues   map[string]*fakeQueue
	keys     map[string]string // of hosts, if not their names
	active   bool
	requests []remote.Request
	back     int
	failing  error // of Put
	gate     chan struct{}
}

// Put implements Crawl.
func (f *fakeCrawl) Put(ctx context.Context, puts []crawl.Put) ([]crawl.PutResult, error) {
	if f.of.batch != nil {
		f.of.batch(len(puts))
	}
	f.mu.Lock()
	gate := f.gate
	f.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failing != nil {
		return nil, f.failing
	}
	now := time.Now()
	results := make([]crawl.PutResult, len(puts))
	for i, p := range puts {
		x := f.urls[p.URL]
		if p.Key != "" {
			f.keys[p.URL.Host()] = p.Key
		}
		switch {
		case strings.HasPrefix(p.URL.RequestURI(), "/outside"):
			results[i] = crawl.PutOutside
			continue
		case strings.HasPrefix(p.URL.RequestURI(), "/optedout"):
			results[i] = crawl.PutOptedOut
			continue
		case x != nil && !p.Known:
			results[i] = crawl.PutKnown
			continue
		case x == nil:
			x = &fakeURL{u: p.URL, created: now, due: now}
			f.urls[p.URL] = x
			f.byHost[p.URL.Host()] = append(f.byHost[p.URL.Host()], x)
			if f.queues[p.URL.Host()] == nil {
				f.queues[p.URL.Host()] = &fakeQueue{}
			}
		}
		x.metadata = p.Metadata
		if p.Known {
			x.due, x.completed, x.until = p.Due, p.Due.IsZero(), time.Time{}
		}
	}
	return results, nil
}

// sorted returns the URLs of a host by the date on which they are due.
func (f *fakeCrawl) sorted(host string) []*fakeURL {
	list := slices.Clone(f.byHost[host])
	list = slices.DeleteFunc(list, func(x *fakeURL) bool { return f.urls[x.u] != x })
	slices.SortFunc(list, func(a, b *fakeURL) int {
		return cmp.Or(a.due.Compare(b.due), strings.Compare(a.u.String(), b.u.String()))
	})
	return list
}

func (f *fakeCrawl) stats(host string, now time.Time) (q crawl.QueueStats) {
	for _, x := range f.sorted(host) {
		if q.Queues = 1; x.completed {
			q.Completed++
			continue
		}
		q.Queued++
		if q.ActiveQueues = 1; x.until.After(now) {
			q.InProcess++
		}
	}
	return q
}

// Lease implements Crawl.
func (f *fakeCrawl) Lease(_ context.Context, r remote.Request) ([]remote.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r)
	now := time.Now()
	if !f.active {
		return nil, nil
	}
	if r.Host != "" && f.queues[r.Host] == nil {
		return nil, fmt.Errorf("host %s: %w", r.Host, inspect.ErrUnknown)
	}
	var leases []remote.Lease
	hosts := 0
	for _, host := range slices.Sorted(maps.Keys(f.queues)) {
		q := f.queues[host]
		s := f.stats(host, now)
		if r.Host != "" && r.Host != host || r.Hosts > 0 && hosts >= r.Hosts || q.BlockedUntil.After(now) ||
			q.Limit > 0 && s.Completed >= q.Limit || int(s.InProcess) >= r.PerHost {
			continue
		}
		delay := f.of.delay
		if q.Delay != nil {
			delay = *q.Delay
		}
		if !q.last.IsZero() && q.last.Add(delay).After(now) {
			continue
		}
		n := int(s.InProcess)
		before := len(leases)
		for _, x := range f.sorted(host) {
			if x.completed || x.due.After(now) || x.until.After(now) || n >= r.PerHost || len(leases) >= r.N {
				continue
			}
			n++
			x.until, q.last = now.Add(r.Visibility), now
			leases = append(leases, remote.Lease{
				ID: remote.ID(x.u.String()), URL: x.u, Host: host, Key: f.key(host), Metadata: x.metadata,
				Given: now, Deadline: x.until,
			})
		}
		if len(leases) > before {
			hosts++
		}
	}
	return leases, nil
}

// Report implements Crawl.
func (f *fakeCrawl) Report(_ context.Context, reports []remote.Report) ([]remote.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range reports {
		for u, x := range f.urls {
			if u.String() == string(r.ID) && r.NotDone {
				x.until = time.Time{}
				f.back++
			}
		}
	}
	return make([]remote.Result, len(reports)), nil
}

// Delete implements Crawl.
func (f *fakeCrawl) Delete(_ context.Context, d crawl.Deletion) (n uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d.Host != "" && f.queues[d.Host] == nil {
		return 0, inspect.ErrUnknown
	}
	for u, x := range f.urls {
		if (d.Host == "" || u.Host() == d.Host) && (d.Before.IsZero() || x.created.Before(d.Before)) {
			delete(f.urls, u)
			n++
		}
	}
	return n, nil
}

// SetQueue implements Crawl.
func (f *fakeCrawl) SetQueue(_ context.Context, host string, change func(*crawl.QueueSettings)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[host]
	if q == nil {
		return inspect.ErrUnknown
	}
	change(&q.QueueSettings)
	return nil
}

// SetDefaultDelay implements Crawls.
func (f *fakeCrawls) SetDefaultDelay(_ context.Context, d time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay = d
	return nil
}

// SetActive implements Crawl.
func (f *fakeCrawl) SetActive(_ context.Context, on bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active = on
	return nil
}

// Active implements Crawl.
func (f *fakeCrawl) Active() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.active
}

// QueueStats implements Crawl.
func (f *fakeCrawl) QueueStats(_ context.Context, host string) (all crawl.QueueStats, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.queues {
		if host == "" || host == name {
			q := f.stats(name, time.Now())
			all.Queued, all.InProcess, all.Completed = all.Queued+q.Queued, all.InProcess+q.InProcess,
				all.Completed+q.Completed
			all.Queues, all.ActiveQueues = all.Queues+q.Queues, all.ActiveQueues+q.ActiveQueues
		}
	}
	return all, nil
}

// ListQueues implements Crawl.
func (f *fakeCrawl) ListQueues(_ context.Context, q crawl.QueueQuery) (names []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, listed := time.Now(), map[string]bool{}
	for _, host := range slices.Sorted(maps.Keys(f.queues)) {
		s, name := f.stats(host, now), f.key(host)
		active := s.ActiveQueues > 0 && !f.queues[host].BlockedUntil.After(now)
		if !listed[name] && s.Queues > 0 && (q.IncludeInactive || active) {
			listed[name] = true
			names = append(names, name)
		}
	}
	names = names[min(q.Start, len(names)):]
	return names[:min(q.Size, len(names))], nil
}

// key is the key of the queue of a host.
func (f *fakeCrawl) key(host string) string { return cmp.Or(f.keys[host], host) }

// HostsOfQueue implements Crawl.
func (f *fakeCrawl) HostsOfQueue(key, after string, most int) (hosts []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, host := range slices.Sorted(maps.Keys(f.keys)) {
		if f.keys[host] == key && host != key && host > after && len(hosts) < most {
			hosts = append(hosts, host)
		}
	}
	return hosts, nil
}

// URLStatus implements Crawl.
func (f *fakeCrawl) URLStatus(_ context.Context, u weburl.URL) (crawl.URLStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.urls[u]
	if x == nil {
		return crawl.URLStatus{}, inspect.ErrUnknown
	}
	return crawl.URLStatus{
		Key: f.key(u.Host()), Completed: x.completed, Due: x.due, Created: x.created, Metadata: x.metadata,
	}, nil
}

// matching returns the URLs of a query, whatever its page.
func (f *fakeCrawl) matching(q crawl.URLQuery) (list []weburl.URL) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for u := range f.urls {
		text, filter := u.String(), q.Filter
		if q.IgnoreCase {
			text, filter = strings.ToLower(text), strings.ToLower(filter)
		}
		if (q.Host == "" || u.Host() == q.Host) && strings.Contains(text, filter) {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b weburl.URL) int { return strings.Compare(a.String(), b.String()) })
	return list
}

// ListURLs implements Crawl.
func (f *fakeCrawl) ListURLs(ctx context.Context, q crawl.URLQuery,
	yield func(weburl.URL, crawl.URLStatus) error) error {
	list := f.matching(q)
	list = list[min(q.Start, len(list)):]
	if q.Size > 0 {
		list = list[:min(q.Size, len(list))]
	}
	for _, u := range list {
		status, err := f.URLStatus(ctx, u)
		if err == nil {
			err = yield(u, status)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CountURLs implements Crawl.
func (f *fakeCrawl) CountURLs(_ context.Context, q crawl.URLQuery) (uint64, error) {
	return uint64(len(f.matching(q))), nil
}

// number makes a text of its own for each n.
func number(prefix string, n int) string { return prefix + strconv.Itoa(n) }
