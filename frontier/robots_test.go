package frontier

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
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
		if got := w.pages(); len(got) != 1 || got[0] != "https://a.test/new" {
			t.Errorf("after %v: fetched %q", pause, got)
		}
	}
}

// TestURLsOfHostWithRobotsJob fetches from a host that is known only because the robots.txt of
// another redirects there, and then pages of its own.
func TestURLsOfHostWithRobotsJob(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://a.test/1")
	w.answer = func(l Lease) answer {
		switch l.URL.String() {
		case "http://a.test/robots.txt":
			return answer{location: "http://b.test/robots.txt", took: 10 * time.Millisecond}
		case "http://b.test/robots.txt":
			return answer{body: "User-agent: *\nDisallow: /closed\n", took: 3 * time.Second}
		}
		return answer{took: 10 * time.Millisecond}
	}
	w.open()
	w.run(2 * time.Second)
	w.add("http://b.test/2", "http://b.test/closed", "http://a.test/closed")
	w.finish(time.Minute, time.Hour)
	w.checkManners()
	pages := w.pages()
	slices.Sort(pages)
	if want := []string{"http://a.test/1", "http://b.test/2"}; !slices.Equal(pages, want) {
		t.Errorf("fetched %q, want %q", pages, want)
	}
	for _, u := range []string{"http://a.test/closed", "http://b.test/closed"} {
		if o := w.state(t, u); o.State != storage.Denied || o.Reason != storage.ReasonRobots || o.Line != 2 {
			t.Errorf("%s: %+v", u, o)
		}
	}
}

// TestRobotsOfUnknownHost redirects robots.txt to a host that does not exist: the file is
// unreachable, and fetched again later.
func TestRobotsOfUnknownHost(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://a.test/1")
	good := w.resolve
	w.resolve = func(l Lease) ResolveReport {
		if l.HostName == "b.test" && w.now.Before(epoch.Add(10*time.Minute)) {
			return ResolveReport{Absent: true}
		}
		return good(l)
	}
	w.answer = func(l Lease) answer {
		if l.URL.Host() == "a.test" && l.Kind == Robots {
			return answer{location: "http://b.test/robots.txt", took: time.Millisecond}
		}
		return answer{took: time.Millisecond}
	}
	w.open()
	for _, c := range []struct {
		after    time.Duration
		failures int
	}{{time.Second, 1}, {9 * time.Minute, 2}} {
		w.run(c.after)
		record, err := robots.DecodeRecord(w.disk.(*memory).policies[weburl.Origin{Scheme: "http", Host: "a.test",
			Port: 80}])
		if err != nil || record.Class != robots.ClassUnreachable || record.Failures < c.failures {
			t.Errorf("after %v the robots.txt is %+v, %v", c.after, record, err)
		}
	}
	if len(w.pages()) > 0 {
		t.Fatalf("fetched %q without robots.txt", w.pages())
	}
	if !w.f.Finished(w.now, 5*time.Minute) || w.f.Finished(w.now, time.Hour) {
		t.Error("the crawl should have finished for whoever waits five minutes, and not for whoever waits an hour")
	}
	w.finish(2*time.Hour, 3*time.Hour)
	if len(w.pages()) != 1 {
		t.Errorf("fetched %q", w.pages())
	}
}

// TestRobotsJobsNeedNoRoom lets all hosts that may be active wait for another.
func TestRobotsJobsNeedNoRoom(t *testing.T) {
	o := testOptions()
	o.ActiveHosts = 2
	w := newWorld(t, o, newMemory())
	w.add("http://a.test/1", "http://b.test/1", "http://c.test/1", "http://d.test/1")
	w.answer = func(l Lease) answer {
		if l.Kind == Robots && l.URL.Host() != "elsewhere.test" {
			return answer{location: "http://elsewhere.test/robots.txt", took: time.Millisecond}
		}
		return answer{took: time.Millisecond}
	}
	w.open()
	w.finish(10*time.Minute, time.Hour)
	if len(w.pages()) != 4 {
		t.Errorf("fetched %q", w.pages())
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
	if len(changes) != 1 || changes[0].Host != 1 || !changes[0].Rules.Match("/x/1").Allowed {
		t.Errorf("rechecks: %+v", changes)
	}
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
	if !changed {
		t.Error("robots.txt was not fetched again")
	}
	for _, r := range w.log[1:] {
		if r.kind == Robots && r.start.Sub(epoch) > 9*time.Minute+30*time.Second {
			t.Errorf("%v: it should be fetched again before it expires", r)
		}
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
	if len(w.log) > 9 || len(w.pages()) > 0 {
		t.Errorf("fetched %v", w.log)
	}
	var postponed []View
	w.f.Waiting(w.now, func(h View) { postponed = append(postponed, h) })
	if len(postponed) != 1 || postponed[0].Left != 1 || postponed[0].Robots != robots.ReasonRule ||
		!postponed[0].Until.After(w.now) {
		t.Errorf("postponed: %+v", postponed)
	}
	if o := w.state(t, "http://a.test/1"); o.State != storage.Queued {
		t.Errorf("the URL is %v", o.State)
	}
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
			if got.State != c.want.State || got.Reason != c.want.Reason || got.Line != c.want.Line || got.At.IsZero() {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if requested := len(w.pages()) > 0; requested != (c.want.State == storage.Fetched) {
				t.Errorf("fetched %q", w.pages())
			}
		})
	}
}

// TestRedirectedRulesAreShared: http redirects to the robots.txt of https on the same host. One
// request for the file is enough for both, and its rules count for both.
func TestRedirectedRulesAreShared(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.answer = func(l Lease) answer {
		a := answer{took: 100 * time.Millisecond, body: "User-agent: *\nDisallow: /private\n", maxAge: 24 * time.Hour}
		if strings.HasPrefix(l.URL.String(), "http://") {
			a.location = "https://h.test/robots.txt"
		}
		return a
	}
	w.add("http://h.test/a", "http://h.test/private/b", "https://h.test/c", "https://h.test/private/d")
	w.open()
	w.finish(time.Minute, time.Hour)
	files := map[string]int{}
	for _, r := range w.log {
		if r.kind == Robots {
			files[r.url]++
		}
	}
	if files["http://h.test/robots.txt"] != 1 || files["https://h.test/robots.txt"] != 1 {
		t.Errorf("requests for robots.txt: %v, want one of each", files)
	}
	if pages := w.pages(); len(pages) != 2 {
		t.Errorf("fetched %v", pages)
	}
	w.checkManners()
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
		if n := len(pagesAt(w, 8080)); n != 0 {
			t.Fatalf("%d pages before thirty days", n)
		}
		w.run(3 * 24 * time.Hour)
		if n := len(pagesAt(w, 8080)); (n > 0) != other {
			t.Errorf("another origin can be reached: %t; %d pages were fetched after thirty days", other, n)
		}
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

// TestJobsOfOthers: hosts whose robots.txt redirects to another host get one request in five of it,
// only some of them wait for it at a time, and in the end each of them is crawled all the same.
func TestJobsOfOthers(t *testing.T) {
	const others, pages = 60, 400
	w := newWorld(t, testOptions(), newMemory())
	w.quick = true
	w.add(urls("http://b.test/", pages)...)
	for i := range others {
		w.add(fmt.Sprintf("http://a%d.test/", i))
	}
	waiting := 0
	w.answer = func(l Lease) answer {
		for _, h := range w.f.hosts.hosts {
			if h != nil && h.active != nil && h.active.name == "b.test" {
				waiting = max(waiting, countForeign(h.active.jobs, h))
			}
		}
		a := answer{took: 100 * time.Millisecond}
		if l.Kind == Robots && strings.HasPrefix(l.HostName, "a") {
			a.location = "http://b.test/rules.txt"
		}
		return a
	}
	w.open()
	w.finish(24*time.Hour, 24*time.Hour)
	w.checkManners()
	if n := len(w.pages()); n != pages+others {
		t.Errorf("%d pages", n)
	}
	own, served, total := 4, 0, 0
	for _, r := range w.log {
		switch {
		case r.host != "b.test":
		case r.url != "http://b.test/rules.txt":
			own++
			total++
		default:
			if own < jobShare-1 && total < pages {
				t.Errorf("a job of another host after %d requests of its own, %d in all", own, total)
			}
			own = 0
			served++
		}
	}
	if served != others || waiting != maxJobs {
		t.Errorf("%d jobs were served, up to %d waited; want %d and %d", served, waiting, others, maxJobs)
	}
}

// TestOwnJobsComeFirst: a host that redirects to itself does not wait behind others.
func TestOwnJobsComeFirst(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://b.test/", "https://b.test/")
	for i := range 10 {
		w.add(fmt.Sprintf("http://a%d.test/", i))
	}
	w.answer = func(l Lease) answer {
		a := answer{took: 100 * time.Millisecond}
		switch {
		case l.Kind != Robots:
		case l.HostName != "b.test":
			a.location = "http://b.test/rules.txt"
		case l.URL.Scheme() == "https":
			a.took, a.location = 5*time.Second, "http://b.test/own.txt" // when all others wait
		}
		return a
	}
	w.open()
	w.finish(time.Hour, time.Hour)
	var at []int
	for i, r := range w.log {
		if r.url == "https://b.test/robots.txt" || r.url == "http://b.test/own.txt" {
			at = append(at, i)
		}
	}
	if len(at) != 2 {
		t.Fatalf("%v", w.log)
	}
	for _, r := range w.log[at[0]+1 : at[1]] {
		if r.host == "b.test" {
			t.Errorf("%v was fetched before the host's own", r)
		}
	}
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
			if minute < 22*60 && minute >= 4*60 {
				t.Fatalf("%v is outside of the hours: %v", r, r.start)
			}
		}
		if gap := r.start.Sub(before.end); i > 1 && minute < 2*60 && gap < 5*time.Minute {
			t.Fatalf("%v comes %v after the one before", r, gap)
		}
		if r.kind == Page {
			pages++
		}
		before = r
	}
	// A night has four hours at 30 seconds and two at five minutes.
	if least, most := 3*(4*115+2*11), 3*(4*121+2*13); pages < least || pages > most {
		t.Errorf("%d pages in three nights, want %d to %d", pages, least, most)
	}
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
		if r.delay != 20*time.Second {
			t.Fatalf("%v: delay %v", r, r.delay)
		}
	}
	if len(w.pages()) != 11 {
		t.Errorf("fetched %q", w.pages())
	}
}

// TestRobotsJobOverBudget: a host that is over budget still serves the robots.txt of another.
func TestRobotsJobOverBudget(t *testing.T) {
	o := testOptions()
	o.HostBudget = 2
	m := newMemory()
	w := newWorld(t, o, m)
	w.add(numbered("http://a.test/", 10)...)
	w.answer = func(l Lease) answer {
		a := answer{took: 10 * time.Millisecond}
		if l.Kind == Robots && l.URL.String() == "http://b.test/robots.txt" {
			a.location = "http://a.test/of-b"
		}
		return a
	}
	w.open()
	w.finish(time.Minute, time.Hour)
	w.add("http://b.test/")
	w.finish(time.Minute, time.Hour)
	if n := m.fetched(); n["a.test"] != 2 || n["b.test"] != 1 {
		t.Errorf("fetched %v", n)
	}
}
