package frontier

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// Hosts that are not in memory wait by the delay that is in force now, and not by the one when they went there; others' waits stay.
func TestChangeOfHostsThatAreNotInMemory(t *testing.T) {
	o := testOptions()
	o.Politeness.Delay, o.HostBudget = time.Hour, 0
	f, err := New(o, NewScope(ModeAny, nil, nil), epoch)
	if err != nil {
		t.Fatal(err)
	}
	now := epoch.Add(time.Minute)
	for id, state := range map[storage.HostID]politeness.State{
		1: {LastEnd: now}, 2: {LastEnd: now}, 3: {LastEnd: now, Asked: politeness.Asked{Delay: 9 * time.Hour}},
		4: {LastEnd: now, Holds: []politeness.Hold{{Until: now.Add(7 * time.Hour), Length: 7 * time.Hour, Reason: politeness.ReasonRetryAfter}}},
	} {
		encoded, err := state.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		h := storage.Host{ID: id, Name: "h.example.com", Queues: []storage.Queue{{Queued: 10}}, Politeness: encoded}
		h.Counts[storage.Fetched] = 5
		if err := f.Restore(&h, now); err != nil {
			t.Fatal(err)
		}
	}
	hasDeferred := func(want map[storage.HostID]time.Duration) {
		t.Helper()
		for id, d := range want {
			v, _ := f.Look(id)
			if got := v.Next.Sub(now); got.Round(time.Second) != d {
				t.Errorf("host %d waits %v, want %v (%s)", id, got, d, v.Place)
			}
		}
	}
	hasDeferred(map[storage.HostID]time.Duration{1: time.Hour, 2: time.Hour, 3: 9 * time.Hour, 4: 7 * time.Hour})

	c := Change{Politeness: o.Politeness, Overrides: []Override{{Hosts: []string{"none.example"}}}, Overridden: map[storage.HostID]int{2: 0}}
	c.Politeness.Delay = 2 * time.Second
	c.Overrides[0].Politeness = o.Politeness
	c.Overrides[0].Politeness.Delay = 5 * time.Hour
	f.Change(c, now)
	hasDeferred(map[storage.HostID]time.Duration{1: 2 * time.Second, 2: 5 * time.Hour, 3: 9 * time.Hour, 4: 7 * time.Hour})

	f.Change(Change{Politeness: o.Politeness, HostBudget: 5}, now)
	if n := f.Places()["shelved"]; n != 4 {
		t.Errorf("%d hosts have no budget left, want 4", n)
	}
	f.Change(Change{Politeness: o.Politeness}, now)
	hasDeferred(map[storage.HostID]time.Duration{1: time.Hour, 2: time.Hour, 3: 9 * time.Hour, 4: 7 * time.Hour})
}

// BenchmarkWalk looks at a million hosts as the engine does, and says how long the longest step held up the dispatcher.
func BenchmarkWalk(b *testing.B) {
	const n, step = 1_000_000, 200
	f, err := New(testOptions(), NewScope(ModeAny, nil, nil), epoch)
	if err != nil {
		b.Fatal(err)
	}
	now := epoch.Add(time.Second)
	for i := range n {
		h := storage.Host{ID: storage.HostID(i + 1), Name: "h.example.com", Queues: []storage.Queue{{Queued: 10}}}
		if err := f.Restore(&h, now); err != nil {
			b.Fatal(err)
		}
	}
	var longest time.Duration
	for b.Loop() {
		for from, more := storage.HostID(0), true; more; more = from != 0 {
			begun := time.Now()
			from = f.Walk(from, step, now, func(*View) {})
			longest = max(longest, time.Since(begun))
		}
	}
	b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/walk")
}
