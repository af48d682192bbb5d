package storage

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkRenewal picks the renewal of a host that is overdue longest and plans it anew, with so many planned URLs in the store. It
// is to cost the same for all sizes.
func BenchmarkRenewal(b *testing.B) {
	const hosts = 100
	for _, urls := range []int{10_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("hosts=%d/urls=%d", hosts, urls), func(b *testing.B) {
			if urls > 1_000_000 && testing.Short() {
				b.Skip("takes minutes to fill the store")
			}
			s, err := Open(b.TempDir(), Options{NoSync: true})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			fillRenewals(b, s, hosts, urls/hosts)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				host := HostID(n%hosts + 1)
				h, err := s.Heads(HeadsRequest{Host: host, Renewals: 1, From: uint32(urls / hosts), Now: someTime.AddDate(1, 0, 0)})
				if err != nil || len(h.Renewals) != 1 {
					b.Fatal(len(h.Renewals), err)
				}
				u := &h.Renewals[0]
				u.Last.Due = u.Last.Due.AddDate(0, 1, 0)
				if _, err := s.Commit(&Batch{Done: []Done{{Host: host, Ordinal: u.Ordinal, Outcome: u.Last}}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// fillRenewals makes hosts with planned URLs.
func fillRenewals(b *testing.B, s *Store, hosts, urls int) {
	for host := range hosts {
		for from := 0; from < urls; from += 10_000 {
			var batch Batch
			for n := from; n < min(from+10_000, urls); n++ {
				u := parse(b, fmt.Sprintf("http://h%d.test/some/page/%d", host, n))
				batch.Found = append(batch.Found, Found{URL: u, Fingerprint: s.Fingerprint(u), At: someTime})
				due := someTime.Add(time.Duration(n*7919%urls) * time.Minute)
				batch.Done = append(batch.Done, Done{Host: HostID(host + 1), Ordinal: uint32(n), Outcome: Outcome{
					State: Fetched, Status: 200, At: someTime, Bytes: 20_000, Digest: uint64(n) + 1, Due: due, History: [8]byte{1}, Simhash: 1,
				}})
			}
			if _, err := s.Commit(&batch); err != nil {
				b.Fatal(err)
			}
		}
	}
}
