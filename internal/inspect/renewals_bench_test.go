package inspect

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// BenchmarkRenewalPlan: what is foretold takes as long for many pages as for few, and for a million hosts as for as many as are looked at.
func BenchmarkRenewalPlan(b *testing.B) {
	for _, size := range []struct{ hosts, pages int }{{20, 50}, {20, 5000}, {10_000, 2}, {100_000, 2}, {1_000_000, 2}} {
		b.Run(fmt.Sprintf("hosts=%d/pages=%d", size.hosts, size.hosts*size.pages), func(b *testing.B) {
			if size.hosts > 100_000 && testing.Short() {
				b.Skip("takes half a minute to fill the store")
			}
			s, err := storage.Open(b.TempDir(), storage.Options{NoSync: true})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			o := revisit.DefaultOptions()
			planPages(b, s, o, size.hosts, size.pages)
			options := testOptions()
			options.Renew = &o
			view := New(s, options)
			before := heapBytes()
			b.ReportAllocs()
			for b.Loop() {
				p, err := view.RenewalPlan(b.Context(), 20)
				if err != nil || p.Pages != size.hosts*size.pages || len(p.Largest) != 20 || len(p.Next) != nextRenewals {
					b.Fatalf("%+v, %v", p, err)
				}
			}
			b.ReportMetric(float64(heapBytes())-float64(before), "B-kept")
		})
	}
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// planPages puts planned pages into a store.
func planPages(b *testing.B, s *storage.Store, o revisit.Options, hosts, pages int) {
	plan, err := revisit.New(o)
	if err != nil {
		b.Fatal(err)
	}
	var batch storage.Batch
	var site revisit.Site
	for host := range hosts {
		for n := range pages {
			batch.Found = append(batch.Found, foundIn(b, s, fmt.Sprintf("http://h%d.test/%d", host, n)))
			m := plan.Answered(&revisit.Visit{At: now.Add(time.Duration(host+n) * time.Second)}, &site)
			batch.Done = append(batch.Done, storage.Done{Host: storage.HostID(host + 1), Ordinal: uint32(n), Outcome: storage.Outcome{
				State: storage.Fetched, Status: 200, At: m.At, Due: m.Due, History: m.History,
			}})
		}
		if len(batch.Done) < 4000 && host < hosts-1 {
			continue
		}
		encoded, _ := plan.AppendBinary(nil)
		batch.Marks = map[string][]byte{markPlan: encoded}
		if _, err := s.Commit(&batch); err != nil {
			b.Fatal(err)
		}
		batch = storage.Batch{}
	}
}

func foundIn(b *testing.B, s *storage.Store, text string) storage.Found {
	u, err := weburl.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	return storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: now}
}
