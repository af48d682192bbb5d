package storage

import (
	"fmt"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// nowhere is a log that keeps nothing.
type nowhere struct {
	Codec
	bytes int
}

func (l *nowhere) Append(number uint64, record []byte) (uint64, error) {
	l.bytes += len(record)
	return number, nil
}

// BenchmarkLog commits fetched pages, 50 of them with ten links each at a time, with and without a
// log. It says what a page takes in the log.
func BenchmarkLog(b *testing.B) {
	for _, logged := range []bool{false, true} {
		b.Run(fmt.Sprintf("log=%t", logged), func(b *testing.B) {
			s, err := Open(b.TempDir(), Options{NoSync: true, MaxQueries: 2000, MaxSameDigest: 200})
			must.Do(b, err)
			defer s.Close()
			log := &nowhere{Codec: TestCodec}
			commit := func(batch *Batch) {
				if logged {
					_, err = s.CommitTo(log, batch)
				} else {
					_, err = s.Commit(batch)
				}
				must.Do(b, err)
			}
			var first Batch
			for host := range 50 {
				first.Found = append(first.Found, found(b, s, fmt.Sprintf("https://www.host%d.example/", host))...)
			}
			commit(&first)
			n := 0
			log.bytes = 0
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				var batch Batch
				for host := range 50 {
					id := HostID(host + 1)
					batch.Done = append(batch.Done,
						Done{Host: id, Ordinal: uint32(n), Outcome: Outcome{State: Fetched, Status: 200,
							At: someTime.Add(time.Duration(n) * time.Second), Bytes: 20_000,
							Digest: uint64(n*50+host) * 0x9e3779b97f4a7c15}})
					batch.Hosts = append(batch.Hosts,
						HostUpdate{Host: id, Politeness: make([]byte, 40), Requests: 1, Bytes: 20_000,
							Cursors: []Cursor{{0, uint32(n + 1)}}})
					for link := range 10 {
						uri := fmt.Sprintf("section-%d/article-%d.html", (n+link)%7, n*10+link)
						f := found(b, s, fmt.Sprintf("https://www.host%d.example/%s", host, uri))[0]
						f.ViaHost, f.ViaOrdinal, f.Depth = id, uint32(n), 3
						batch.Found = append(batch.Found, f)
					}
				}
				n++
				b.StartTimer()
				commit(&batch)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n*50), "µs/page")
			if logged {
				b.ReportMetric(float64(log.bytes)/float64(n*50), "log-bytes/page")
			}
		})
	}
}

// BenchmarkReplay replays records of 50 fetched pages with ten links each into a fresh store, durable,
// one in a transaction and a hundred.
func BenchmarkReplay(b *testing.B) {
	s := must.Get(Open(b.TempDir(), Options{NoSync: true, MaxQueries: 2000, MaxSameDigest: 200}))(b)
	defer s.Close()
	log := newMemoryLog()
	for n := range 400 {
		var batch Batch
		for host := range 50 {
			name := fmt.Sprintf("https://www.host%d.example/", n/10*50+host)
			for link := range 10 {
				batch.Found = append(batch.Found, found(b, s, fmt.Sprintf("%sarticle-%d.html", name, n*10+link))...)
			}
		}
		must.Get(s.CommitTo(log, &batch))(b)
	}
	for _, group := range []int{1, 100} {
		b.Run(fmt.Sprintf("group=%d", group), func(b *testing.B) {
			for range b.N {
				to := must.Get(Open(b.TempDir(), Options{}))(b)
				var all []LogRecord
				for i, record := range log.records {
					if all = append(all, LogRecord{uint64(i + 1), record}); len(all) == group ||
						i == len(log.records)-1 {
						must.Do(b, to.Replay(log, all...))
						all = all[:0]
					}
				}
				must.Do(b, to.Close())
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*len(log.records)), "ms/record")
		})
	}
}
