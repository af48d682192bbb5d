package frontier

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

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

// TestOneHost crawls two origins of a host: robots.txt of each before its
// pages, pages in the order of their discovery, a second apart.
func TestOneHost(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://a.test/1", "http://a.test/2", "https://a.test/3", "http://a.test/4")
	w.open()
	w.finish(time.Minute, time.Hour)
	w.checkManners()
	var asked []string
	for _, r := range w.log {
		asked = append(asked, r.url)
	}
	want := []string{
		"http://a.test/robots.txt", "http://a.test/1", "http://a.test/2",
		"https://a.test/robots.txt", "https://a.test/3", "http://a.test/4",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if w.resolved != 1 || w.log[1].start.Sub(w.log[0].end) != time.Second {
		t.Errorf("%d resolutions; %v", w.resolved, w.log)
	}
}

// TestNewOriginBehindClosedOne finds a URL of a new origin while all the others of its
// host are held for a day, whether the host is active or dormant.
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
			t.Errorf("after %v: asked %q", pause, got)
		}
	}
}

// TestURLsOfErrandHost asks a host that is known only because another's
// robots.txt redirects there, and then for pages of its own.
func TestURLsOfErrandHost(t *testing.T) {
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
		t.Errorf("asked %q, want %q", pages, want)
	}
	for _, u := range []string{"http://a.test/closed", "http://b.test/closed"} {
		if o := w.state(t, u); o.State != storage.Denied || o.Reason != storage.ReasonRobots || o.Line != 2 {
			t.Errorf("%s: %+v", u, o)
		}
	}
}

// TestRobotsOfUnknownHost redirects robots.txt to a host that does not exist:
// the file is unreachable, and asked for again later.
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
		record, err := robots.DecodeRecord(w.disk.(*memory).policies[weburl.Origin{Scheme: "http", Host: "a.test", Port: 80}])
		if err != nil || record.Class != robots.ClassUnreachable || record.Failures < c.failures {
			t.Errorf("after %v the robots.txt is %+v, %v", c.after, record, err)
		}
	}
	if len(w.pages()) > 0 {
		t.Fatalf("asked %q without robots.txt", w.pages())
	}
	if !w.f.Finished(w.now, 5*time.Minute) || w.f.Finished(w.now, time.Hour) {
		t.Error("the crawl should have finished for whoever waits five minutes, and not for whoever waits an hour")
	}
	w.finish(2*time.Hour, 3*time.Hour)
	if len(w.pages()) != 1 {
		t.Errorf("asked %q", w.pages())
	}
}

// TestErrandsNeedNoRoom lets all hosts that may be active wait for another.
func TestErrandsNeedNoRoom(t *testing.T) {
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
		t.Errorf("asked %q", w.pages())
	}
}

// TestDueBehindHeld has very many retries of an origin that closes for a day, and
// retries of one that does not: the first are not read again and again, and the
// others do not wait for them.
func TestDueBehindHeld(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add(urls("http://a.test/", 200)...)
	tried := map[string]bool{}
	w.answer = func(l Lease) answer {
		u := l.URL.String()
		a := answer{took: time.Millisecond, maxAge: 10 * time.Minute}
		switch {
		case l.Kind == Robots && tried[u] && l.URL.Scheme() == "http":
			a.body, a.maxAge = "User-agent: *\nDisallow: /\n", 24*time.Hour
		case l.Kind == Page && (!tried[u] || l.URL.Scheme() == "http"):
			a.state, a.reason = storage.Retrying, storage.ReasonStatus
		}
		tried[u] = true
		return a
	}
	w.open()
	w.run(12 * time.Minute)
	loads := w.loads
	w.add("https://a.test/1", "https://a.test/2")
	w.run(5 * time.Minute)
	for _, u := range []string{"https://a.test/1", "https://a.test/2"} {
		if s := w.state(t, u).State; s != storage.Fetched {
			t.Errorf("%s is %v", u, s)
		}
	}
	if again := w.loads - loads; again > 20 {
		t.Errorf("%d loads in five minutes", again)
	}
}

// TestManyDue has many more retries due than are held in memory: they follow
// each other as fast as the host allows.
func TestManyDue(t *testing.T) {
	o := testOptions()
	o.Politeness.Delay, o.RetryDelay = 100*time.Millisecond, 5*time.Minute
	w := newWorld(t, o, newMemory())
	w.add(urls("http://a.test/", 500)...)
	tried := map[string]bool{}
	w.answer = func(l Lease) answer {
		if u := l.URL.String(); l.Kind == Page && !tried[u] {
			tried[u] = true
			return answer{took: 10 * time.Millisecond, state: storage.Retrying, reason: storage.ReasonStatus}
		}
		return answer{took: 400 * time.Millisecond}
	}
	w.open()
	w.finish(time.Hour, time.Hour)
	if took := w.now.Sub(epoch); took > 10*time.Minute || len(w.pages()) != 1000 {
		t.Errorf("%d pages in %v", len(w.pages()), took)
	}
}

// TestSettledWhileLoading settles a URL that is due while a load is under way
// which still has it.
func TestSettledWhileLoading(t *testing.T) {
	o := testOptions()
	o.Politeness.Delay, o.RetryDelay, o.Heads = 100*time.Millisecond, time.Second, 4
	w := newWorld(t, o, newMemory())
	w.loadTime, w.commitTime = 800*time.Millisecond, 10*time.Millisecond
	w.add(urls("http://a.test/", 60)...)
	asked := map[string]int{}
	w.answer = func(l Lease) answer {
		u := l.URL.String()
		if asked[u]++; l.Kind == Page && asked[u] == 1 {
			return answer{state: storage.Retrying, reason: storage.ReasonStatus, took: 10 * time.Millisecond}
		}
		return answer{took: 10 * time.Millisecond}
	}
	w.open()
	w.finish(time.Hour, time.Hour)
	for u, n := range asked {
		if n != 2 && u != "http://a.test/robots.txt" {
			t.Errorf("%s was asked %d times, want 2", u, n)
		}
	}
	if len(asked) != 61 {
		t.Errorf("%d URLs were asked", len(asked))
	}
}

// TestRetries counts attempts, waits longer each time and gives up with the
// reason of the last.
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
	if want := []time.Duration{0, 10 * time.Minute, 30 * time.Minute, 70 * time.Minute}; !slices.Equal(starts, want) {
		t.Errorf("asked at %v, want %v", starts, want)
	}
	if got := w.state(t, "http://a.test/1"); got.State != storage.Failed || got.Reason != storage.ReasonFetch+5 || got.Attempts != 4 {
		t.Errorf("in the end it is %+v", got)
	}
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
		if s := w.state(t, u).State; s != storage.Fetched {
			t.Errorf("%s is %v", u, s)
		}
	}
	if n != 3*8 {
		t.Errorf("%d leases, want 24", n)
	}
}

// TestUnknownLease refuses completions of leases that are not out.
func TestUnknownLease(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://a.test/1")
	w.open()
	w.run(time.Second)
	if w.f.CompletePage(77, PageReport{}) == nil || w.f.CompleteRobots(77, RobotsReport{}) == nil || w.f.CompleteResolve(1, ResolveReport{}) == nil {
		t.Error("a lease that is not out was completed")
	}
}

// TestRulesChange applies new rules to what is queued, and asks for the denied
// URLs to be looked at again.
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
		t.Error("robots.txt was not asked for again")
	}
	for _, r := range w.log[1:] {
		if r.kind == Robots && r.start.Sub(epoch) > 9*time.Minute+30*time.Second {
			t.Errorf("%v: it should be asked for again before it expires", r)
		}
		if r.kind == Robots {
			break
		}
	}
}

// TestClosedSiteEnds lets a crawl end though a site is closed by a robots.txt
// that lives for a short time only.
func TestClosedSiteEnds(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://a.test/1")
	w.answer = func(Lease) answer {
		return answer{took: time.Millisecond, body: "User-agent: *\nDisallow: /\n", maxAge: 10 * time.Minute}
	}
	w.open()
	w.finish(2*time.Hour, time.Hour)
	if len(w.log) > 9 || len(w.pages()) > 0 {
		t.Errorf("asked %v", w.log)
	}
	var postponed []View
	w.f.Waiting(w.now, func(h View) { postponed = append(postponed, h) })
	if len(postponed) != 1 || postponed[0].Left != 1 || postponed[0].Robots != robots.ReasonRule || !postponed[0].Until.After(w.now) {
		t.Errorf("postponed: %+v", postponed)
	}
	if o := w.state(t, "http://a.test/1"); o.State != storage.Queued {
		t.Errorf("the URL is %v", o.State)
	}
}

// TestJudged settles what may not be asked without asking.
func TestJudged(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options, *world)
		url    string
		want   storage.Outcome
	}{
		{"outside the scope", func(_ *Options, w *world) { w.scope = NewScope(ModeHost, nil, nil, mustURL(t, "http://a.test/")) },
			"http://b.test/", storage.Outcome{State: storage.Excluded, Reason: storage.ReasonScope}},
		{"inside the scope", func(_ *Options, w *world) { w.scope = NewScope(ModeHost, nil, nil, mustURL(t, "http://a.test/")) },
			"http://a.test/", storage.Outcome{State: storage.Fetched}},
		{"too deep", func(o *Options, _ *world) { o.MaxDepth = 2 }, "http://a.test/", storage.Outcome{State: storage.Excluded, Reason: storage.ReasonDepth}},
		{"just not too deep", func(o *Options, _ *world) { o.MaxDepth = 3 }, "http://a.test/", storage.Outcome{State: storage.Fetched}},
		{"denied", func(*Options, *world) {}, "http://a.test/closed/", storage.Outcome{State: storage.Denied, Reason: storage.ReasonRobots, Line: 2}},
		{"not asked for permission", func(o *Options, _ *world) { o.Obey = false }, "http://a.test/closed/", storage.Outcome{State: storage.Fetched}},
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
			if asked := len(w.pages()) > 0; asked != (c.want.State == storage.Fetched) {
				t.Errorf("asked %q", w.pages())
			}
		})
	}
}

// TestScopeChanges applies a new scope to what is queued already.
func TestScopeChanges(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add(urls("http://a.test/", 20)...)
	w.open()
	w.run(10 * time.Second)
	pages := len(w.pages())
	w.f.SetScope(NewScope(ModeHost, nil, nil, mustURL(t, "http://b.test/")))
	w.finish(time.Minute, time.Hour)
	if again := len(w.pages()); pages == 0 || again > pages+1 {
		t.Errorf("%d pages, then %d", pages, again)
	}
	if o := w.state(t, "http://a.test/19"); o.State != storage.Excluded {
		t.Errorf("%+v", o)
	}
}
