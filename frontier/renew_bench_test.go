package frontier

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// BenchmarkRenewal gives out the renewal that is next, reads what that takes from a real store, plans the page anew and commits that, with so many
// URLs that are due. It is to cost the same for all sizes.
func BenchmarkRenewal(b *testing.B) {
	for _, size := range []struct{ hosts, urls int }{{100, 10_000}, {100, 1_000_000}, {10_000, 1_000_000}, {100, 10_000_000}} {
		b.Run(fmt.Sprintf("hosts=%d/due=%d", size.hosts, size.urls), func(b *testing.B) {
			if size.urls > 1_000_000 && testing.Short() {
				b.Skip("takes minutes to fill the store")
			}
			r := newRenewals(b, size.hosts, size.urls/size.hosts)
			for range 2 * size.hosts { // hosts become active, names are resolved, robots.txt are read
				r.renew(b)
			}
			r.decided, r.read, r.written = 0, 0, 0
			for b.Loop() {
				r.renew(b)
			}
			for name, spent := range map[string]time.Duration{"decide-ns": r.decided, "read-ns": r.read, "commit-ns": r.written} {
				b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), name)
			}
		})
	}
}

// renewals is a crawl that has nothing to do but renewals, all of which are due.
type renewals struct {
	f                      *Frontier
	o                      Options
	store                  *storage.Store
	now                    time.Time
	decided, read, written time.Duration
}

func newRenewals(b *testing.B, hosts, urls int) *renewals {
	s, err := storage.Open(b.TempDir(), storage.Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	r := &renewals{store: s, now: epoch, o: testOptions()}
	plan := revisit.DefaultOptions()
	plan.Budget = 0
	renewer, err := revisit.New(plan)
	if err != nil {
		b.Fatal(err)
	}
	r.o.Renew, r.o.Politeness.Delay = renewer, time.Millisecond
	r.fill(b, renewer, hosts, urls)
	if r.f, err = New(r.o, NewScope(ModeAny, nil, nil), r.now); err != nil {
		b.Fatal(err)
	}
	if err := s.Hosts(func(h *storage.Host) error { return r.f.Restore(h, r.now) }); err != nil {
		b.Fatal(err)
	}
	return r
}

// fill puts pages into the store that were fetched long ago.
func (r *renewals) fill(b *testing.B, plan *revisit.Plan, hosts, urls int) {
	var batch storage.Batch
	var site revisit.Site
	for host := range hosts {
		for n := range urls {
			u := weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", host), Port: 80}.URL(fmt.Sprintf("/some/page/%d", n))
			batch.Found = append(batch.Found, storage.Found{URL: u, Fingerprint: r.store.Fingerprint(u), At: r.now})
			m := plan.Answered(&revisit.Visit{At: r.now.Add(-time.Duration(n*7919%urls)*time.Second - 300*24*time.Hour)}, &site)
			batch.Done = append(batch.Done, storage.Done{Host: storage.HostID(host + 1), Ordinal: uint32(n), Outcome: storage.Outcome{
				State: storage.Fetched, Status: 200, At: m.At, Due: m.Due, History: m.History, Bytes: 20_000, Digest: 1, Simhash: 1,
			}})
			if len(batch.Done) < 20_000 && (host < hosts-1 || n < urls-1) {
				continue
			}
			if _, err := r.store.Commit(&batch); err != nil {
				b.Fatal(err)
			}
			batch = storage.Batch{}
		}
	}
}

// renew makes the next renewal, and whatever else comes before it.
func (r *renewals) renew(b *testing.B) {
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
			err = r.f.CompleteRobots(l.ID, RobotsReport{Report: Report{Sent: true, End: r.now}, Record: record, Rules: record.Rules(r.o.Tokens...)})
		case Page:
			report := PageReport{Report: Report{Sent: true, End: r.now}, Outcome: storage.Outcome{State: storage.Fetched, Status: 304}}
			report.Change = revisit.Same
			err = r.f.CompletePage(l.ID, report)
		}
		if err != nil {
			b.Fatal(err)
		}
		r.commit(b)
		if l.Kind == Page {
			return
		}
	}
}

// lookUp answers all lookups.
func (r *renewals) lookUp(b *testing.B) {
	for l, ok := r.f.NextName(r.now); ok; l, ok = r.f.NextName(r.now) {
		address := netip.AddrFrom4([4]byte{10, byte(l.Host >> 16), byte(l.Host >> 8), byte(l.Host)})
		report := ResolveReport{End: r.now, TTL: 1e6 * time.Hour, Addresses: []netip.Addr{address}}
		if err := r.f.CompleteResolve(l.ID, report); err != nil {
			b.Fatal(err)
		}
	}
}

func (r *renewals) load(b *testing.B) {
	start := time.Now()
	for _, want := range r.f.TakeWants() {
		l, err := readLoad(r.store, want, &r.o)
		if err == nil {
			err = r.f.Loaded(l, r.now)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	r.read += time.Since(start)
}

func (r *renewals) commit(b *testing.B) {
	batch := r.f.TakeBatch()
	if batch.Empty() {
		return
	}
	start := time.Now()
	result, err := r.store.Commit(&batch)
	if err != nil {
		b.Fatal(err)
	}
	r.written += time.Since(start)
	r.f.Committed(&batch, result, r.now)
}
