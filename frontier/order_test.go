package frontier

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// addWith puts URLs of a priority on the disk.
func (w *world) addWith(priority int8, urls ...string) {
	w.t.Helper()
	var b storage.Batch
	for _, u := range urls {
		f := w.found(u)
		f.Priority = priority
		b.Found = append(b.Found, f)
	}
	w.commit(b)
}

func numbered(prefix string, n int) (urls []string) {
	for i := range n {
		urls = append(urls, fmt.Sprintf("%s%d", prefix, i))
	}
	return urls
}

func TestOrderByPriority(t *testing.T) {
	o := testOptions()
	o.Heads = 4 // so that nearly everything is read in several loads
	w := newWorld(t, o, newMemory())
	low, normal := numbered("http://a.test/low", 9), numbered("http://a.test/n", 30)
	high, other := numbered("http://a.test/high", 9), numbered("https://a.test/high", 3)
	w.addWith(-2, low[:5]...)
	w.addWith(-1, low[5:]...)
	w.addWith(0, normal...)
	w.addWith(3, high[:5]...)
	w.addWith(9, high[5:]...)
	w.addWith(5, other...)
	w.open()
	w.finish(time.Hour, time.Hour)
	want := slices.Concat(high[5:], other, high[:5], normal, low[5:], low[:5])
	assert.Slice(t, w.pages(), want, "fetched")
	w.checkManners()
}

// What is found while its host is active goes before all that waits there already, at once and not
// when the queue is read the next time.
func TestPriorityFoundLater(t *testing.T) {
	for _, ordinary := range []int{3, 200} {
		w := newWorld(t, testOptions(), newMemory())
		w.add(numbered("http://a.test/n", ordinary)...)
		w.open()
		w.run(3 * time.Second)
		before := len(w.pages())
		w.addWith(7, numbered("http://a.test/high", 100)...)
		w.finish(time.Hour, time.Hour)
		pages := w.pages()
		first := slices.Index(pages, "http://a.test/high0")
		assert.True(t, first <= before+2 && pages[first+99] == "http://a.test/high99",
			"%d ordinary URLs: after %d pages 100 of a priority were added, and fetched from page %d on", ordinary,
			before, first)
	}
}

// A URL of a low priority is no worse off when it fails than any other.
func TestLowPriorityRetries(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add(numbered("http://a.test/n", 5)...)
	w.addWith(-5, "http://a.test/low")
	tries := map[string]int{}
	w.answer = func(l Lease) answer {
		a := answer{took: 50 * time.Millisecond}
		if tries[l.URL.String()]++; l.Kind == Page && tries[l.URL.String()] == 1 {
			a.state = storage.Retrying
		}
		return a
	}
	w.open()
	w.finish(time.Hour, time.Hour)
	if pages := w.pages(); len(pages) != 12 || pages[5] != "http://a.test/low" || pages[11] != "http://a.test/low" {
		t.Errorf("fetched %v", pages)
	}
}

// A URL whose request was not sent keeps its position.
func TestPriorityPutBack(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.addWith(2, numbered("http://a.test/high", 3)...)
	n := 0
	w.answer = func(Lease) answer {
		n++
		return answer{took: 50 * time.Millisecond, notSent: n == 2}
	}
	w.open()
	w.finish(time.Hour, time.Hour)
	want := []string{"http://a.test/high0", "http://a.test/high0", "http://a.test/high1", "http://a.test/high2"}
	assert.Slice(t, w.pages(), want, "fetched")
}

// What a page of the default priority brings goes before URLs of a lower one, though it is not on
// the disk at once.
func TestLowPriorityWaitsForDiscoveries(t *testing.T) {
	for _, commitTime := range []time.Duration{time.Millisecond, 5 * time.Second} {
		w := newWorld(t, testOptions(), newMemory())
		w.commitTime = commitTime
		w.add("http://a.test/n0")
		w.addWith(-1, "http://a.test/low")
		w.answer = func(l Lease) answer {
			a := answer{took: 50 * time.Millisecond}
			if n := len(w.pages()); l.Kind == Page && n < 5 {
				a.found = []string{fmt.Sprintf("http://a.test/n%d", n+1)}
			}
			return a
		}
		w.open()
		w.finish(time.Hour, time.Hour)
		want := append(numbered("http://a.test/n", 6), "http://a.test/low")
		assert.Slice(t, w.pages(), want, "fetched")
	}
}

// TestDueBehindHeld has very many retries of an origin that closes for a day, and retries of one
// that does not: the first are not read again and again, and the others do not wait for them.
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
		assert.Equal(t, w.state(t, u).State, storage.Fetched, u)
	}
	assert.AtMost(t, w.loads-loads, 20, "loads in five minutes")
}

// TestManyDue has many more retries due than are held in memory: they follow each other as fast as
// the host allows.
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

// hostsInARow are the hosts of the requests so far, with the number of requests in a row.
func (w *world) hostsInARow() (runs []string) {
	var last string
	n := 0
	note := func() {
		if n > 0 {
			runs = append(runs, fmt.Sprint(last, " ", n))
		}
	}
	for _, r := range w.log {
		if r.lease.HostName != last {
			note()
			last, n = r.lease.HostName, 0
		}
		n++
	}
	note()
	return runs
}

// Without a delay a host has several requests in a row, and then the others have theirs.
func TestTurns(t *testing.T) {
	for _, c := range []struct {
		delay time.Duration
		want  string
	}{
		{0, "[a 8 b 8 c 8 a 3 b 3 c 3]"},
		{10 * time.Millisecond, "[a 1 b 1 c 1 a 1 b 1 c 1 a 1 b 1 c 1"}, // all are due when a request ends
		{time.Second, "[a 1 b 1 c 1 a 1 b 1 c 1 a 1 b 1 c 1"},
	} {
		o := testOptions()
		o.Politeness.Delay = c.delay
		w := newWorld(t, o, newMemory())
		w.workers = 1
		for _, host := range []string{"a", "b", "c"} {
			w.add(urls("http://"+host+"/", 10)...)
		}
		w.answer = func(Lease) answer { return answer{took: 100 * time.Millisecond} }
		w.open()
		w.finish(time.Hour, time.Hour)
		if got := fmt.Sprint(w.hostsInARow()); !strings.HasPrefix(got, c.want) {
			t.Errorf("delay %v: requests in a row %s, want %s", c.delay, got, c.want)
		}
		w.checkManners()
	}
}

// TestTurnsOfUntriedHosts: hosts that nobody has tried have several requests in a row when such hosts have
// answered, and one if a part of them has held requests without a response.
func TestTurnsOfUntriedHosts(t *testing.T) {
	const hosts = 250
	for _, tarpits := range []int{0, 4} { // one host in so many
		o := testOptions()
		o.Politeness.Delay, o.Workers = 0, 1
		w := newWorld(t, o, newMemory())
		w.workers = 1
		for i := range hosts {
			w.add(urls(fmt.Sprintf("http://h%04d/", i), 2)...)
		}
		w.answer = func(l Lease) answer {
			if i, _ := strconv.Atoi(l.HostName[1:]); tarpits > 0 && i%tarpits == 0 && l.Kind == Page {
				return answer{took: 2 * time.Second, signal: politeness.SignalUnreachable}
			}
			return answer{took: 400 * time.Millisecond}
		}
		w.open()
		w.finish(24*time.Hour, 24*time.Hour)
		runs := 0
		for _, run := range w.hostsInARow() {
			if !strings.HasSuffix(run, " 1") {
				runs++
			}
		}
		assert.True(t, (tarpits != 0 || runs >= hosts/2) && (tarpits <= 0 || runs <= hosts/100),
			"1 tarpit in %d: %d of %d hosts had requests in a row", tarpits, runs, hosts)
	}
}

// A page that always fails is tried between the other pages of its host, of the same origin and of
// another. If its failures followed each other, they would be a reason to back off from the host.
func TestFailingPageOfSlowHost(t *testing.T) {
	for _, others := range []string{"http://a.test/n", "https://a.test/n"} {
		w := newWorld(t, testOptions(), newMemory())
		w.add("http://a.test/broken")
		w.add(numbered(others, 40)...)
		w.answer = func(l Lease) answer {
			switch {
			case l.Kind == Robots:
				return answer{took: time.Millisecond, body: "User-agent: *\nCrawl-delay: 600\n", maxAge: 24 * time.Hour}
			case l.URL.String() == "http://a.test/broken":
				return answer{took: time.Millisecond, signal: politeness.SignalUnreachable, state: storage.Retrying}
			}
			return answer{took: time.Millisecond}
		}
		w.open()
		w.finish(24*time.Hour, 10*time.Hour)
		pages, want := len(w.pages()), 40+int(w.o.MaxAttempts)
		must.True(t, pages == want, "%d pages were fetched, want %d", pages, want)
		for i := range w.log[1:] {
			assert.True(t, w.log[i].url != w.log[i+1].url, "twice in a row: %v, %v", w.log[i], w.log[i+1])
		}
		w.checkManners()
	}
}
