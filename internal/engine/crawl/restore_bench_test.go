package crawl

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// BenchmarkRestore reads the hosts of a store at the start of a crawl: hosts without a fetched page, and hosts with a
// page that was fetched a while ago. BENCH_HOSTS is their number. It reports what that takes and
// the bytes that stay in memory, for each host.
func BenchmarkRestore(b *testing.B) {
	hosts := 20_000
	if n, err := strconv.Atoi(os.Getenv("BENCH_HOSTS")); err == nil {
		hosts = n
	}
	web := testweb.Serve(b, testweb.Config{Sites: engineSites(1), CountOnly: true})
	for _, kind := range []string{"new", "fetched"} {
		b.Run(fmt.Sprintf("hosts=%d/%s", hosts, kind), func(b *testing.B) {
			o := meshOptions(b, web)
			o.Frontier.Politeness.Delay, o.MaxDomainHosts = time.Second, 1000
			fillHosts(b, o.DataDir, hosts, kind == "fetched")
			e := must.Get(Open(o, testLog(b)))(b)
			scope := must.Get(newInitialScope(e.store, &e.o, nil))(b)
			var took, used time.Duration
			var held uint64
			for b.Loop() {
				before := heapInUse()
				began, cpu := time.Now(), cpuTime(b)
				f, _, err := e.newFrontier(b.Context(), scope.scope)
				took, used = took+time.Since(began), used+cpuTime(b)-cpu
				must.Do(b, err)
				held = heapInUse() - before
				all, _ := f.HostsWithURLs()
				must.True(b, all == hosts, "%d hosts", all)
			}
			n := float64(b.N * hosts)
			b.ReportMetric(float64(took.Nanoseconds())/n, "ns/host")
			b.ReportMetric(float64(used.Nanoseconds())/n, "cpu-ns/host")
			b.ReportMetric(float64(held)/float64(hosts), "B/host")
			must.Do(b, e.Close())
		})
	}
}

// fillHosts fills a store with hosts of two URLs, three to a registrable domain.
func fillHosts(b *testing.B, dir string, hosts int, fetched bool) {
	s := must.Get(storage.Open(dir, storage.Options{NoSync: true}))(b)
	now := time.Now().Add(-time.Hour)
	polite := must.Get(politeness.State{LastEnd: now, LastResponse: 80 * time.Millisecond}.AppendBinary(nil))(b)
	const each = 5000
	for first := 0; first < hosts; first += each {
		var found, done storage.Batch
		for i := first; i < min(first+each, hosts); i++ {
			host := fmt.Sprintf("http://www%d.shop-%06d.example", i%3, i/3*7919%hosts)
			for _, path := range []string{"/", "/products"} {
				u := must.Get(weburl.Parse(host + path))(b)
				found.Found = append(found.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: now})
			}
			id := storage.HostID(i + 1)
			done.Done = append(done.Done, storage.Done{Host: id, Outcome: storage.Outcome{
				State: storage.Fetched, Status: 200, At: now,
			}})
			done.Hosts = append(done.Hosts, storage.HostUpdate{
				Host: id, Politeness: polite, Requests: 2, Bytes: 8 << 10, Cursors: []storage.Cursor{{Next: 1}},
			})
		}
		must.Get(s.Commit(&found))(b)
		if fetched {
			must.Get(s.Commit(&done))(b)
		}
	}
	must.Do(b, s.Close())
}
