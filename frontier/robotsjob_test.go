package frontier

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

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
	assert.Slice(t, pages, []string{"http://a.test/1", "http://b.test/2"}, "fetched")
	for _, u := range []string{"http://a.test/closed", "http://b.test/closed"} {
		o := w.state(t, u)
		assert.True(t, o.State == storage.Denied && o.Reason == storage.ReasonRobots && o.Line == 2, "%s: %+v", u, o)
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
		assert.True(t, err == nil && record.Class == robots.ClassUnreachable && record.Failures >= c.failures,
			"after %v the robots.txt is %+v, %v", c.after, record, err)
	}
	must.True(t, len(w.pages()) == 0, "fetched %q without robots.txt", w.pages())
	assert.True(t, w.f.Finished(w.now, 5*time.Minute) && !w.f.Finished(w.now, time.Hour),
		"the crawl should have finished for whoever waits five minutes, and not for whoever waits an hour")
	w.finish(2*time.Hour, 3*time.Hour)
	assert.Equal(t, len(w.pages()), 1, "fetched", w.pages())
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
	assert.Equal(t, len(w.pages()), 4, "fetched", w.pages())
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
	assert.True(t, files["http://h.test/robots.txt"] == 1 && files["https://h.test/robots.txt"] == 1,
		"requests for robots.txt: %v, want one of each", files)
	assert.Equal(t, len(w.pages()), 2, "fetched")
	w.checkManners()
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
	assert.Equal(t, len(w.pages()), pages+others, "pages")
	own, served, total := 4, 0, 0
	for _, r := range w.log {
		switch {
		case r.host != "b.test":
		case r.url != "http://b.test/rules.txt":
			own++
			total++
		default:
			assert.True(t, own >= jobShare-1 || total >= pages,
				"a job of another host after %d requests of its own, %d in all", own, total)
			own = 0
			served++
		}
	}
	assert.True(t, served == others && waiting == maxJobs, "%d jobs were served, up to %d waited; want %d and %d",
		served, waiting, others, maxJobs)
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
	must.True(t, len(at) == 2, "%v", w.log)
	for _, r := range w.log[at[0]+1 : at[1]] {
		assert.Not(t, r.host, "b.test", r, "was fetched before the host's own")
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
	n := m.fetched()
	assert.True(t, n["a.test"] == 2 && n["b.test"] == 1, "fetched %v", n)
}
