package frontier

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// putBack commits that the URLs of host 1 that can be put back are.
func putBack(t *testing.T, w *world, d *storage.Store) {
	t.Helper()
	var b storage.Batch
	_, err := d.URLs(1, 0, 1<<20, func(h storage.Head) {
		if CanPutBack().Has(h.Last.State) {
			b.Done = append(b.Done, storage.Done{
				Host: 1, Ordinal: h.Ordinal, Origin: h.Origin, Priority: h.Priority, When: storage.In(h.Last.State), Outcome: PutBack(h.Last, w.now),
			})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	w.commit(b)
}

func openStore(t *testing.T) *storage.Store {
	t.Helper()
	d, err := storage.Open(t.TempDir(), storage.Options{NoSync: true, MapBytes: 1 << 24})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestPutBackURLs: URLs that failed are put back and requested exactly once more, whether their host is in memory or not, whether they have
// a recrawl planned or not, and at the pace of their host.
func TestPutBackURLs(t *testing.T) {
	const n = 40
	for _, dormant := range []bool{false, true} {
		for _, recrawls := range []bool{false, true} {
			t.Run(fmt.Sprintf("dormant=%t/recrawls=%t", dormant, recrawls), func(t *testing.T) {
				d := openStore(t)
				w := newWorld(t, testOptions(), d)
				if recrawls {
					w = renewingWorld(t, every(time.Hour), 0.5)
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
				asked := map[string]int{}
				for _, u := range w.pages()[before:] {
					asked[u]++
				}
				for u, times := range asked {
					if times != 1 {
						t.Errorf("%s was requested %d times after it was put back", u, times)
					}
				}
				h, err := d.HostByID(1)
				if err != nil || len(asked) != n || h.Of(storage.Fetched) != n {
					t.Errorf("%d URLs were requested, the host has %v (%v)", len(asked), h.Counts, err)
				}
				checkStore(t, d)
				w.checkManners()
			})
		}
	}
}

// TestPutBackAsksForTheName: URLs that were given up because their name did not exist are put back while others of the host are still
// being given up. The name is looked up again, and one more answer that it does not exist is not the end.
func TestPutBackAsksForTheName(t *testing.T) {
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
		if left := n - failed(t, d); left < 50 || left > n-50 {
			t.Fatalf("%d URLs are still to be given up", left)
		}
		exists, last = true, 0
		putBack(t, w, d)
		w.finish(48*time.Hour, 48*time.Hour)
		if lost := failed(t, d); lost > n/2 || len(w.pages()) != n-int(lost) { // those that were on their way to the disk when the others were put back
			t.Errorf("%+v: %d pages, %d URLs are given up without a lookup", report, len(w.pages()), lost)
		}
	}
}

func failed(t *testing.T, d *storage.Store) uint32 {
	t.Helper()
	h, err := d.HostByID(1)
	if err != nil {
		t.Fatal(err)
	}
	return h.Of(storage.Failed)
}

// TestPutBackAfterDrop: URLs that were dropped and put back are requested, though a request from before the drop is still out.
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
	if err != nil || h.Of(storage.Fetched) != n {
		t.Errorf("the host has %v (%v)", h.Counts, err)
	}
}
