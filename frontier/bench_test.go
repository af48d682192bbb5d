package frontier

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// heapBytes is the memory in use.
func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// asked is the politeness of a host that was asked just before the epoch.
var justFetched, _ = politeness.State{LastEnd: epoch}.AppendBinary(nil)

// plain is a host with n queued URLs of one origin.
func plain(id, n int) storage.Host {
	name := fmt.Sprintf("h%d.test", id)
	return storage.Host{ID: storage.HostID(id), Name: name, Tail: uint32(n), Politeness: justFetched, Queues: []storage.Queue{
		{Origin: weburl.Origin{Scheme: "http", Host: name, Port: 80}, Queued: uint32(n)},
	}}
}

// busy is a frontier with many hosts that wait in the ready heap.
type busy struct {
	f      *Frontier
	record robots.Record
	rules  *robots.Rules
	read   []uint32 // ordinal from which each host's URLs were not read yet
}

func newBusy(b *testing.B, hosts, heads int) *busy {
	o := testOptions()
	o.Heads, o.ActiveHosts, o.ActiveBytes, o.Resolvers, o.Workers = heads, 3*hosts, 1<<40, hosts, 64
	f, err := New(o, NewScope(ModeAny, nil, nil), epoch)
	if err != nil {
		b.Fatal(err)
	}
	w := &busy{f: f, read: make([]uint32, hosts+1)}
	w.record, _ = o.Robots.Next(robots.Record{}, robots.Outcome{URL: "http://h.test/robots.txt", Status: 404}, epoch)
	w.rules = w.record.Rules(o.Tokens...)
	for id := 1; id <= hosts; id++ {
		h := plain(id, 1<<30)
		if err := f.Restore(&h, epoch); err != nil {
			b.Fatal(err)
		}
		f.Next(epoch)
		w.load(b, epoch)
		l, ok := f.NextName(epoch)
		if !ok {
			b.Fatalf("host %d has nothing to resolve: %+v", id, l)
		}
		if err := f.CompleteResolve(l.ID, ResolveReport{End: epoch, TTL: 1e6 * time.Hour, Addresses: []netip.Addr{addressAt(id)}}); err != nil {
			b.Fatal(err)
		}
	}
	return w
}

// load answers what the frontier wants to read.
func (w *busy) load(b *testing.B, now time.Time) {
	for _, want := range w.f.TakeWants() {
		h := plain(int(want.Host), 1<<30)
		max := want.Max
		if len(want.Queues) > 0 {
			max = want.Queues[0].Max
		}
		q := QueueLoad{Record: w.record, Rules: w.rules}
		for range max {
			uri := fmt.Sprintf("/a/path/of/usual/length/%d", w.read[h.ID])
			q.Heads.Queued = append(q.Heads.Queued, storage.Head{Entry: storage.Entry{Ordinal: w.read[h.ID], RequestURI: uri}})
			w.read[h.ID]++
		}
		q.Heads.Next, q.Heads.Tail = w.read[h.ID], h.Tail
		if err := w.f.Loaded(&Load{Host: h, Queues: []QueueLoad{q}, At: now}, now); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNext measures one decision while many hosts wait, each ten
// microseconds after the one before it.
func BenchmarkNext(b *testing.B) {
	for _, hosts := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			w := newBusy(b, hosts, DefaultOptions().Heads)
			f, now := w.f, epoch
			var spent time.Duration
			for b.Loop() {
				at, ok := f.NextWake()
				if !ok {
					b.Fatal("nothing waits")
				}
				if at.After(now) {
					now = at
				}
				start := time.Now()
				l, ok := f.Next(now)
				spent += time.Since(start)
				if !ok || l.Kind != Page {
					b.Fatalf("no page: %v, %+v, %v", ok, l, f.Places())
				}
				now = now.Add(10 * time.Microsecond)
				if err := f.CompletePage(l.ID, PageReport{Report: Report{Sent: true, End: now}, Outcome: storage.Outcome{State: storage.Fetched}}); err != nil {
					b.Fatal(err)
				}
				batch := f.TakeBatch()
				f.Committed(&batch, storage.Result{Touched: []storage.Touched{{Host: l.Host, Tail: 1 << 30, Queued: 1 << 29}}}, now)
				w.load(b, now)
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/decision")
		})
	}
}

// BenchmarkCycle measures all that the frontier does for one page: the lease,
// its completion, the commit and its part of loading.
func BenchmarkCycle(b *testing.B) {
	w := newBusy(b, 10_000, DefaultOptions().Heads)
	now := epoch.Add(time.Second)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(100 * time.Microsecond)
		w.page(b, now)
	}
}

// BenchmarkRestore measures the start of a process: every host the store knows
// becomes known to the frontier. It reports the memory of a dormant host.
func BenchmarkRestore(b *testing.B) {
	const hosts = 100_000
	b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
		var bytes float64
		for b.Loop() {
			before := heapBytes()
			f, err := New(testOptions(), NewScope(ModeAny, nil, nil), epoch)
			if err != nil {
				b.Fatal(err)
			}
			for id := 1; id <= hosts; id++ {
				h := plain(id, 100)
				if err := f.Restore(&h, epoch); err != nil {
					b.Fatal(err)
				}
			}
			bytes = float64(heapBytes()-before) / hosts
			runtime.KeepAlive(f)
		}
		b.ReportMetric(bytes, "B/host")
	})
}

// page asks the host that may be asked, and is told that the outcome is on disk.
func (w *busy) page(b *testing.B, now time.Time) {
	l, ok := w.f.Next(now)
	if !ok || l.Kind != Page {
		b.Fatalf("no page: %v, %+v, %v", ok, l, w.f.Places())
	}
	if err := w.f.CompletePage(l.ID, PageReport{Report: Report{Sent: true, End: now}, Outcome: storage.Outcome{State: storage.Fetched}}); err != nil {
		b.Fatal(err)
	}
	batch := w.f.TakeBatch()
	w.f.Committed(&batch, storage.Result{Touched: []storage.Touched{{Host: l.Host, Tail: 1 << 30, Queued: 1 << 29}}}, now)
	w.load(b, now)
}

// BenchmarkActiveHost reports the memory of a host whose queue is in memory, with
// as many URLs as the default says, without the rules of its robots.txt, after a page of each was fetched.
func BenchmarkActiveHost(b *testing.B) {
	const hosts = 5_000
	var bytes float64
	for b.Loop() {
		before := heapBytes()
		w := newBusy(b, hosts, DefaultOptions().Heads)
		for range hosts {
			w.page(b, epoch.Add(time.Hour))
		}
		bytes = float64(heapBytes()-before) / hosts
		runtime.KeepAlive(w)
	}
	b.ReportMetric(bytes, "B/host")
}
