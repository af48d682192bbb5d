package frontier

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// TestDrop drops the queue of a host in the middle of a crawl, while its owner takes its time to do
// so on disk. None of the URLs that were there is fetched any more, all later ones are, and the
// cursor never passes one that waits.
func TestDrop(t *testing.T) {
	const there, later = 100, 20
	for _, dormant := range []bool{false, true} {
		t.Run(fmt.Sprintf("dormant %t", dormant), func(t *testing.T) {
			d := must.Get(storage.Open(t.TempDir(), storage.Options{NoSync: true, MapBytes: 1 << 24}))(t)
			defer d.Close()
			w := newWorld(t, testOptions(), d)
			w.committed = func(*storage.Batch) { checkStore(t, d) }
			w.answer = func(l Lease) answer {
				a := answer{took: 100 * time.Millisecond}
				if l.Head.Ordinal%3 == 0 {
					a.state = storage.Retrying // so that some are due
				}
				return a
			}
			for n := range there {
				w.add(fmt.Sprintf("http://a.test/%d", n))
			}
			w.open()
			if !dormant {
				w.run(30 * time.Second)
			}
			w.f.Drop(1, there, w.now)
			w.collect()
			requested := len(w.pages())
			for n := range later {
				w.add(fmt.Sprintf("http://a.test/later/%d", n))
			}
			w.run(5 * time.Second) // till the owner has done it
			w.commit(dropOnDisk(t, d, there, w.now))
			w.f.Dropped(1, there, w.now)
			w.finish(3*time.Hour, time.Hour)
			old := 0
			for _, u := range w.pages()[requested:] {
				if len(u) < len("http://a.test/later/0") {
					old++
				}
			}
			if old > 1 { // the one that was leased
				t.Errorf("%d dropped URLs were fetched: %q", old, w.pages()[requested:])
			}
			h, err := d.HostByID(1)
			assert.True(t, err == nil &&
				(h.Of(storage.Excluded)+h.Of(storage.Fetched)+h.Of(storage.Failed)) == there+later &&
				h.Of(storage.Excluded) >= 60, "at the end the URLs are %v (%v)", h.Counts, err)
			assert.AtMost(t, len(w.f.commands.drops), 0, "the drop is not forgotten")
			w.checkManners()
		})
	}
}

// dropOnDisk is what the owner of the store commits.
func dropOnDisk(t *testing.T, d *storage.Store, below int, now time.Time) (b storage.Batch) {
	t.Helper()
	must.Get(d.URLs(1, 0, below, func(h storage.Head) {
		if DropMatters().Has(h.Last.State) {
			b.Done = append(b.Done, storage.Done{Host: 1, Ordinal: h.Ordinal, Origin: h.Origin, When: DropMatters(),
				Outcome: DropOutcome(now)})
		}
	}))(t)
	return b
}

func checkStore(t *testing.T, d *storage.Store) {
	t.Helper()
	must.Do(t, d.Check(t.Context(), func(f storage.Finding) { t.Error(f.Text) }))
}

// TestCommittedOfAnother: an outcome that somebody else put into a batch does not end what the
// frontier knows of a URL that is leased.
func TestCommittedOfAnother(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://a.test/1")
	w.open()
	for len(w.pages()) == 0 && w.busy == 0 || len(w.f.hosts.get(1).active.busy) == 0 {
		w.run(100 * time.Millisecond)
	}
	b := storage.Batch{Done: []storage.Done{{Host: 1, When: storage.In(storage.Denied)}}}
	w.f.Committed(&b, storage.Result{}, w.now)
	assert.Equal(t, len(w.f.hosts.get(1).active.busy), 1, "a leased URL is not held as busy")
}

// putBack commits that the URLs of host 1 that can be put back are.
func putBack(t *testing.T, w *world, d *storage.Store) {
	t.Helper()
	var b storage.Batch
	must.Get(d.URLs(1, 0, 1<<20, func(h storage.Head) {
		if CanPutBack().Has(h.Last.State) {
			b.Done = append(b.Done, storage.Done{
				Host: 1, Ordinal: h.Ordinal, Origin: h.Origin, Priority: h.Priority,
				When: storage.In(h.Last.State), Outcome: PutBack(h.Last, w.now),
			})
		}
	}))(t)
	w.commit(b)
}

func openStore(t *testing.T) *storage.Store {
	t.Helper()
	d := must.Get(storage.Open(t.TempDir(), storage.Options{NoSync: true, MapBytes: 1 << 24}))(t)
	t.Cleanup(func() {
		assert.NoError(t, d.Close())
	})
	return d
}

// TestPutBackURLs: URLs that failed are put back and requested exactly once more, whether their
// host is in memory or not, whether they have a recrawl planned or not, and at the pace of their
// host.
func TestPutBackURLs(t *testing.T) {
	const n = 40
	for _, dormant := range []bool{false, true} {
		for _, recrawls := range []bool{false, true} {
			t.Run(fmt.Sprintf("dormant=%t/recrawls=%t", dormant, recrawls), func(t *testing.T) {
				d := openStore(t)
				w := newWorld(t, testOptions(), d)
				if recrawls {
					w = recrawlWorld(t, every(time.Hour), 0.5)
					w.disk = d
				}
				failing := true
				w.answer = func(Lease) answer {
					if failing {
						return answer{took: 100 * time.Millisecond, state: storage.Failed, reason: storage.ReasonStatus}
					}
					return answer{took: 100 * time.Millisecond}
				}
				for i := range n {
					w.add(fmt.Sprintf("http://a.test/%d", i))
				}
				w.open()
				w.run(n * 2 * time.Second)
				if dormant {
					w.run(5 * time.Minute)
				}
				before := len(w.pages())
				failing = false
				putBack(t, w, d)
				w.run(n * 2 * time.Second)
				requested := map[string]int{}
				for _, u := range w.pages()[before:] {
					requested[u]++
				}
				for u, times := range requested {
					assert.Equal(t, times, 1, u, "was requested times after it was put back")
				}
				h, err := d.HostByID(1)
				assert.True(t, err == nil && len(requested) == n && h.Of(storage.Fetched) == n,
					"%d URLs were requested, the host has %v (%v)", len(requested), h.Counts, err)
				checkStore(t, d)
				w.checkManners()
			})
		}
	}
}

// TestPutBackAsksForTheName: URLs that were given up because their name did not exist are put back
// while others of the host are still being given up. The name is looked up again, and one more
// answer that it does not exist is not the end.
func TestPutBackNeedsLookup(t *testing.T) {
	const n = 300
	for _, report := range []ResolveReport{{Absent: true, Reason: 70}, {Final: true, Reason: 71}} {
		d := openStore(t)
		w := newWorld(t, testOptions(), d)
		for i := range n {
			w.add(fmt.Sprintf("http://a.test/%d", i))
		}
		exists, last := false, 0
		w.resolve = func(l Lease) ResolveReport {
			if last++; !exists || report.Absent && last == 1 {
				return report
			}
			return ResolveReport{Addresses: []netip.Addr{addressAt(1)}, TTL: time.Hour}
		}
		w.open()
		for failed(t, d) < 50 && w.now.Sub(epoch) < 24*time.Hour {
			w.run(10 * time.Millisecond)
		}
		left := n - failed(t, d)
		must.True(t, left >= 50 && left <= n-50, "%d URLs are still to be given up", left)
		exists, last = true, 0
		putBack(t, w, d)
		w.finish(48*time.Hour, 48*time.Hour)
		// Lost are those that were on their way to the disk when the others were put back.
		if lost := failed(t, d); lost > n/2 || len(w.pages()) != n-int(lost) {
			t.Errorf("%+v: %d pages, %d URLs are given up without a lookup", report, len(w.pages()), lost)
		}
	}
}

func failed(t *testing.T, d *storage.Store) uint32 {
	t.Helper()
	h := must.Get(d.HostByID(1))(t)
	return h.Of(storage.Failed)
}

// TestPutBackAfterDrop: URLs that were dropped and put back are requested, though a request from
// before the drop is still out.
func TestPutBackAfterDrop(t *testing.T) {
	d := openStore(t)
	w := newWorld(t, testOptions(), d)
	w.answer = func(l Lease) answer {
		if l.Head.Ordinal == 0 && l.Kind == Page {
			return answer{took: time.Hour}
		}
		return answer{took: 100 * time.Millisecond}
	}
	const n = 30
	for i := range n {
		w.add(fmt.Sprintf("http://a.test/%d", i))
	}
	w.open()
	w.run(20 * time.Second)
	w.f.Drop(1, n, w.now)
	w.collect()
	w.run(time.Second)
	w.commit(dropOnDisk(t, d, n, w.now))
	w.f.Dropped(1, n, w.now)
	putBack(t, w, d)
	w.run(2 * time.Minute) // the queue is read again
	w.finish(3*time.Hour, time.Hour)
	h, err := d.HostByID(1)
	assert.True(t, err == nil && h.Of(storage.Fetched) == n, "the host has %v (%v)", h.Counts, err)
}

// TestLeftOut: URLs in memory that get another outcome without a lease are not requested: the operator has left them
// out, or they are given up, as the https form of a seed is when http has answered.
func TestLeftOut(t *testing.T) {
	now := time.Now()
	for name, o := range map[string]storage.Outcome{
		"left out": LeaveOut(storage.Outcome{}, now),
		"dropped":  DropOutcome(now),
		"given up": {State: storage.Failed, Reason: storage.ReasonFetch, At: now},
	} {
		d := openStore(t)
		w := newWorld(t, testOptions(), d)
		const n = 30
		for i := range n {
			w.add(fmt.Sprintf("http://a.test/%d", i))
		}
		w.open()
		w.run(5 * time.Second)
		begun := len(w.pages())
		must.True(t, 0 < begun && begun < n, "%s: %d requests were made", name, begun)
		var b storage.Batch
		for i := begun; i < n; i++ {
			b.Done = append(b.Done, storage.Done{Host: 1, Ordinal: uint32(i), When: DropMatters(), Outcome: o})
		}
		w.commit(b)
		w.finish(3*time.Hour, time.Hour)
		assert.Equal(t, len(w.pages()), begun, name, ": pages are requested")
	}
}

// TestDropWhileReading: a URL is not requested again if its host is dropped while its response is
// read, and the reading is broken off.
func TestDropWhileReading(t *testing.T) {
	d := openStore(t)
	o := testOptions()
	o.Politeness.Delay = 0
	w := newWorld(t, o, d)
	w.answer = func(l Lease) answer {
		a := answer{took: 100 * time.Millisecond}
		if l.Kind == Page && l.Head.Ordinal == 0 {
			a.reading, a.broken = time.Hour, true
		}
		return a
	}
	const n = 30
	for i := range n {
		w.add(fmt.Sprintf("http://a.test/%d", i))
	}
	w.open()
	w.run(time.Second)
	w.f.Drop(1, n, w.now)
	w.collect()
	w.run(time.Second)
	w.commit(dropOnDisk(t, d, n, w.now))
	w.f.Dropped(1, n, w.now)
	w.finish(30*time.Hour, time.Hour)
	assert.True(t, !slices.Contains(w.pages()[slices.Index(w.pages(), "http://a.test/0")+1:], "http://a.test/0"),
		"a URL was requested again after it was dropped: %q", w.pages())
}

// TestControl gives orders to a host wherever it is: dormant, being loaded, waiting, with a request
// under way. They are on disk with the next commit, and no load that is older undoes them.
func TestControl(t *testing.T) {
	for at := range 60 {
		o := testOptions()
		m := newMemory()
		m.makeUp(weburl.Origin{Scheme: "http", Host: "h.test", Port: 80}, 1000)
		w := newWorld(t, o, m)
		w.loadTime, w.commitTime = 30*time.Millisecond, 40*time.Millisecond
		w.open()
		w.run(time.Duration(at) * 7 * time.Millisecond)
		controlled(w, m, Command{Kind: CommandPause})
		w.run(2 * time.Second) // what was under way ends
		paused := len(w.log)
		w.run(time.Hour)
		if len(w.log) != paused {
			t.Fatalf("paused after %dms: %d requests, then %v", 7*at, paused, w.log[paused:])
		}
		if at%2 == 0 {
			w.crash()
			w.o.HeldSince = time.Time{}
			w.open()
			w.run(time.Hour)
		}
		controlled(w, m, Command{Kind: CommandDelay, Delay: 20 * time.Second})
		w.run(time.Duration(at) * time.Millisecond)
		controlled(w, m, Command{Kind: CommandResume})
		w.run(time.Hour)
		if n := len(w.log) - paused; n < 3600/20*95/100 || n > 3600/20+2 {
			t.Fatalf("resumed after %dms with a delay of 20s: %d requests in an hour", 7*at, n)
		}
		controlled(w, m, Command{Kind: CommandDelay})
		before := len(w.log)
		w.run(time.Minute)
		n := len(w.log) - before
		must.True(t, n >= 45, "back to a delay of 1s: %d requests in a minute", n)
	}
}

// TestControlForget makes a host fetch its robots.txt again and end a long backoff, but not its
// holds.
func TestControlForget(t *testing.T) {
	o := testOptions()
	m := newMemory()
	m.makeUp(weburl.Origin{Scheme: "http", Host: "h.test", Port: 80}, 1000)
	w := newWorld(t, o, m)
	sick := true
	w.answer = func(l Lease) answer {
		a := answer{took: 100 * time.Millisecond, maxAge: 24 * time.Hour, body: "User-agent: *\nDisallow: /x\n"}
		if sick && l.Kind == Page {
			a.signal, a.state = politeness.SignalThrottled, storage.Retrying
		}
		return a
	}
	w.open()
	w.run(10 * time.Hour) // backs off further and further, and goes dormant
	sick = false
	count := func(k Kind) (n int) {
		for _, r := range w.log {
			if r.kind == k {
				n++
			}
		}
		return n
	}
	files, pages := count(Robots), count(Page)
	controlled(w, m, Command{Kind: CommandForget})
	w.run(time.Minute)
	assert.True(t, count(Robots) == files+1 && count(Page) >= pages+20,
		"after it was forgotten: %d robots.txt, %d pages; before %d and %d", count(Robots), count(Page), files, pages)
	w.checkManners()
}
