package frontier

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// TestOneHost crawls two origins of a host: robots.txt of each before its pages, pages in the order
// of their discovery, a second apart.
func TestOneHost(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://a.test/1", "http://a.test/2", "https://a.test/3", "http://a.test/4")
	w.open()
	w.finish(time.Minute, time.Hour)
	w.checkManners()
	var requested []string
	for _, r := range w.log {
		requested = append(requested, r.url)
	}
	want := []string{
		"http://a.test/robots.txt", "http://a.test/1", "http://a.test/2",
		"https://a.test/robots.txt", "https://a.test/3", "http://a.test/4",
	}
	assert.Slice(t, requested, want, "fetched")
	assert.True(t, w.resolved == 1 && w.log[1].start.Sub(w.log[0].end) == time.Second, "%d resolutions; %v", w.resolved,
		w.log)
}

// TestRetries counts attempts, waits longer each time and gives up with the reason of the last.
func TestRetries(t *testing.T) {
	o := testOptions()
	o.MaxAttempts, o.RetryDelay = 4, 10*time.Minute
	w := newWorld(t, o, newMemory())
	w.add("http://a.test/1")
	w.answer = func(l Lease) answer {
		if l.Kind == Robots {
			return answer{took: time.Millisecond, maxAge: 24 * time.Hour}
		}
		return answer{state: storage.Retrying, reason: storage.ReasonFetch + 5, took: time.Millisecond}
	}
	w.open()
	w.finish(10*time.Hour, 5*time.Hour)
	var starts []time.Duration
	for _, r := range w.log {
		if r.kind == Page {
			starts = append(starts, r.start.Sub(epoch).Truncate(time.Minute))
		}
	}
	assert.Slice(t, starts, []time.Duration{0, 10 * time.Minute, 30 * time.Minute, 70 * time.Minute}, "fetched at")
	got := w.state(t, "http://a.test/1")
	assert.True(t, got.State == storage.Failed && got.Reason == storage.ReasonFetch+5 && got.Attempts == 4,
		"in the end it is %+v", got)
}

// TestNotSent puts URLs back where they were, those that are due too.
func TestNotSent(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add(urls("http://a.test/", 5)...)
	n := 0
	w.answer = func(l Lease) answer {
		n++
		switch a := (answer{took: 10 * time.Millisecond}); {
		case n%3 == 1:
			return answer{notSent: true, took: 10 * time.Millisecond}
		case n%3 == 2:
			return answer{broken: true, signal: politeness.SignalAborted, took: 10 * time.Millisecond}
		case n == 6 || n == 12:
			a.state, a.reason = storage.Retrying, storage.ReasonStatus
			return a
		default:
			return a
		}
	}
	w.open()
	w.finish(time.Hour, 2*time.Hour)
	w.checkManners()
	for _, u := range urls("http://a.test/", 5) {
		assert.Equal(t, w.state(t, u).State, storage.Fetched, u)
	}
	assert.Equal(t, n, 3*8, "leases")
}

// TestUnknownLease refuses completions of leases that are not out.
func TestUnknownLease(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://a.test/1")
	w.open()
	w.run(time.Second)
	assert.True(t, w.f.CompletePage(77, PageReport{}) != nil && w.f.CompleteRobots(77, RobotsReport{}) != nil &&
		w.f.CompleteResolve(1, ResolveReport{}) != nil, "a lease that is not out was completed")
}

// TestNextRequestWhileReading: the next request to a host leaves as soon as politeness allows it after
// the end of the last one, although the response to that is still read; but no more than one response
// of a host is read besides the request in flight.
func TestNextRequestWhileReading(t *testing.T) {
	for name, c := range map[string]struct {
		delay  time.Duration
		answer answer
		starts []time.Duration // of pages
	}{
		"no delay": {0, answer{reading: time.Second}, []time.Duration{100, 200, 1200, 1300, 2300}},
		"delay":    {time.Second, answer{reading: 500 * time.Millisecond}, []time.Duration{1100, 2200, 3300}},
		"long":     {time.Second, answer{reading: 4 * time.Second}, []time.Duration{1100, 2200, 5200, 6300}},
		"Retry-After": {0, answer{reading: time.Second, state: storage.Retrying, signal: politeness.SignalThrottled,
			retryAfter: 20 * time.Second}, []time.Duration{100, 20_200, 40_300}},
	} {
		t.Run(name, func(t *testing.T) {
			o := testOptions()
			o.Politeness.Delay = c.delay
			w := newWorld(t, o, newMemory())
			w.add(urls("http://a.test/", 20)...)
			c.answer.took = 100 * time.Millisecond
			w.answer = func(l Lease) answer {
				if l.Kind == Robots {
					return answer{took: 100 * time.Millisecond}
				}
				return c.answer
			}
			w.nameTime, w.loadTime = 0, 0
			w.open()
			w.run(time.Minute)
			var starts []time.Duration
			for _, r := range w.log[1:] {
				starts = append(starts, r.start.Sub(epoch)/time.Millisecond)
			}
			starts = starts[:min(len(starts), len(c.starts))]
			assert.True(t, slices.Equal(starts, c.starts), "pages are requested at %d ms, want %d", starts, c.starts)
			w.checkManners()
		})
	}
}

// TestEndRequest: a request ends once, and only that of a page; its lease ends after it.
func TestEndRequest(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://a.test/1")
	w.answer = func(l Lease) answer { return answer{took: time.Second, reading: time.Second} }
	w.open()
	w.run(500 * time.Millisecond)
	assert.True(t, len(w.out) == 1 && w.f.EndRequest(w.f.leases.last, RequestEnd{}) != nil,
		"of %v a request of a robots.txt has ended as one of a page", w.out)
	w.run(2 * time.Second)
	page := w.f.leases.last
	w.must(w.f.EndRequest(page, w.requestEnd(answer{})))
	assert.True(t, w.f.EndRequest(page, w.requestEnd(answer{})) != nil, "a request has ended twice")
	w.f.Sweep(w.now)
	w.check()
	w.must(w.f.CompletePage(page, PageReport{RequestEnd: w.requestEnd(answer{})}))
	assert.True(t, w.f.EndRequest(page, w.requestEnd(answer{})) != nil, "a request has ended after its lease")
	w.check()
}

// TestWallWhileReading: a host that puts up a wall is left alone from the response on with which the
// wall begins, though others are still read.
func TestWallWhileReading(t *testing.T) {
	o := testOptions()
	o.Politeness.Delay = 0
	w := newWorld(t, o, newMemory())
	w.add(urls("http://a.test/pages/", 20)...)
	var begun time.Time
	pages := 0
	w.answer = func(l Lease) answer {
		a := answer{took: 100 * time.Millisecond}
		if l.Kind == Robots {
			return a
		}
		a.reading = 150 * time.Millisecond
		a.wall = wall.Answer{Status: 200, Length: 1 << 20, HTML: true, URL: uint64(l.Head.Ordinal) << 40}
		a.wall.Section, a.wall.Top = wall.Sections(l.Head.RequestURI)
		if pages++; pages > 5 {
			a.state, a.reason, a.wall.Status = storage.Failed, storage.ReasonStatus, 403
		}
		return a
	}
	w.open()
	for begun.IsZero() && w.step(epoch.Add(time.Minute)) {
		if walls := w.f.TakeWalls(); len(walls) > 0 {
			begun = w.now
		}
	}
	requests := len(w.log) + len(w.out)
	w.run(time.Minute)
	if begun.IsZero() || len(w.log) != requests {
		t.Errorf("the wall begins at %v, and %v follow within a minute", begun, w.log[min(requests, len(w.log)):])
	}
	assert.Equal(t, w.state(t, w.log[requests-1].url).State, storage.Retrying,
		"the outcome of the page with which the wall began")
}

// TestStartsAreSpread: many hosts that could all begin at once do not, whether the store knows them
// or a page links to them. One host alone begins at once, and no host waits longer than its delay.
func TestStartsAreSpread(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts int
		found bool    // while the crawl runs
		most  float64 // part of the hosts that begin within the same hundred milliseconds
	}{
		{"one", 1, false, 1},
		{"one that is found", 1, true, 1},
		{"many", 3000, false, 0.25},
		{"many that are found", 3000, true, 0.25},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := testOptions()
			o.Politeness.Delay = 2 * time.Second
			o.Resolvers = c.hosts
			o.Jitter = rand.New(rand.NewPCG(3, 4)).Float64
			m := newMemory()
			w := newWorld(t, o, m)
			w.quick, w.workers, w.loadTime = true, c.hosts, 0
			var urls []string
			for i := range c.hosts {
				name := fmt.Sprintf("h%d.test", i)
				urls = append(urls, "http://"+name+"/")
				if !c.found {
					m.makeUp(weburl.Origin{Scheme: "http", Host: name, Port: 80}, 1)
				}
			}
			w.open()
			if c.found {
				w.add(urls...)
			}
			w.run(5 * time.Second)
			begun := map[string]bool{}
			at := map[time.Duration]int{}
			busiest := 0
			for _, r := range w.log {
				if begun[r.host] {
					continue
				}
				begun[r.host] = true
				since := r.start.Sub(epoch)
				must.True(t, since <= o.Politeness.Delay+100*time.Millisecond,
					"%v: the first request comes after more than a delay", r)
				assert.True(t, c.hosts != 1 || since <= 50*time.Millisecond,
					"%v: a host that is alone does not begin at once", r)
				at[since/(100*time.Millisecond)]++
				busiest = max(busiest, at[since/(100*time.Millisecond)])
			}
			must.True(t, len(begun) == c.hosts, "%d of %d hosts were fetched from", len(begun), c.hosts)
			assert.AtMost(t, float64(busiest)/float64(c.hosts), c.most,
				"% of the hosts begin within a tenth of a second")
		})
	}
}

// TestLargeHostLeavesRoom crawls a host of a million URLs and one of three with one worker: the
// small one is done as soon as its delay allows.
func TestLargeHostLeavesRoom(t *testing.T) {
	o := testOptions()
	m := newMemory()
	m.makeUp(weburl.Origin{Scheme: "http", Host: "large.test", Port: 80}, 1_000_000)
	m.makeUp(weburl.Origin{Scheme: "http", Host: "small.test", Port: 80}, 3)
	w := newWorld(t, o, m)
	w.workers = 1
	// The large one alone would keep the worker busy.
	w.answer = func(Lease) answer { return answer{took: 900 * time.Millisecond} }
	w.open()
	w.run(20 * time.Second)
	if n := w.served()["small.test"]; n != 3 {
		t.Errorf("%d of the 3 pages of the small host were fetched in 20 seconds, %d of the large one", n,
			w.served()["large.test"])
	}
	w.checkManners()
}

// TestRestart keeps a host's waits over a stop, and adds the restart hold after a crash.
func TestRestart(t *testing.T) {
	for _, c := range []struct {
		name  string
		crash bool
		least time.Duration // from the last request of the old process, or its end
	}{
		{"stopped", false, 20 * time.Second},
		{"crashed", true, 20 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, testOptions(), newMemory())
			w.add(urls("http://a.test/", 10)...)
			w.answer = func(Lease) answer {
				return answer{took: 10 * time.Millisecond, body: "User-agent: *\nCrawl-delay: 20\n"}
			}
			w.open()
			w.run(50 * time.Second)
			requests := len(w.log)
			from := w.log[requests-1].end
			if c.crash {
				from = w.now
				w.crash()
			}
			w.open()
			w.run(time.Minute)
			next := w.log[requests]
			assert.True(t, next.start.Sub(from) >= c.least && next.start.Sub(from) <= c.least+time.Second &&
				next.kind == Page, "%v after %v: %v", next, from.Sub(epoch), next.start.Sub(from))
			w.checkManners()
		})
	}
}

// TestRestartOfUnknownHost leaves a host alone for ten seconds after a crash if its crawl delay is
// not known.
func TestRestartOfUnknownHost(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://a.test/1")
	w.open()
	w.run(50 * time.Millisecond) // robots.txt is under way
	w.crash()
	at := w.now
	w.open()
	w.run(time.Minute)
	assert.AtLeast(t, w.log[1].start.Sub(at), RestartDelay, "after the crash")
}

// urls are n URLs of one folder.
func urls(folder string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", folder, i))
	}
	return all
}

func (w *world) state(t *testing.T, u string) storage.Outcome {
	t.Helper()
	m := w.disk.(*memory)
	parsed := mustURL(t, u)
	h := m.hosts[m.ids[parsed.Host()]]
	for _, e := range h.urls {
		if h.Queues[e.Origin].Origin == parsed.Origin() && e.RequestURI == parsed.RequestURI() {
			o := h.last[e.Ordinal]
			o.State = h.states[e.Ordinal]
			return o
		}
	}
	t.Fatalf("%s is not on the disk", u)
	return storage.Outcome{}
}
