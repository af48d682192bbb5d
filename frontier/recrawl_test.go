package frontier

import (
	"fmt"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

// recrawlWorld is a world whose pages are recrawled by a policy.
func recrawlWorld(t *testing.T, o recrawl.Options, share float64) *world {
	t.Helper()
	plan := must.Get(recrawl.New(o))(t)
	options := testOptions()
	options.Recrawl, options.RecrawlShare = plan, share
	return newWorld(t, options, newMemory())
}

func every(interval time.Duration) recrawl.Options {
	o := recrawl.DefaultOptions()
	o.Policy, o.Interval, o.Budget, o.Min = recrawl.Fixed, interval, 0, time.Second
	return o
}

// TestRecrawls: pages are fetched again when they are due, whether their host is dormant by then or
// not, and a restart does not change when.
func TestRecrawls(t *testing.T) {
	for _, interval := range []time.Duration{20 * time.Second, 3 * time.Hour} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/restart=%t", interval, restart), func(t *testing.T) {
				w := recrawlWorld(t, every(interval), 0.5)
				w.add("http://a.test/1", "http://a.test/2", "http://b.test/1")
				w.open()
				w.run(interval / 2)
				if restart {
					w.flush()
					w.run(time.Second)
					w.open()
				}
				w.run(10*interval - interval/2)
				requested := map[string]int{}
				for _, u := range w.pages() {
					requested[u]++
				}
				for u, n := range requested {
					assert.True(t, n >= 9 && n <= 10, "%s was fetched %d times in ten intervals", u, n)
				}
				assert.Equal(t, len(requested), 3, "fetched", requested)
				w.checkManners()
			})
		}
	}
}

// TestRecrawlBudget: recrawls keep to the budget, whatever is due, and new URLs do not wait for it.
func TestRecrawlBudget(t *testing.T) {
	o := every(time.Minute)
	o.Budget = 24 * 60 // one a minute
	w := recrawlWorld(t, o, 0.5)
	for n := range 40 {
		w.add(fmt.Sprintf("http://h%d.test/", n))
	}
	w.open()
	w.run(2 * time.Hour)
	fetched := len(w.pages())
	recrawls := fetched - 40
	assert.True(t, recrawls >= 118 && recrawls <= 122, "%d recrawls in two hours, the budget allows 120", recrawls)
	began := w.now
	w.add("http://new.test/1", "http://h3.test/new")
	w.run(10 * time.Second)
	late := 0
	for _, r := range w.log {
		if r.kind == Page && r.start.After(began) && (r.url == "http://new.test/1" || r.url == "http://h3.test/new") {
			late++
		}
	}
	assert.Equal(t, late, 2, "of 2 new URLs were fetched while recrawls waited for the budget")
	w.checkManners()
}

// TestBudgetChanges: however often the budget changes, as many recrawls are made as it has allowed in all, and
// none while it allows nothing.
func TestBudgetChanges(t *testing.T) {
	o := every(time.Minute)
	w := recrawlWorld(t, o, 0.5)
	plan := w.o.Recrawl.(*recrawl.Plan)
	plan.SetBudget(recrawl.LeastBudget)
	for n := range 40 {
		w.add(fmt.Sprintf("http://h%d.test/", n))
	}
	w.open()
	w.run(5 * time.Minute)
	allowed := 0.0
	for n := range 60 {
		before, aMinute := len(w.pages()), []float64{1, 3, 0, 0.2, 6, 0}[n%6]
		plan.SetBudget(max(aMinute*24*60, recrawl.LeastBudget))
		w.f.BudgetChanged(w.now)
		w.run(97 * time.Second)
		allowed += aMinute * 97 / 60
		made := len(w.pages()) - 40
		must.True(t, !(float64(made) > allowed) && !(float64(made) < allowed-3),
			"%d recrawls after %d changes, the budgets have allowed %.1f", made, n+1, allowed)
		if aMinute == 0 && len(w.pages()) > before {
			t.Fatalf("%d recrawls without a budget", len(w.pages())-before)
		}
	}
}

// spending notes what its plan is told of the budget.
type spending struct {
	*recrawl.Plan
	spare, late []float64
}

func (s *spending) Adjust(spare, late float64) {
	s.spare, s.late = append(s.spare, spare), append(s.late, late)
	s.Plan.Adjust(spare, late)
}

// TestSpent: the plan learns what the budget had room for, and how late recrawls are, so that the
// price can follow.
func TestOverBudget(t *testing.T) {
	for _, c := range []struct {
		name          string
		pages         int
		every         time.Duration
		spare, excess float64 // wanted of the last recrawls
		late          [2]float64
	}{
		{"room for nine more", 4, 40 * time.Minute, 9, 0.5, [2]float64{0, 0}},
		{"twice too many", 40, 20 * time.Minute, 0, 0.1, [2]float64{0.4, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := every(c.every)
			o.Budget = 24 * 60 // one a minute
			w := recrawlWorld(t, o, 0.5)
			s := &spending{Plan: w.o.Recrawl.(*recrawl.Plan)}
			w.o.Recrawl = s
			for n := range c.pages {
				w.add(fmt.Sprintf("http://h%d.test/", n))
			}
			w.open()
			w.run(5 * time.Hour)
			n := min(len(s.spare), 4*c.pages) / 4 * 3
			spare, late := 0.0, 0.0
			for i := len(s.spare) - n; i < len(s.spare); i++ {
				spare, late = spare+s.spare[i]/float64(n), late+s.late[i]/float64(n)
			}
			assert.True(t, n >= 12 && !(spare < c.spare-c.excess) && !(spare > c.spare+c.excess) &&
				!(late < c.late[0]) && !(late > c.late[1]),
				"room for %.2f more, recrawls late by %.2f of their wait (%d of %d)", spare, late, n, len(s.spare))
		})
	}
}

// TestShares: where there is more to do than can be done, each kind gets its share, within a host
// and among hosts; where one kind has nothing to do, the other takes all.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		name        string
		share       float64
		old, new    []string // hosts with pages to recrawl, hosts with new URLs
		least, most float64  // share of recrawls
	}{
		{"one host", 0.5, []string{"a"}, []string{"a"}, 0.45, 0.55},
		{"one host, a quarter", 0.25, []string{"a"}, []string{"a"}, 0.2, 0.3},
		{"hosts apart", 0.75, []string{"a", "b"}, []string{"c", "d"}, 0.7, 0.8},
		{"nothing new", 0.1, []string{"a"}, nil, 1, 1},
		{"nothing to recrawl at first", 0.9, nil, []string{"a"}, 0.7, 0.95},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := recrawlWorld(t, every(time.Second), c.share)
			w.workers, w.quick = 1, true
			w.o.Politeness.Delay = 0
			for _, host := range c.old {
				for n := range 40 {
					w.add(fmt.Sprintf("http://%s.test/old%d", host, n))
				}
			}
			w.open()
			w.run(time.Minute)
			for _, host := range c.new {
				var urls []string
				for n := range 400 {
					urls = append(urls, fmt.Sprintf("http://%s.test/new%d", host, n))
				}
				w.add(urls...)
			}
			recrawls, all := 0, 0
			w.started = func(l Lease) {
				if all++; l.Head.Last.State == storage.Fetched {
					recrawls++
				}
			}
			w.run(20 * time.Second)
			if part := float64(recrawls) / float64(all); all < 190 || part < c.least || part > c.most {
				t.Errorf("%d of %d requests were recrawls", recrawls, all)
			}
		})
	}
}

// TestChangeOfTheShare: the share of recrawls changes with the settings, from the next request on.
func TestChangeOfTheShare(t *testing.T) {
	w := recrawlWorld(t, every(time.Second), 0.9)
	w.workers, w.quick = 1, true
	w.o.Politeness.Delay = 0
	for n := range 40 {
		w.add(fmt.Sprintf("http://a.test/old%d", n))
	}
	w.open()
	w.run(time.Minute)
	var urls []string
	for n := range 400 {
		urls = append(urls, fmt.Sprintf("http://a.test/new%d", n))
	}
	w.add(urls...)
	w.f.Change(Change{Live: Live{Politeness: w.o.Politeness, RecrawlShare: 0.1}}, w.now)
	recrawls, all := 0, 0
	w.started = func(l Lease) {
		if all++; l.Head.Last.State == storage.Fetched {
			recrawls++
		}
	}
	w.run(20 * time.Second)
	if part := float64(recrawls) / float64(all); all < 190 || part < 0.05 || part > 0.15 {
		t.Errorf("%d of %d requests were recrawls, a tenth should be", recrawls, all)
	}
}

// TestGonePages: a page that is gone is fetched less and less often and then never again; one that
// is back in time is a page like any other.
func TestGonePages(t *testing.T) {
	w := recrawlWorld(t, every(6*time.Hour), 0.5)
	w.add("http://a.test/gone", "http://a.test/back")
	var gone []time.Duration
	back := 0
	w.answer = func(l Lease) answer {
		a := answer{took: 100 * time.Millisecond}
		switch since := w.now.Sub(epoch); {
		case l.Kind != Page || since < 5*time.Hour:
		case l.URL.RequestURI() == "/gone":
			gone = append(gone, since)
			a.state, a.reason = storage.Failed, storage.ReasonStatus
		case since < 40*time.Hour:
			a.state, a.reason = storage.Failed, storage.ReasonStatus
		default:
			back++
		}
		return a
	}
	w.open()
	w.run(90 * 24 * time.Hour)
	must.True(t, len(gone) == 5 && gone[1]-gone[0] >= 24*time.Hour, "a page that is gone was fetched at %v", gone)
	for i := 2; i < len(gone); i++ {
		assert.AtLeast(t, gone[i]-gone[i-1], 2*(gone[i-1]-gone[i-2])-time.Minute, "a page that is gone was fetched at",
			gone)
	}
	assert.AtLeast(t, back, 300, "a page that was back was fetched times in 88 days")
}

// TestCrashedPage: a page at which a worker panicked is not visited again, whatever the plan says.
func TestCrashedPage(t *testing.T) {
	w := recrawlWorld(t, every(6*time.Hour), 0.5)
	w.add("http://a.test/crashes", "http://a.test/fine")
	visits := map[string]int{}
	w.answer = func(l Lease) answer {
		a := answer{took: 100 * time.Millisecond}
		if l.Kind != Page {
			return a
		}
		if visits[l.URL.RequestURI()]++; l.URL.RequestURI() == "/crashes" && visits["/crashes"] == 2 {
			a.state, a.reason = storage.Failed, storage.ReasonCrash
		}
		return a
	}
	w.open()
	w.run(90 * 24 * time.Hour)
	assert.True(t, visits["/crashes"] == 2 && visits["/fine"] >= 300, "visits: %v", visits)
}

// TestChangefreq: of pages that were visited once, those that change often according to their
// sitemap come first.
func TestChangefreq(t *testing.T) {
	const hourly, yearly = 2, 6
	o := recrawl.DefaultOptions()
	o.Budget = 0
	w := recrawlWorld(t, o, 0.5)
	var b storage.Batch
	for path, frequency := range map[string]storage.Frequency{"hourly": hourly, "unknown": 0, "yearly": yearly} {
		f := w.found("http://a.test/" + path)
		f.Frequency = frequency
		b.Found = append(b.Found, f)
	}
	w.commit(b)
	first := map[string]time.Duration{}
	requested := map[string]int{}
	w.started = func(l Lease) {
		if l.Kind == Page {
			if requested[l.URL.RequestURI()]++; requested[l.URL.RequestURI()] == 2 {
				first[l.URL.RequestURI()] = w.now.Sub(epoch)
			}
		}
	}
	w.open()
	w.run(10 * 24 * time.Hour)
	if a, b, c := first["/hourly"], first["/unknown"], first["/yearly"]; !(a > 0 && 3*a < b && 3*b < c) {
		t.Errorf("first recrawls after %v, said to change hourly; %v, not said; %v, yearly", a, b, c)
	}
}
