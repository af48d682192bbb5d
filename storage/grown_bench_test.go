package storage

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// BenchmarkGrown measures a store of many URLs over 10,000 hosts: opening it (and reading one
// queue's head), the walk over all hosts, the reading of heads, and the cycle of a crawl. For
// comparison it does so with plain rows: opening them, finding the hosts that have work, counting
// states, and the same cycle.
func BenchmarkGrown(b *testing.B) {
	for _, size := range benchSizes(b) {
		b.Run(fmt.Sprintf("hosts=%d/urls=%d", benchHosts, size), func(b *testing.B) {
			dir := grownStore(b, size)
			b.Run("open", func(b *testing.B) { benchReopen(b, dir) })
			b.Run("walk", func(b *testing.B) { benchWalk(b, dir) })
			b.Run("heads", func(b *testing.B) { benchHeads(b, dir) })
			b.Run("cycle", func(b *testing.B) {
				s := benchOpen(b, changeable(b, dir, FileName), Options{})
				savePoint(b, benchCycle(b, &benchURLs{hosts: benchHosts, n: size},
					&storeCycle{s: s, cursors: make([]uint32, benchHosts+1)}))
				benchClose(b, s)
			})
		})
		b.Run(fmt.Sprintf("rows/hosts=%d/urls=%d", benchHosts, size), func(b *testing.B) { benchGrownRows(b, size) })
	}
}

func benchReopen(b *testing.B, dir string) {
	for b.Loop() {
		s := benchOpen(b, dir, Options{})
		must.Get(s.Heads(HeadsRequest{Host: 1, Queued: 16, Due: 16, Now: someTime}))(b)
		benchClose(b, s)
	}
}

func benchWalk(b *testing.B, dir string) {
	s := benchOpen(b, dir, Options{})
	defer benchClose(b, s)
	hosts := 0
	for b.Loop() {
		must.Do(b, s.Hosts(func(*Host) error { hosts++; return nil }))
	}
	b.ReportMetric(float64(hosts)/b.Elapsed().Seconds(), "hosts/s")
}

func benchHeads(b *testing.B, dir string) {
	s := benchOpen(b, dir, Options{})
	defer benchClose(b, s)
	for n := 0; b.Loop(); n++ {
		h, err := s.Heads(HeadsRequest{Host: HostID(n%benchHosts + 1), Queued: 16, Due: 16, Now: someTime})
		must.True(b, err == nil && len(h.Queued) != 0, "%v %v", len(h.Queued), err)
	}
}

// grownRows returns the directory of plain rows with a number of queued URLs.
func grownRows(b *testing.B, size int) string {
	return keptStore(b, fmt.Sprintf("rows-%d-%d", benchHosts, size), func(dir string) {
		r := openRows(b, dir)
		(&rowsFill{r: r, g: &benchURLs{hosts: benchHosts}, size: size}).run(b)
		r.close(b)
	})
}

func benchGrownRows(b *testing.B, size int) {
	dir := grownRows(b, size)
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			r := openRows(b, dir)
			_, ok := r.next(benchHostName(0))
			must.True(b, ok, "nothing waits")
			r.close(b)
		}
	})
	b.Run("hosts", func(b *testing.B) {
		r := openRows(b, dir)
		defer r.close(b)
		for b.Loop() {
			n := r.hosts()
			must.True(b, n == benchHosts, "%d hosts have work", n)
		}
	})
	b.Run("scan", func(b *testing.B) {
		r := openRows(b, dir)
		defer r.close(b)
		for b.Loop() {
			n := r.states()[Queued]
			must.True(b, n == size, "%d URLs wait, want %d", n, size)
		}
	})
	b.Run("cycle", func(b *testing.B) {
		r := openRows(b, changeable(b, dir, rowsFile))
		savePoint(b, benchCycle(b, &benchURLs{hosts: benchHosts, n: size}, &rowsCycle{r: r}))
		r.close(b)
	})
}

// BenchmarkFetched completes every URL of a store, host after host in turn, one or sixteen each,
// and reports what a fetched URL takes, with ETag and Last-Modified. For comparison it fills plain
// rows of fetched URLs in the order of their keys: only their size counts.
func BenchmarkFetched(b *testing.B) {
	for _, size := range benchSizes(b) {
		for _, each := range []int{1, 16} {
			b.Run(fmt.Sprintf("each=%d/hosts=%d/urls=%d", each, benchHosts, size), func(b *testing.B) {
				for range b.N {
					s := benchOpen(b, changeable(b, grownStore(b, size), FileName), Options{})
					fetchAll(b, s, size, each)
					benchClose(b, s)
				}
			})
		}
		b.Run(fmt.Sprintf("rows/hosts=%d/urls=%d", benchHosts, size), func(b *testing.B) {
			for range b.N {
				r := openRows(b, b.TempDir())
				(&rowsFill{r: r, g: &benchURLs{hosts: benchHosts}, size: size, done: true}).run(b)
				reportSize(b, r.path, size)
				r.close(b)
			}
		})
	}
}

func fetchAll(b *testing.B, s *Store, size, each int) {
	var hosts []Host
	must.Do(b, s.Hosts(func(h *Host) error { hosts = append(hosts, *h); return nil }))
	slices.SortFunc(hosts, func(a, b Host) int { return cmp.Compare(b.Tail, a.Tail) })
	cycle := &storeCycle{s: s, cursors: make([]uint32, len(hosts)+1)}
	all := newCommits()
	for done, h := 0, 0; done < size; {
		if h == len(hosts) || cycle.cursors[hosts[h].ID] == hosts[h].Tail {
			h = 0 // the rest, of fewer URLs, has none left
		}
		done += cycle.complete(b, hosts[h].ID, each)
		h++
		if cycle.full() || done == size {
			all.time(b, cycle.commit)
		}
	}
	n := s.Counters().Of(Fetched)
	must.True(b, n == uint64(size), "%d URLs are fetched, want %d", n, size)
	all.report(b, size, "urls")
	reportSize(b, s.Path(), size)
}

// storeCycle is a Store for benchCycle.
type storeCycle struct {
	s         *Store
	batch     Batch
	batchSize BatchSizer
	cursors   []uint32 // of each host
}

func (c *storeCycle) path() string { return c.s.Path() }

func (c *storeCycle) take(b *testing.B, host int) { c.complete(b, HostID(host+1), 1) }

func (c *storeCycle) find(u weburl.URL) { c.batch.Found = append(c.batch.Found, benchFound(c.s, u)) }

// complete reads the next URLs of a host and adds their outcomes to the batch. It returns their
// number.
func (c *storeCycle) complete(b *testing.B, host HostID, most int) int {
	h, err := c.s.Heads(HeadsRequest{Host: host, From: c.cursors[host], Queued: most, Due: 1, Now: someTime})
	must.True(b, err == nil && len(h.Queued) != 0, "%v %v", len(h.Queued), err)
	c.cursors[host] = h.Next
	for _, head := range h.Queued {
		c.batch.Done = append(c.batch.Done, Done{Host: host, Ordinal: head.Ordinal,
			Outcome: benchOutcome(uint64(head.Ordinal))})
	}
	requests := len(h.Queued)
	c.batch.Hosts = append(c.batch.Hosts, HostUpdate{
		Host: host, Requests: uint32(requests), Bytes: uint64(requests) * 20_000, Politeness: make([]byte,
			40), Cursors: []Cursor{{0, h.Next}},
	})
	return requests
}

// items counts as the crawl does.
func (c *storeCycle) items() int { return len(c.batch.Found) + len(c.batch.Done) + len(c.batch.Hosts) }

func (c *storeCycle) full() bool { return c.items() >= c.batchSize.Items() }

func (c *storeCycle) commit() error {
	started := time.Now()
	result, err := c.s.Commit(&c.batch)
	c.batchSize.Committed(c.items(), result.Changed, time.Since(started))
	c.batch.Found, c.batch.Done, c.batch.Hosts = c.batch.Found[:0], c.batch.Done[:0], c.batch.Hosts[:0]
	return err
}

// rowsCycle are plain rows for benchCycle.
type rowsCycle struct {
	r     *rowsStore
	done  []rowsNext
	found []weburl.URL
}

func (c *rowsCycle) path() string { return c.r.path }

func (c *rowsCycle) find(u weburl.URL) { c.found = append(c.found, u) }

func (c *rowsCycle) full() bool { return len(c.found)+2*len(c.done) >= 20_000 }

func (c *rowsCycle) take(b *testing.B, host int) {
	next, ok := c.r.next(benchHostName(host))
	if !ok {
		b.Fatalf("%s has nothing that waits", benchHostName(host))
	}
	next.outcome = benchOutcome(uint64(host))
	c.done = append(c.done, next)
}

func (c *rowsCycle) commit() error {
	err := c.r.commit(c.done, c.found)
	c.done, c.found = c.done[:0], c.found[:0]
	return err
}

// BenchmarkRecrawl takes the recrawl of a host that is overdue longest and plans the next one, with
// a number of planned URLs in the store. It should cost the same for all sizes.
func BenchmarkRecrawl(b *testing.B) {
	const hosts = 100
	for _, urls := range []int{10_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("hosts=%d/urls=%d", hosts, urls), func(b *testing.B) {
			if urls > 1_000_000 && testing.Short() {
				b.Skip("takes minutes to fill the store")
			}
			s := must.Get(Open(b.TempDir(), Options{NoSync: true}))(b)
			defer s.Close()
			fillRecrawls(b, s, hosts, urls/hosts)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				host := HostID(n%hosts + 1)
				h, err := s.Heads(HeadsRequest{Host: host, Recrawls: 1, From: uint32(urls / hosts),
					Now: someTime.AddDate(1, 0, 0)})
				must.True(b, err == nil && len(h.Recrawls) == 1, "%v %v", len(h.Recrawls), err)
				u := &h.Recrawls[0]
				u.Last.Due = u.Last.Due.AddDate(0, 1, 0)
				must.Get(s.Commit(&Batch{Done: []Done{{Host: host, Ordinal: u.Ordinal,
					Outcome: u.Last}}}))(b)
			}
		})
	}
}

// fillRecrawls makes hosts with planned URLs.
func fillRecrawls(b *testing.B, s *Store, hosts, urls int) {
	for host := range hosts {
		for from := 0; from < urls; from += 10_000 {
			var batch Batch
			for n := from; n < min(from+10_000, urls); n++ {
				u := parse(b, fmt.Sprintf("http://h%d.test/some/page/%d", host, n))
				batch.Found = append(batch.Found, Found{URL: u, Fingerprint: s.Fingerprint(u), At: someTime})
				due := someTime.Add(time.Duration(n*7919%urls) * time.Minute)
				batch.Done = append(batch.Done, Done{Host: HostID(host + 1), Ordinal: uint32(n), Outcome: Outcome{
					State: Fetched, Status: 200, At: someTime, Bytes: 20_000, Digest: uint64(n) + 1, Due: due,
					History: [8]byte{1}, Simhash: 1,
				}})
			}
			must.Get(s.Commit(&batch))(b)
		}
	}
}
