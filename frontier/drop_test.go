package frontier

import (
	"fmt"
	"testing"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// TestDrop drops the queue of a host in the middle, while its owner takes its time to do so on the disk: of the
// URLs that were there none is asked any more, of those that came later all are, and the cursor never passes one that waits.
func TestDrop(t *testing.T) {
	const there, later = 100, 20
	for _, dormant := range []bool{false, true} {
		t.Run(fmt.Sprintf("dormant %t", dormant), func(t *testing.T) {
			d, err := storage.Open(t.TempDir(), storage.Options{NoSync: true, MapBytes: 1 << 24})
			if err != nil {
				t.Fatal(err)
			}
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
			asked := len(w.pages())
			for n := range later {
				w.add(fmt.Sprintf("http://a.test/later/%d", n))
			}
			w.run(5 * time.Second) // till the owner has done it
			w.commit(dropOnDisk(t, d, there, w.now))
			w.f.Dropped(1, there, w.now)
			w.finish(3*time.Hour, time.Hour)
			old := 0
			for _, u := range w.pages()[asked:] {
				if len(u) < len("http://a.test/later/0") {
					old++
				}
			}
			if old > 1 { // the one that was leased
				t.Errorf("%d dropped URLs were asked: %q", old, w.pages()[asked:])
			}
			h, err := d.HostByID(1)
			if n := h.Of(storage.Excluded) + h.Of(storage.Fetched) + h.Of(storage.Failed); err != nil || n != there+later || h.Of(storage.Excluded) < 60 {
				t.Errorf("at the end the URLs are %v (%v)", h.Counts, err)
			}
			if len(w.f.drops) > 0 {
				t.Error("the drop is not forgotten")
			}
			w.checkManners()
		})
	}
}

// dropOnDisk is what the owner of the store commits.
func dropOnDisk(t *testing.T, d *storage.Store, below int, now time.Time) (b storage.Batch) {
	t.Helper()
	_, err := d.URLs(1, 0, below, func(h storage.Head) {
		if DropMatters().Has(h.Last.State) {
			b.Done = append(b.Done, storage.Done{Host: 1, Ordinal: h.Ordinal, Origin: h.Origin, When: DropMatters(), Outcome: DropOutcome(now)})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkStore(t *testing.T, d *storage.Store) {
	t.Helper()
	if err := d.Check(t.Context(), func(f storage.Finding) { t.Error(f.Text) }); err != nil {
		t.Fatal(err)
	}
}

// TestCommittedOfAnother: an outcome that somebody else put into a batch does not end what
// the frontier knows of a URL that is leased.
func TestCommittedOfAnother(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://a.test/1")
	w.open()
	for len(w.pages()) == 0 && w.busy == 0 || len(w.f.hosts.get(1).active.busy) == 0 {
		w.run(100 * time.Millisecond)
	}
	b := storage.Batch{Done: []storage.Done{{Host: 1, When: storage.In(storage.Denied)}}}
	w.f.Committed(&b, storage.Result{}, w.now)
	if len(w.f.hosts.get(1).active.busy) != 1 {
		t.Error("a leased URL is not held as busy")
	}
}
