package frontier

import (
	"fmt"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// TestNewOriginBehindClosedOne finds a URL of a new origin while all the others of its host are
// held for a day, whether the host is active or dormant.
func TestNewOriginBehindClosedOne(t *testing.T) {
	for _, pause := range []time.Duration{0, 3 * time.Second, 10 * time.Minute} {
		w := newWorld(t, testOptions(), newMemory())
		w.add(urls("http://a.test/", 100)...)
		w.answer = func(l Lease) answer {
			if l.URL.Scheme() == "http" {
				return answer{body: "User-agent: *\nDisallow: /\n", took: time.Millisecond}
			}
			return answer{took: time.Millisecond}
		}
		w.open()
		w.run(pause)
		w.add("https://a.test/new")
		w.run(3 * time.Minute)
		got := w.pages()
		assert.True(t, len(got) == 1 && got[0] == "https://a.test/new", "after %v: fetched %q", pause, got)
	}
}

// TestRulesChange applies new rules to the queue, and rechecks the denied URLs.
func TestRulesChange(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add(urls("http://a.test/x/", 2000)...)
	body := "User-agent: *\nDisallow: /x/1\nCrawl-delay: 2"
	w.answer = func(l Lease) answer {
		return answer{took: 10 * time.Millisecond, body: body, maxAge: 10 * time.Minute}
	}
	w.open()
	w.run(5 * time.Minute)
	body = "User-agent: *\nDisallow: /x/5"
	w.run(15 * time.Minute)
	changes := w.f.TakeRechecks()
	assert.True(t, len(changes) == 1 && changes[0].Host == 1 && changes[0].Rules.Match("/x/1").Allowed, "rechecks: %+v",
		changes)
	changed := false
	for _, r := range w.log[1:] {
		switch {
		case r.kind == Robots:
			changed = true
		case !changed && r.url[len("http://a.test/x/")] == '1', changed && r.url[len("http://a.test/x/")] == '5':
			t.Fatalf("%v, against the rules", r)
		case !changed && r.delay != 2*time.Second, changed && r.delay != time.Second:
			t.Fatalf("%v: delay %v", r, r.delay)
		}
	}
	assert.True(t, changed, "robots.txt was not fetched again")
	for _, r := range w.log[1:] {
		assert.True(t, r.kind != Robots || r.start.Sub(epoch) <= 9*time.Minute+30*time.Second,
			"%v: it should be fetched again before it expires", r)
		if r.kind == Robots {
			break
		}
	}
}

// TestClosedSiteEnds lets a crawl end though a site is closed by a robots.txt that is valid for a
// short time only.
func TestClosedSiteEnds(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://a.test/1")
	w.answer = func(Lease) answer {
		return answer{took: time.Millisecond, body: "User-agent: *\nDisallow: /\n", maxAge: 10 * time.Minute}
	}
	w.open()
	w.finish(2*time.Hour, time.Hour)
	assert.True(t, len(w.log) <= 9 && len(w.pages()) == 0, "fetched %v", w.log)
	var postponed []View
	w.f.Waiting(w.now, func(h View) { postponed = append(postponed, h) })
	assert.True(t, len(postponed) == 1 && postponed[0].Left == 1 && postponed[0].Robots == robots.ReasonRule &&
		postponed[0].Until.After(w.now), "postponed: %+v", postponed)
	assert.Equal(t, w.state(t, "http://a.test/1").State, storage.Queued, "the URL")
}

// TestRefused records the outcomes of URLs that may not be fetched without a request.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options, *world)
		url    string
		want   storage.Outcome
	}{
		{"outside the scope", func(_ *Options, w *world) {
			w.scope = NewScope(ModeHost, nil, nil,
				mustURL(t, "http://a.test/"))
		},
			"http://b.test/", storage.Outcome{State: storage.Excluded, Reason: storage.ReasonScope}},
		{"inside the scope", func(_ *Options, w *world) {
			w.scope = NewScope(ModeHost, nil, nil,
				mustURL(t, "http://a.test/"))
		},
			"http://a.test/", storage.Outcome{State: storage.Fetched}},
		{"too deep", func(o *Options, _ *world) { o.MaxDepth = 2 }, "http://a.test/",
			storage.Outcome{State: storage.Excluded, Reason: storage.ReasonDepth}},
		{"just not too deep", func(o *Options, _ *world) { o.MaxDepth = 3 }, "http://a.test/",
			storage.Outcome{State: storage.Fetched}},
		{"denied", func(*Options, *world) {}, "http://a.test/closed/",
			storage.Outcome{State: storage.Denied, Reason: storage.ReasonRobots, Line: 2}},
		{"rules are ignored", func(o *Options, _ *world) { o.Obey = false }, "http://a.test/closed/",
			storage.Outcome{State: storage.Fetched}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, testOptions(), newMemory())
			c.change(&w.o, w)
			f := w.found(c.url)
			f.Depth = 3
			w.commit(storage.Batch{Found: []storage.Found{f}})
			w.answer = func(Lease) answer {
				return answer{took: time.Millisecond, body: "User-agent: *\nDisallow: /closed/\nAllow: /closed/not\n"}
			}
			w.open()
			w.finish(time.Minute, time.Hour)
			got := w.state(t, c.url)
			assert.True(t, got.State == c.want.State && got.Reason == c.want.Reason && got.Line == c.want.Line &&
				!got.At.IsZero(), "%+v, want %+v", got, c.want)
			if requested := len(w.pages()) > 0; requested != (c.want.State == storage.Fetched) {
				t.Errorf("fetched %q", w.pages())
			}
		})
	}
}

// TestRobotsUnreachableForAMonth: while its robots.txt cannot be read for more than thirty days, an
// origin counts as one without a robots.txt only if another of its host is being crawled all the
// while.
func TestRobotsUnreachableForAMonth(t *testing.T) {
	for _, other := range []bool{true, false} {
		w := newWorld(t, testOptions(), newMemory())
		w.quick = true
		w.answer = func(l Lease) answer {
			a := answer{took: 100 * time.Millisecond, body: "User-agent: *\nCrawl-delay: 3600\n",
				maxAge: 24 * time.Hour}
			if l.Kind == Robots && l.Robots.Origin.Port == 8080 {
				a.failure, a.signal = robots.FailureTimeout, politeness.SignalUnreachable
			}
			return a
		}
		w.add("http://h.test:8080/a")
		if other {
			for i := range 1000 { // more than a month's work
				w.add(fmt.Sprintf("http://h.test/%d", i))
			}
		}
		w.open()
		w.run(29 * 24 * time.Hour)
		n := len(pagesAt(w, 8080))
		must.True(t, n == 0, "%d pages before thirty days", n)
		w.run(3 * 24 * time.Hour)
		assert.Equal(t, (len(pagesAt(w, 8080)) > 0), other,
			"another origin can be reached pages were fetched after thirty days")
	}
}

func pagesAt(w *world, port uint16) (urls []string) {
	for _, text := range w.pages() {
		if u, err := weburl.Parse(text); err == nil && u.Origin().Port == port {
			urls = append(urls, text)
		}
	}
	return urls
}

// TestVisitTimeAndRates: a host is fetched from within its hours only, and as slowly as it demands,
// over days and restarts.
func TestVisitTimeAndRates(t *testing.T) {
	o := testOptions()
	m := newMemory()
	m.makeUp(weburl.Origin{Scheme: "http", Host: "night.test", Port: 80}, 100_000)
	w := newWorld(t, o, m)
	w.answer = func(l Lease) answer {
		return answer{took: 100 * time.Millisecond, maxAge: 24 * time.Hour,
			body: "User-agent: *\nCrawl-delay: 30\nVisit-time: 2200-0400\nRequest-rate: 1/5m 0000-0200\n"}
	}
	w.quick = true
	w.open()
	for day := range 3 {
		w.run(24 * time.Hour)
		if day == 1 {
			w.crash()
			w.open()
		}
	}
	pages := 0
	var before request
	for i, r := range w.log {
		minute := r.start.Hour()*60 + r.start.Minute()
		if r.kind == Page || i > 0 {
			must.True(t, minute >= 22*60 || minute < 4*60, "%v is outside of the hours: %v", r, r.start)
		}
		gap := r.start.Sub(before.end)
		must.True(t, i <= 1 || minute >= 2*60 || gap >= 5*time.Minute, "%v comes %v after the one before", r, gap)
		if r.kind == Page {
			pages++
		}
		before = r
	}
	// A night has four hours at 30 seconds and two at five minutes.
	least, most := 3*(4*115+2*11), 3*(4*121+2*13)
	assert.True(t, pages >= least && pages <= most, "%d pages in three nights, want %d to %d", pages, least, most)
}

// TestCrawlDelayOfQuietOrigin keeps the Crawl-delay of an origin without work, also in a later
// process, which does not read its robots.txt.
func TestCrawlDelayOfQuietOrigin(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("https://a.test/1")
	w.add(urls("http://a.test/", 10)...)
	w.answer = func(l Lease) answer {
		a := answer{took: 10 * time.Millisecond}
		if l.URL.Scheme() == "https" {
			a.body = "User-agent: *\nCrawl-delay: 20\n"
		}
		return a
	}
	w.open()
	w.run(70 * time.Second)
	w.open()
	w.events, w.busy = nil, 0
	requests := len(w.log)
	w.finish(time.Hour, time.Hour)
	for _, r := range w.log[requests:] {
		must.True(t, r.delay == 20*time.Second, "%v: delay %v", r, r.delay)
	}
	assert.Equal(t, len(w.pages()), 11, "fetched", w.pages())
}

// TestDecide: what the frontier remembers of a decision never differs from the decision of the
// moment, although the delay in force changes.
func TestDecide(t *testing.T) {
	for class, copied := range map[robots.Class]robots.Class{
		robots.ClassFound: robots.ClassFound, robots.ClassUnavailable: robots.ClassUnavailable,
		robots.ClassNotRobots: robots.ClassNotRobots, robots.ClassUnreachable: robots.ClassFound,
	} {
		f := must.Get(New(testOptions(), NewScope(ModeAny, nil, nil), epoch))(t)
		q, remembered := new(originQueue), 0
		q.setRules(robots.Record{
			Class: class, Copy: copied, Fetched: epoch, Expires: epoch.Add(10 * time.Hour),
			Refresh: epoch.Add(8 * time.Hour), FirstUnreachable: epoch, Failures: 1,
		}, nil)
		for i := range 90 {
			now := epoch.Add(time.Duration(i) * time.Hour)
			delay := [...]time.Duration{time.Second, 3 * time.Hour, 0}[i%3]
			want := f.o.Robots.Decide(*q.record, delay, now)
			if f.instant(now) < q.matchUntil {
				remembered++
			}
			got := f.decide(&turn{now: now, at: f.instant(now), polite: politeness.Explanation{Delay: delay}}, q)
			assert.True(t, got.Kind == want.Kind && got.RefreshDue == want.RefreshDue,
				"%v after %d h, delay %v: %+v, want %+v", class, i, delay, got, want)
		}
		assert.Equal(t, (remembered == 0), (class == robots.ClassUnreachable), class, remembered,
			"decisions are remembered")
	}
}

// TestDecideAfterClockIsSet: the lifetime of a stored record, which has wall times, counts by the
// wall clock of the moment and not by that of the epoch.
func TestDecideAfterClockIsSet(t *testing.T) {
	start := time.Now()
	f := must.Get(New(testOptions(), NewScope(ModeAny, nil, nil), start))(t)
	// set forward by a day
	at := func(after time.Duration) time.Time { return stepWall(start.Add(after), 24*time.Hour) }
	fetched := at(time.Minute).Round(0)
	q := new(originQueue)
	q.setRules(robots.Record{Class: robots.ClassFound, Copy: robots.ClassFound, Fetched: fetched,
		Expires: fetched.Add(time.Hour), Refresh: fetched.Add(time.Hour)}, nil)
	for after, want := range map[time.Duration]robots.DecisionKind{
		2 * time.Minute: robots.DecisionMatch, 60 * time.Minute: robots.DecisionMatch,
		62 * time.Minute: robots.DecisionFetch,
	} {
		q.matchUntil = always
		for _, now := range []time.Time{at(2 * time.Minute), at(after)} {
			f.readClock(now)
			d := f.decide(&turn{now: now, at: f.instant(now)}, q)
			assert.True(t, !now.Equal(at(after)) || d.Kind == want, "%v after the start: %v, want %v", after, d.Kind,
				want)
		}
	}
}
