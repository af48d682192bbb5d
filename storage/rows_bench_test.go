package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// rowsStore is what the store is compared with: bbolt with a row for each URL and another one for
// each queued URL. It does less: it has no data of hosts, no counters and no due times.
type rowsStore struct {
	db   *bolt.DB
	path string
}

var (
	rowsURL   = []byte("url")   // text of a URL: what is known of it, and its outcome
	rowsQueue = []byte("queue") // host, 0, number in the order of discovery: text of a URL that waits
)

const rowsFile = "rows.db"

func openRows(b *testing.B, dir string) *rowsStore {
	path := filepath.Join(dir, rowsFile)
	db := must.Get(bolt.Open(path, 0o600, &bolt.Options{FreelistType: bolt.FreelistMapType,
		InitialMmapSize: defaultMapBytes}))(b)
	must.Do(b, db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{rowsURL, rowsQueue} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	}))
	return &rowsStore{db: db, path: path}
}

func (r *rowsStore) close(b *testing.B) {
	must.Do(b, r.db.Close())
}

// knownSize is the size of a queued URL's value.
const knownSize = 16

// appendKnown appends the value of a queued URL: state, depth, priority, the page it was found on
// and the time. The outcome follows it.
func appendKnown(b []byte) []byte {
	b = append(b, byte(Queued), 0, 3, 0)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, 77)
	return binary.BigEndian.AppendUint32(b, Seconds(someTime))
}

// appendFetched appends the value of a URL with its outcome, in as many bytes as the store's.
func appendFetched(b, known []byte, o *Outcome) []byte {
	b = AppendOutcome(append(b, known[:knownSize]...), o)
	b[0] = byte(o.State)
	return b
}

func queueKey(host string, number uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(host), 0), number)
}

// rowsNext is a URL taken from the queue.
type rowsNext struct {
	key     []byte // in the queue
	url     []byte
	outcome Outcome
}

// next reads the first URL of a host.
func (r *rowsStore) next(host string) (n rowsNext, ok bool) {
	_ = r.db.View(func(tx *bolt.Tx) error {
		prefix := append([]byte(host), 0)
		key, url := tx.Bucket(rowsQueue).Cursor().Seek(prefix)
		n, ok = rowsNext{key: slices.Clone(key), url: slices.Clone(url)}, bytes.HasPrefix(key, prefix)
		return nil
	})
	return n, ok
}

// commit writes outcomes and discoveries, new and known ones, durable and in one transaction. It
// sorts the discoveries in the order of the rows, which is faster.
func (r *rowsStore) commit(done []rowsNext, found []weburl.URL) error {
	return r.db.Update(func(tx *bolt.Tx) error {
		urls, queue := tx.Bucket(rowsURL), tx.Bucket(rowsQueue)
		for i := range done {
			d := &done[i]
			if err := urls.Put(d.url, appendFetched(nil, urls.Get(d.url), &d.outcome)); err != nil {
				return err
			}
			if err := queue.Delete(d.key); err != nil {
				return err
			}
		}
		slices.SortFunc(found, func(a, b weburl.URL) int { return strings.Compare(a.String(), b.String()) })
		for _, u := range found {
			if err := addRow(urls, queue, u); err != nil {
				return err
			}
		}
		return nil
	})
}

func addRow(urls, queue *bolt.Bucket, u weburl.URL) error {
	text := []byte(u.String())
	if urls.Get(text) != nil {
		return nil
	}
	if err := urls.Put(text, appendKnown(nil)); err != nil {
		return err
	}
	number, err := queue.NextSequence()
	if err != nil {
		return err
	}
	return queue.Put(queueKey(u.Origin().Host, number), text)
}

// hosts counts the hosts that have work, which a process has to know before its first fetch.
func (r *rowsStore) hosts() (n int) {
	_ = r.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(rowsQueue).Cursor()
		for key, _ := c.First(); key != nil; n++ {
			end := bytes.IndexByte(key, 0)
			key, _ = c.Seek(append(slices.Clone(key[:end]), 1))
		}
		return nil
	})
	return n
}

// states counts the URLs of each state.
func (r *rowsStore) states() (counts [numStates]int) {
	_ = r.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(rowsURL).Cursor()
		for key, value := c.First(); key != nil; key, value = c.Next() {
			counts[value[0]]++
		}
		return nil
	})
	return counts
}

// The FillPercent with which rows filled in the order of their keys leave leaf pages as full as
// those of a million URLs in random order, 20,000 to a commit, by BenchmarkRowsFill: 0.69 for rows
// of queued URLs, 0.54 for the queue, and 0.69 for rows that got their outcome later. In random
// order the queue's pages fall to a half with more URLs: each host's rows are only appended.
const (
	rowsFillQueued  = 0.695
	rowsFillQueue   = 0.56
	rowsFillFetched = 0.70
)

// rowsTransaction is the number of rows in a transaction.
const rowsTransaction = 200_000

// rowsFill fills plain rows in the order of their keys, because in random order 50 million take an
// hour. It leaves the pages as full as random order does.
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
		must.Do(b, f.r.db.Update(func(tx *bolt.Tx) error {
			for rows := 0; from < len(hosts) && rows < rowsTransaction; from++ {
				rows += len(hosts[from].numbers)
				if err := f.host(tx, &hosts[from]); err != nil {
					return err
				}
			}
			return tx.Bucket(rowsQueue).SetSequence(uint64(f.size))
		}))
	}
	f.g.n = f.size
	f.r.db.NoSync = false
	must.Do(b, f.r.db.Sync())
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

// BenchmarkRowsFill compares plain rows of a million URLs in random order with rows that were
// filled in the order of their keys: how full their leaf pages are, and the rate of the cycle.
func BenchmarkRowsFill(b *testing.B) {
	const size = 1_000_000
	for _, keys := range []struct {
		name string
		fill func(*testing.B, *rowsStore, *benchURLs)
	}{
		{"random", func(b *testing.B, r *rowsStore, g *benchURLs) { fillRandom(b, r, g, size) }},
		{"ordered", func(b *testing.B, r *rowsStore, g *benchURLs) { (&rowsFill{r: r, g: g, size: size}).run(b) }},
	} {
		b.Run(keys.name, func(b *testing.B) {
			r, g := openRows(b, b.TempDir()), &benchURLs{hosts: benchHosts}
			keys.fill(b, r, g)
			b.Run("queued", func(b *testing.B) { reportFill(b, r, rowsURL, rowsQueue) })
			b.Run("cycle", func(b *testing.B) { benchCycle(b, g, &rowsCycle{r: r}) })
			if keys.name == "random" {
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
		must.Do(b, r.commit(nil, cycle.found))
	}
	r.db.NoSync = false
	must.Do(b, r.db.Sync())
}

// fetchRows takes URLs of host after host until none is queued.
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
			must.Do(b, r.commit(cycle.done, nil))
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
