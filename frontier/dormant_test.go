package frontier

import (
	"runtime"
	"testing"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// dormantBytes is what each of n dormant hosts takes in memory.
func dormantBytes(t testing.TB, o Options, n int, name func(int) string) float64 {
	f, err := New(o, NewScope(ModeAny, nil, nil), epoch)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range n {
		h := storage.Host{ID: storage.HostID(i + 1), Name: name(i), Queues: []storage.Queue{{Queued: 10}}}
		if err := f.Restore(&h, epoch.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := f.Places()["dormant"]; got != n {
		t.Fatalf("%d hosts are dormant", got)
	}
	return float64(after.HeapAlloc-before.HeapAlloc) / float64(n)
}

func oneName(int) string { return "h.example.com" }

func TestDormantHostsAreSmall(t *testing.T) {
	if got := dormantBytes(t, testOptions(), 200_000, oneName); got > 160 {
		t.Errorf("a dormant host takes %.0f bytes", got)
	}
}

// BenchmarkDormantHosts is the memory of a million dormant hosts, without budgets and with
// that of one domain.
func BenchmarkDormantHosts(b *testing.B) {
	budget := testOptions()
	budget.HostBudget, budget.DomainBudget = 1000, 5000
	for name, o := range map[string]Options{"plain": testOptions(), "budgets": budget} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				b.ReportMetric(dormantBytes(b, o, 1_000_000, oneName), "B/host")
			}
		})
	}
}

// TestDecimal: a delay that is kept in few bits is told as what it stands for.
func TestDecimal(t *testing.T) {
	for _, d := range []time.Duration{0, time.Millisecond, 200 * time.Millisecond, 1100 * time.Millisecond, 2500 * time.Millisecond, 10 * time.Second, 3600 * time.Second, 86400500 * time.Millisecond} {
		if got := decimal(float32(d.Seconds())); got != d {
			t.Errorf("%v is told as %v", d, got)
		}
	}
}
