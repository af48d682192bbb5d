package frontier

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
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

// justFetched is the politeness of a host that was fetched from just before the epoch.
var justFetched, _ = politeness.State{LastEnd: epoch}.AppendBinary(nil)

// plain is a host with n queued URLs of one origin.
func plain(id, n int) storage.Host {
	name := fmt.Sprintf("h%d.test", id)
	return storage.Host{ID: storage.HostID(id), Name: name, Tail: uint32(n), Politeness: justFetched,
		Queues: []storage.Queue{
			{Origin: weburl.Origin{Scheme: "http", Host: name, Port: 80}, Backlog: storage.Backlog{Queued: uint32(n)}},
		}}
}

// busy is a frontier with many hosts that wait in the ready heap.
type busy struct {
	f      *Frontier
	record robots.Record
	rules  *robots.Rules
	read   []uint32 // ordinal from which each host's URLs were not read yet
}

func newBusy(b *testing.B, hosts, heads int, change ...func(*Options)) *busy {
	o := testOptions()
	for _, c := range change {
		c(&o)
	}
	o.Heads, o.ActiveHosts, o.ActiveBytes, o.Resolvers, o.Workers = heads, 3*hosts, 1<<40, hosts, 64
	f := must.Get(New(o, NewScope(ModeAny, nil, nil), epoch))(b)
	w := &busy{f: f, read: make([]uint32, hosts+1)}
	w.record, _ = o.Robots.Next(robots.Record{}, robots.Outcome{URL: "http://h.test/robots.txt", Status: 404}, epoch)
	w.rules = w.record.Rules(o.Tokens...)
	for id := 1; id <= hosts; id++ {
		h := plain(id, 1<<30)
		must.Do(b, f.Restore(&h, epoch))
		f.Next(epoch)
		w.load(b, epoch)
		l, ok := f.NextName(epoch)
		must.True(b, ok, "host %d has nothing to resolve: %+v", id, l)
		must.Do(b, f.CompleteResolve(l.ID, ResolveReport{End: epoch, TTL: 1e6 * time.Hour,
			Addresses: []netip.Addr{addressAt(id)}}))
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
			q.Heads.Queued = append(q.Heads.Queued,
				storage.Head{Entry: storage.Entry{Ordinal: w.read[h.ID], RequestURI: uri}})
			w.read[h.ID]++
		}
		q.Heads.Next, q.Heads.Tail = w.read[h.ID], h.Tail
		must.Do(b, w.f.Loaded(&Load{Host: h, Queues: []QueueLoad{q}, At: now}, now))
	}
}

// grouped puts hosts into a hundred groups by name, and sets hours in a time zone that always allow
// a request.
func grouped(o *Options) {
	for i := range 100 {
		o.Groups = append(o.Groups, Group{Name: fmt.Sprint(i), Limit: politeness.LimitOptions{InFlight: 1000}})
	}
	for i := range 1_000_000 {
		g := &o.Groups[i%100]
		g.Hosts = append(g.Hosts, fmt.Sprintf("h%d.test", i))
	}
	o.Politeness.Hours, _ = politeness.NewHours("Europe/Berlin", []string{"12:00-18:00", "18:00-12:00"}, "")
}

// BenchmarkNext measures one decision while many hosts wait, each ten microseconds after the one
// before it. On a busy machine the median says more than the mean, and the 99th percentile has what other programs do.
func BenchmarkNext(b *testing.B) {
	for _, c := range []struct {
		hosts  int
		change func(*Options)
		name   string
	}{
		{10_000, func(*Options) {}, ""}, {1_000_000, func(*Options) {}, ""}, {10_000, grouped, ",groups,hours"},
	} {
		b.Run(fmt.Sprintf("hosts=%d%s", c.hosts, c.name), func(b *testing.B) {
			w := newBusy(b, c.hosts, DefaultOptions().Heads, c.change)
			f, now := w.f, epoch
			var durations []time.Duration
			for b.Loop() {
				at, ok := f.NextWake()
				must.True(b, ok, "nothing waits")
				if at.After(now) {
					now = at
				}
				start := time.Now()
				l, ok := f.Next(now)
				durations = append(durations, time.Since(start))
				if !ok || l.Kind != Page {
					b.Fatalf("no page: %v, %+v, %v", ok, l, f.hostStates())
				}
				now = now.Add(10 * time.Microsecond)
				must.Do(b, f.CompletePage(l.ID, PageReport{RequestEnd: RequestEnd{Report: Report{Sent: true, End: now}},
					Outcome: storage.Outcome{State: storage.Fetched}}))
				batch := f.TakeBatch()
				f.Committed(&batch, storage.Result{Hosts: []storage.HostChange{{Host: l.Host, Tail: 1 << 30,
					Backlog: storage.Backlog{Queued: 1 << 29}}}}, now)
				w.load(b, now)
			}
			var sum time.Duration
			for _, d := range durations {
				sum += d
			}
			slices.Sort(durations)
			b.ReportMetric(float64(sum.Nanoseconds())/float64(len(durations)), "ns/decision")
			b.ReportMetric(float64(durations[len(durations)/2].Nanoseconds()), "median-ns/decision")
			b.ReportMetric(float64(durations[len(durations)*99/100].Nanoseconds()), "p99-ns/decision")
		})
	}
}

// BenchmarkCycle measures all that the frontier does for one page: the lease, its completion, the
// commit and its part of loading.
func BenchmarkCycle(b *testing.B) {
	w := newBusy(b, 10_000, DefaultOptions().Heads)
	now := epoch.Add(time.Second)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(100 * time.Microsecond)
		w.page(b, now)
	}
}

// BenchmarkRestore measures the start of a process: every host the store knows becomes known to the
// frontier. It reports the memory of a dormant host.
func BenchmarkRestore(b *testing.B) {
	const hosts = 100_000
	b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
		var bytes float64
		for b.Loop() {
			before := heapBytes()
			f := must.Get(New(testOptions(), NewScope(ModeAny, nil, nil), epoch))(b)
			for id := 1; id <= hosts; id++ {
				h := plain(id, 100)
				must.Do(b, f.Restore(&h, epoch))
			}
			bytes = float64(heapBytes()-before) / hosts
			runtime.KeepAlive(f)
		}
		b.ReportMetric(bytes, "B/host")
	})
}

// page fetches from the host that is due and commits the outcome.
func (w *busy) page(b *testing.B, now time.Time) {
	l, ok := w.f.Next(now)
	if !ok || l.Kind != Page {
		b.Fatalf("no page: %v, %+v, %v", ok, l, w.f.hostStates())
	}
	must.Do(b, w.f.CompletePage(l.ID, PageReport{RequestEnd: RequestEnd{Report: Report{Sent: true, End: now}},
		Outcome: storage.Outcome{State: storage.Fetched}}))
	batch := w.f.TakeBatch()
	left := storage.Backlog{Queued: 1 << 29}
	w.f.Committed(&batch, storage.Result{Hosts: []storage.HostChange{{Host: l.Host, Tail: 1 << 30, Backlog: left}}},
		now)
	w.load(b, now)
}

// BenchmarkActiveHost reports the memory of a host whose queue is in memory, with as many URLs as
// the default says, without the rules of its robots.txt, after one page of each host.
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

// BenchmarkRecrawl leases the next recrawl, loads what that needs from a real store, plans the page
// again and commits that. The cost must not depend on the number of due URLs.
func BenchmarkRecrawl(b *testing.B) {
	for _, size := range []struct{ hosts, urls int }{{100, 10_000}, {100, 1_000_000}, {10_000, 1_000_000},
		{100, 10_000_000}} {
		b.Run(fmt.Sprintf("hosts=%d/due=%d", size.hosts, size.urls), func(b *testing.B) {
			if size.urls > 1_000_000 && testing.Short() {
				b.Skip("takes minutes to fill the store")
			}
			r := newRecrawls(b, size.hosts, size.urls/size.hosts)
			for range 2 * size.hosts { // hosts become active, names are resolved, robots.txt are read
				r.recrawl(b)
			}
			r.decided, r.read, r.written = 0, 0, 0
			for b.Loop() {
				r.recrawl(b)
			}
			for name, elapsed := range map[string]time.Duration{"decide-ns": r.decided, "read-ns": r.read,
				"commit-ns": r.written} {
				b.ReportMetric(float64(elapsed.Nanoseconds())/float64(b.N), name)
			}
		})
	}
}

// recrawls is a crawl that has only recrawls to do, and all of them are due.
type recrawls struct {
	f                      *Frontier
	o                      Options
	store                  *storage.Store
	now                    time.Time
	decided, read, written time.Duration
}

func newRecrawls(b *testing.B, hosts, urls int) *recrawls {
	s := must.Get(storage.Open(b.TempDir(), storage.Options{NoSync: true}))(b)
	b.Cleanup(func() { s.Close() })
	r := &recrawls{store: s, now: epoch, o: testOptions()}
	plan := recrawl.DefaultOptions()
	plan.Budget = 0
	renewer := must.Get(recrawl.New(plan))(b)
	r.o.Recrawl, r.o.Politeness.Delay = renewer, time.Millisecond
	r.fill(b, renewer, hosts, urls)
	r.f = must.Get(New(r.o, NewScope(ModeAny, nil, nil), r.now))(b)
	must.Do(b, s.Hosts(func(h *storage.Host) error { return r.f.Restore(h, r.now) }))
	return r
}

// fill puts pages into the store that were fetched long ago.
func (r *recrawls) fill(b *testing.B, plan *recrawl.Plan, hosts, urls int) {
	var batch storage.Batch
	var site recrawl.Site
	for host := range hosts {
		for n := range urls {
			u := weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", host),
				Port: 80}.URL(fmt.Sprintf("/some/page/%d", n))
			batch.Found = append(batch.Found, storage.Found{URL: u, Fingerprint: r.store.Fingerprint(u), At: r.now})
			at := r.now.Add(-time.Duration(n*7919%urls)*time.Second - 300*24*time.Hour)
			m := plan.Answered(&recrawl.Visit{At: at}, &site)
			batch.Done = append(batch.Done, storage.Done{Host: storage.HostID(host + 1), Ordinal: uint32(n),
				Outcome: storage.Outcome{
					State: storage.Fetched, Status: 200, At: m.At, Due: m.Due, History: m.History,
					Bytes: 20_000, Digest: 1, Simhash: 1,
				}})
			if len(batch.Done) < 20_000 && (host < hosts-1 || n < urls-1) {
				continue
			}
			must.Get(r.store.Commit(&batch))(b)
			batch = storage.Batch{}
		}
	}
}

// recrawl makes the next recrawl, and whatever else comes before it.
func (r *recrawls) recrawl(b *testing.B) {
	for {
		r.lookUp(b)
		start := time.Now()
		l, ok := r.f.Next(r.now)
		r.decided += time.Since(start)
		r.load(b)
		if !ok {
			if at, ok := r.f.NextWake(); ok && at.After(r.now) {
				r.now = at
			}
			continue
		}
		r.now = r.now.Add(100 * time.Microsecond)
		var err error
		switch l.Kind {
		case Robots:
			record, _ := r.o.Robots.Next(l.Robots.Previous, robots.Outcome{URL: l.URL.String(), Status: 404}, r.now)
			err = r.f.CompleteRobots(l.ID,
				RobotsReport{RequestEnd: RequestEnd{Report: Report{Sent: true, End: r.now}}, Record: record,
					Rules: record.Rules(r.o.Tokens...)})
		case Page:
			report := PageReport{RequestEnd: RequestEnd{Report: Report{Sent: true, End: r.now}},
				Outcome: storage.Outcome{State: storage.Fetched, Status: 304}}
			report.Change = recrawl.Same
			err = r.f.CompletePage(l.ID, report)
		}
		must.Do(b, err)
		r.commit(b)
		if l.Kind == Page {
			return
		}
	}
}

// lookUp answers all lookups.
func (r *recrawls) lookUp(b *testing.B) {
	for l, ok := r.f.NextName(r.now); ok; l, ok = r.f.NextName(r.now) {
		address := netip.AddrFrom4([4]byte{10, byte(l.Host >> 16), byte(l.Host >> 8), byte(l.Host)})
		report := ResolveReport{End: r.now, TTL: 1e6 * time.Hour, Addresses: []netip.Addr{address}}
		must.Do(b, r.f.CompleteResolve(l.ID, report))
	}
}

func (r *recrawls) load(b *testing.B) {
	start := time.Now()
	for _, want := range r.f.TakeWants() {
		l, err := readLoad(r.store, want, &r.o)
		if err == nil {
			err = r.f.Loaded(l, r.now)
		}
		must.Do(b, err)
	}
	r.read += time.Since(start)
}

func (r *recrawls) commit(b *testing.B) {
	batch := r.f.TakeBatch()
	if batch.Empty() {
		return
	}
	start := time.Now()
	result := must.Get(r.store.Commit(&batch))(b)
	r.written += time.Since(start)
	r.f.Committed(&batch, result, r.now)
}
