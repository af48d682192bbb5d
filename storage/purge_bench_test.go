package storage

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// BenchmarkPurge deletes all URLs of some hosts of a store, one host after the other, in commits as a
// crawl makes them. Half of the URLs have an outcome, a tenth a retry and a tenth metadata.
func BenchmarkPurge(b *testing.B) {
	for _, size := range []struct{ hosts, urls int }{{4, 400_000}, {2_000, 400_000}} {
		b.Run(fmt.Sprintf("hosts=%d", size.hosts), func(b *testing.B) {
			for range b.N {
				purgeAll(b, size.hosts, size.urls)
			}
		})
	}
}

func purgeAll(b *testing.B, hosts, urls int) {
	s := benchOpen(b, b.TempDir(), Options{})
	defer benchClose(b, s)
	g, batch := &benchURLs{hosts: hosts}, Batch{}
	metadata, _ := Metadata{"url.path": {"https://www.example.com/"}, "depth": {"1"}}.Encode()
	for g.n < urls {
		fillBatch(s, g, 20_000, &batch)
		for i := range batch.Found {
			switch f := &batch.Found[i]; i % 10 {
			case 0:
				f.Outcome = &Outcome{State: Retrying, At: f.At, Due: f.At.Add(time.Hour)}
			case 1:
				f.Metadata = metadata
			case 2, 3, 4, 5:
				f.Outcome = &Outcome{State: Fetched, At: f.At}
			}
		}
		must.Get(s.Commit(&batch))(b)
	}
	all, known := newCommits(), int(s.Counters().URLs)
	var gathered []Purge // as the dispatcher gathers the steps of several hosts
	commit := func() {
		all.time(b, func() error { _, err := s.Commit(&Batch{Purges: gathered}); return err })
		gathered = gathered[:0]
	}
	add := func(p Purge) {
		if gathered = append(gathered, p); len(gathered) == 20 {
			commit()
		}
	}
	for id := HostID(1); id <= HostID(s.Counters().Hosts); id++ {
		h := must.Get(s.HostByID(id))(b)
		for below := uint32(0); below < h.Tail; {
			below = min(below+MostPurged, h.Tail)
			if add(Purge{Host: id, Below: below}); h.Tail > MostPurged {
				commit()
			}
		}
		for from, to := uint64(0), uint64(0); to != math.MaxUint64; from = to + 1 {
			to = must.Get(s.PurgeRange(id, from))(b)
			add(Purge{Host: id, From: from, To: to})
		}
	}
	commit()
	n := s.Counters().URLs
	assert.True(b, n == 0, "%d URLs are left", n)
	all.report(b, known, "urls")
}
