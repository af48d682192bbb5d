package plan

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// now is when the tests look.
var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func testOptions() inspect.Options {
	return inspect.Options{
		Politeness: func(string) *politeness.Options { o := politeness.DefaultOptions(); return &o },
		Now:        func() time.Time { return now },
	}
}

func commit(t *testing.T, s *storage.Store, b storage.Batch) {
	t.Helper()
	must.Get(s.Commit(&b))(t)
}

func found(t *testing.T, s *storage.Store, texts ...string) (all []storage.Found) {
	for _, text := range texts {
		u := testkit.Parse(t, text)
		all = append(all, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: now.Add(-time.Hour)})
	}
	return all
}

// TestRecrawlPlan compares what is foretold with what a full count of the pages gives.
func TestRecrawlPlan(t *testing.T) {
	s := testkit.OpenStore(t)
	o := recrawl.DefaultOptions()
	o.Budget = 50
	plan := must.Get(recrawl.New(o))(t)
	var texts []string
	for n := range 60 {
		texts = append(texts, fmt.Sprintf("http://large.test/%d", n))
	}
	texts = append(texts, "http://small.test/", "http://none.test/")
	commit(t, s, storage.Batch{Found: found(t, s, texts...)})
	var b storage.Batch
	sites := make([]recrawl.Site, 3)
	want := struct {
		visits, fresh float64
		soonest       time.Time
	}{}
	for round := range 3 { // later rounds know more
		want.visits, want.fresh, want.soonest, b.Done = 0, 0, time.Time{}, nil
		for n := range 61 {
			host, ordinal := n/60, n%60
			at := now.Add(time.Duration(round-3) * 24 * time.Hour)
			v := &recrawl.Visit{Page: recrawl.Page{Host: "large.test", RequestURI: fmt.Sprintf("/%d", ordinal)}, At: at}
			if round > 0 {
				last := stored(t, s, storage.HostID(host+1), uint32(ordinal))
				v.Memory = recrawl.Memory{At: last.At, Due: last.Due, History: last.History}
				if v.Change = recrawl.Same; n%2 == 0 {
					v.Change = recrawl.Changed
				}
			}
			m := plan.Answered(v, &sites[host])
			b.Done = append(b.Done, storage.Done{Host: storage.HostID(host + 1), Ordinal: uint32(ordinal),
				Outcome: storage.Outcome{
					State: storage.Fetched, Status: 200, At: at, Due: m.Due, History: m.History,
				}})
			every := m.Due.Sub(at).Seconds()
			rate, _ := m.History.Rate()
			want.visits += 86400 / every / 61
			want.fresh += recrawl.Freshness(rate, every) / 61
			if want.soonest.IsZero() || m.Due.Before(want.soonest) {
				want.soonest = m.Due
			}
		}
		encoded, _ := plan.AppendBinary(nil)
		b.Marks = map[string][]byte{marks.Plan: encoded}
		commit(t, s, b)
	}
	commit(t, s, storage.Batch{Done: []storage.Done{{Host: 3,
		Outcome: storage.Outcome{State: storage.Fetched, At: now}}}})

	options := testOptions()
	r := must.Get(Of(t.Context(), inspect.New(s, options), 10))(t)
	assert.True(t, r.Once && r.Pages == 0 && r.Unplanned == 0, "without recrawls: %+v", r)
	options.Recrawl = &o
	r = must.Get(Of(t.Context(), inspect.New(s, options), 10))(t)
	assert.True(t, !r.Once && r.Pages == 61 &&
		r.Hosts == 2 && r.Unplanned == 1 && r.Plain == 0 && r.Budget == 50, "%+v", r)
	assert.AtMost(t, math.Abs(r.Visits-50), 1, "the plan has", r.Visits, "visits a day, the budget is 50")
	last := 0.0
	for _, f := range r.Budgets {
		assert.True(t, !(*f.Freshness < last) && !(f.Visits > f.Budget*1.01), "budgets: %+v", r.Budgets)
		last = *f.Freshness
	}
	large := r.Largest[0]
	if large.Host != "large.test" || large.Pages != 60 || large.Sample != 60 ||
		math.Abs(large.Visits/60-want.visits) > 0.05*want.visits || math.Abs(*large.Freshness-want.fresh) > 0.02 {
		t.Errorf("%+v with a freshness of %g, want %g visits a day of a page and %g", large, *large.Freshness,
			want.visits, want.fresh)
	}
	assert.True(t, len(r.Next) == 20 && r.Next[0].Due.Sub(want.soonest).Abs() <= time.Second &&
		!r.Next[0].Due.After(r.Next[19].Due) && r.Next[0].Changes != nil, "next: %+v, want the first at %v", r.Next,
		want.soonest)
}

// TestRequisites: what pages are made of is counted for a crawl that recrawls nothing too, at the delays in force.
func TestRequisites(t *testing.T) {
	s := testkit.OpenStore(t)
	urls := found(t, s, "http://slow.test/1", "http://slow.test/2", "http://slow.test/3", "http://slow.test/page",
		"http://fast.test/1", "http://fast.test/2")
	for i := range urls {
		if i != 3 {
			urls[i].Priority = storage.PriorityRequisite
		}
	}
	commit(t, s, storage.Batch{Found: urls})
	slow := must.Get(politeness.State{Demands: politeness.Demands{Delay: time.Minute}}.AppendBinary(nil))(t)
	commit(t, s, storage.Batch{Hosts: []storage.HostUpdate{{Host: 1, Politeness: slow}}, Done: []storage.Done{
		{Host: 1, Priority: storage.PriorityRequisite, Outcome: storage.Outcome{State: storage.Fetched, At: now}},
		{Host: 2, Priority: storage.PriorityRequisite, Outcome: storage.Outcome{State: storage.Fetched, At: now}},
	}})
	r := must.Get(Of(t.Context(), inspect.New(s, testOptions()), 10))(t)
	assert.True(t, r.Once && r.Requisites == 2 && r.RequisitesTake == 60 && r.RequisitesWaiting == 3 &&
		r.RequisitesFinish == 120, "%+v", r)
	both := planOfAll{RecrawlPlan: r}
	more := RecrawlPlan{Once: true, RequisitesWaiting: 5, RequisitesFinish: 5}
	both.Add(&planOfAll{RecrawlPlan: more})
	assert.True(t, both.Once && both.Requisites == 2 && both.RequisitesWaiting == 8 && both.RequisitesFinish == 120,
		"of two shards: %+v", both)
}

// TestRecrawlPlanOfManyHosts: of more hosts than the limit, an even sample is inspected.
func TestRecrawlPlanOfManyHosts(t *testing.T) {
	const hosts, sampled = 3000, 8 * stretch
	s, err := storage.Open(t.TempDir(), storage.Options{NoSync: true})
	must.Do(t, err)
	defer s.Close()
	var b storage.Batch
	for n := range hosts {
		u := weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", n), Port: 80}.URL("/")
		b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: now})
		if n%4 == 3 {
			continue
		}
		o := storage.Outcome{State: storage.Fetched, At: now.Add(-time.Hour),
			Due: now.Add(time.Duration(n+1) * time.Hour)}
		if n%4 == 2 {
			o.Due = now.Add(-time.Minute)
		}
		b.Done = append(b.Done, storage.Done{Host: storage.HostID(n + 1), Outcome: o})
	}
	commit(t, s, b)
	o := testOptions()
	o.Recrawl = new(recrawl.Options)
	*o.Recrawl = recrawl.DefaultOptions()
	f := forecaster{s, o, sampled}
	r, err := f.recrawlPlan(t.Context(), 10)
	must.Do(t, err)
	near := func(got, want int) bool { return math.Abs(float64(got)/float64(want)-1) < 0.01 }
	assert.True(t, r.Known == hosts && r.Inspected == sampled && near(r.Hosts, hosts*3/4) && near(r.Overdue, hosts/4) &&
		len(r.Largest) == 10 && len(r.Next) == nextRecrawls,
		"%d hosts are known, %d were inspected; %d with recrawls, %d with one that is overdue, %d listed", r.Known,
		r.Inspected, r.Hosts, r.Overdue, len(r.Largest))
	seen := map[storage.HostID]bool{}
	last := storage.NoHost
	err = f.someHosts(t.Context(), &RecrawlPlan{}, func(h *storage.Host) error {
		seen[h.ID], last = true, h.ID
		return nil
	})
	assert.True(t, err == nil && len(seen) == sampled && last == hosts,
		"%d hosts were inspected, up to id %d of %d (%v)", len(seen), last, hosts, err)
}

func stored(t *testing.T, s *storage.Store, host storage.HostID, ordinal uint32) (o storage.Outcome) {
	t.Helper()
	must.Get(s.URLs(host, ordinal, 1, func(h storage.Head) { o = h.Last }))(t)
	return o
}

// BenchmarkRecrawlPlan: a forecast takes as long for many pages as for few, and no longer beyond
// the limit of inspected hosts.
func BenchmarkRecrawlPlan(b *testing.B) {
	for _, size := range []struct{ hosts, pages int }{{20, 50}, {20, 5000}, {10_000, 2}, {100_000, 2}, {1_000_000, 2}} {
		b.Run(fmt.Sprintf("hosts=%d/pages=%d", size.hosts, size.hosts*size.pages), func(b *testing.B) {
			if size.hosts > 100_000 && testing.Short() {
				b.Skip("takes half a minute to fill the store")
			}
			s := must.Get(storage.Open(b.TempDir(), storage.Options{NoSync: true}))(b)
			defer s.Close()
			o := recrawl.DefaultOptions()
			planPages(b, s, o, size.hosts, size.pages)
			options := testOptions()
			options.Recrawl = &o
			view := inspect.New(s, options)
			before := heapBytes()
			b.ReportAllocs()
			for b.Loop() {
				p, err := Of(b.Context(), view, 20)
				must.True(b, err == nil && p.Pages == size.hosts*size.pages && len(p.Largest) == 20 &&
					len(p.Next) == nextRecrawls, "%+v, %v", p, err)
			}
			b.ReportMetric(float64(heapBytes())-float64(before), "B-kept")
		})
	}
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// planPages puts planned pages into a store.
func planPages(b *testing.B, s *storage.Store, o recrawl.Options, hosts, pages int) {
	plan := must.Get(recrawl.New(o))(b)
	var batch storage.Batch
	var site recrawl.Site
	for host := range hosts {
		for n := range pages {
			batch.Found = append(batch.Found, foundIn(b, s, fmt.Sprintf("http://h%d.test/%d", host, n)))
			m := plan.Answered(&recrawl.Visit{At: now.Add(time.Duration(host+n) * time.Second)}, &site)
			batch.Done = append(batch.Done, storage.Done{Host: storage.HostID(host + 1), Ordinal: uint32(n),
				Outcome: storage.Outcome{
					State: storage.Fetched, Status: 200, At: m.At, Due: m.Due, History: m.History,
				}})
		}
		if len(batch.Done) < 4000 && host < hosts-1 {
			continue
		}
		encoded, _ := plan.AppendBinary(nil)
		batch.Marks = map[string][]byte{marks.Plan: encoded}
		must.Get(s.Commit(&batch))(b)
		batch = storage.Batch{}
	}
}

func foundIn(b *testing.B, s *storage.Store, text string) storage.Found {
	u := must.Get(weburl.Parse(text))(b)
	return storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: now}
}
