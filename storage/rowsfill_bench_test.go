package storage

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// The FillPercent with which rows filled in the order of their keys leave leaf pages as full as those of a million URLs in
// random order, 20,000 to a commit, by BenchmarkRowsFill: 0.69 of rows of queued URLs, 0.54 of the queue, and 0.69 of rows
// that got their outcome later. In random order the queue's go on to a half with more URLs: each host's rows are only appended.
const (
	rowsFillQueued  = 0.695
	rowsFillQueue   = 0.56
	rowsFillFetched = 0.70
)

// rowsTransaction is how many rows are filled in at a time.
const rowsTransaction = 200_000

// rowsFill fills plain rows in the order of their keys, because in random order 50 million take an hour. It leaves the pages
// as full as random order does.
type rowsFill struct {
	r    *rowsStore
	g    *benchURLs
	size int
	done bool // all URLs are fetched and none waits
}

func (f *rowsFill) run(b *testing.B) {
	f.r.db.NoSync = true
	hosts := f.byHost()
	for from := 0; from < len(hosts); {
		err := f.r.db.Update(func(tx *bolt.Tx) error {
			for rows := 0; from < len(hosts) && rows < rowsTransaction; from++ {
				rows += len(hosts[from].numbers)
				if err := f.host(tx, &hosts[from]); err != nil {
					return err
				}
			}
			return tx.Bucket(rowsQueue).SetSequence(uint64(f.size))
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	f.g.n = f.size
	f.r.db.NoSync = false
	if err := f.r.db.Sync(); err != nil {
		b.Fatal(err)
	}
}

// hostNumbers are the numbers of a host's URLs, in the order of discovery.
type hostNumbers struct {
	name    string
	numbers []uint32
}

// byHost returns the hosts in the order of their names.
func (f *rowsFill) byHost() []hostNumbers {
	hosts := make([]hostNumbers, f.g.hosts)
	for i := range hosts {
		hosts[i].name = benchHostName(i)
	}
	for n := 1; n <= f.size; n++ {
		h := &hosts[f.g.host(n)]
		h.numbers = append(h.numbers, uint32(n))
	}
	slices.SortFunc(hosts, func(a, b hostNumbers) int { return strings.Compare(a.name, b.name) })
	return hosts
}

// host writes the rows of one host.
func (f *rowsFill) host(tx *bolt.Tx, h *hostNumbers) error {
	urls, queue := tx.Bucket(rowsURL), tx.Bucket(rowsQueue)
	urls.FillPercent, queue.FillPercent = rowsFillQueued, rowsFillQueue
	if f.done {
		urls.FillPercent = rowsFillFetched
	}
	type row struct {
		number uint32
		text   string
	}
	rows := make([]row, 0, len(h.numbers))
	for _, n := range h.numbers {
		rows = append(rows, row{n, f.g.at(int(n)).String()})
	}
	for _, row := range rows {
		if f.done {
			break
		}
		if err := queue.Put(queueKey(h.name, uint64(row.number)), []byte(row.text)); err != nil {
			return err
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.text, b.text) })
	for i, row := range rows {
		value := appendKnown(nil)
		if f.done {
			o := benchOutcome(uint64(i))
			value = appendFetched(nil, value, &o)
		}
		if err := urls.Put([]byte(row.text), value); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkRowsFill compares plain rows of a million URLs that came in random order with those that were filled in the order
// of their keys: how full their leaf pages are, and how fast the cycle is on them.
func BenchmarkRowsFill(b *testing.B) {
	const size = 1_000_000
	for _, way := range []struct {
		name string
		fill func(*testing.B, *rowsStore, *benchURLs)
	}{
		{"random", func(b *testing.B, r *rowsStore, g *benchURLs) { fillRandom(b, r, g, size) }},
		{"ordered", func(b *testing.B, r *rowsStore, g *benchURLs) { (&rowsFill{r: r, g: g, size: size}).run(b) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			r, g := openRows(b, b.TempDir()), &benchURLs{hosts: benchHosts}
			way.fill(b, r, g)
			b.Run("queued", func(b *testing.B) { reportFill(b, r, rowsURL, rowsQueue) })
			b.Run("cycle", func(b *testing.B) { benchCycle(b, g, &rowsCycle{r: r}) })
			if way.name == "random" {
				b.Run("fetched", func(b *testing.B) {
					fetchRows(b, r, g)
					reportFill(b, r, rowsURL)
				})
			}
			r.close(b)
		})
	}
}

func fillRandom(b *testing.B, r *rowsStore, g *benchURLs, size int) {
	r.db.NoSync = true
	var cycle rowsCycle
	for g.n < size {
		cycle.found = cycle.found[:0]
		for range min(benchBatch, size-g.n) {
			cycle.found = append(cycle.found, g.next())
		}
		if err := r.commit(nil, cycle.found); err != nil {
			b.Fatal(err)
		}
	}
	r.db.NoSync = false
	if err := r.db.Sync(); err != nil {
		b.Fatal(err)
	}
}

// fetchRows takes URLs of host after host until none waits.
func fetchRows(b *testing.B, r *rowsStore, g *benchURLs) {
	const step = 1000
	r.db.NoSync = true
	for taken := true; taken; {
		taken = false
		for from := 0; from < g.hosts; from += step {
			cycle := rowsCycle{r: r}
			for host := range step {
				if next, ok := r.next(benchHostName(from + host)); ok {
					next.outcome = benchOutcome(uint64(host))
					cycle.done, taken = append(cycle.done, next), true
				}
			}
			if err := r.commit(cycle.done, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	r.db.NoSync = false
}

// reportFill reports how full the leaf pages of buckets are.
func reportFill(b *testing.B, r *rowsStore, buckets ...[]byte) {
	_ = r.db.View(func(tx *bolt.Tx) error {
		for _, name := range buckets {
			s := tx.Bucket(name).Stats()
			b.ReportMetric(float64(s.LeafInuse)/float64(s.LeafAlloc), string(name)+"-fill")
		}
		return nil
	})
}
