package crawl

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/load"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// typicalRobots is a robots.txt as half of the web's sites have one: about 560
// bytes, twelve rules, a sitemap.
func typicalRobots(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"# robots.txt of shop %06d\nUser-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\nDisallow: "+
			"/*?sort=\n", i)
	for _, folder := range []string{"cart", "checkout", "account", "search", "internal", "tag", "print", "cgi-bin",
		"feedback"} {
		fmt.Fprintf(&b, "Disallow: /%s-%06d/\n", folder, i)
	}
	fmt.Fprintf(&b, "\nUser-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n\n")
	fmt.Fprintf(&b,
		"# The sitemap is made again every night, please read it instead of looking around\nSitemap: "+
			"https://shop-%06d.example/sitemap_index.xml\n", i)
	return b.String()
}

// storePolicies fills a store with the policies of n origins.
func storePolicies(b *testing.B, s *storage.Store, n int) []storage.Queue {
	o := robots.DefaultOptions()
	origins := make([]storage.Queue, n)
	var batch storage.Batch
	for i := range origins {
		origins[i].Origin = weburl.Origin{Scheme: "https", Host: fmt.Sprintf("shop-%06d.example", i), Port: 443}
		record, _ := o.Next(robots.Record{}, robots.Outcome{
			URL: origins[i].Origin.String() + "/robots.txt", Status: 200, Body: []byte(typicalRobots(i)),
			Header: robots.Header{ETag: fmt.Sprintf(`"%016x"`, i), LastModified: "Mon, 02 Mar 2026 10:00:00 GMT"},
		}, time.Now())
		encoded := must.Get(record.AppendBinary(nil))(b)
		batch.Policies = append(batch.Policies, storage.Policy{Origin: origins[i].Origin, Record: encoded})
		if len(batch.Policies) == 10_000 || i == n-1 {
			must.Get(s.Commit(&batch))(b)
			batch.Policies = batch.Policies[:0]
		}
	}
	return origins
}

// heapInUse is what is live on the heap.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkPolicies reads the policies of many origins from the store, as the
// loader does for hosts that become active, and keeps them all: the record
// with its file, and the compiled rules. An operation is one origin.
func BenchmarkPolicies(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("origins=%d", n), func(b *testing.B) {
			s := must.Get(storage.Open(b.TempDir(), storage.Options{NoSync: true}))(b)
			defer func() { _ = s.Close() }()
			l := &load.Loader{
				Store: s, Log: testLog(b), Rules: &load.Rules{Tokens: DefaultOptions().Frontier.Tokens},
			}
			origins := storePolicies(b, s, n)
			before := heapInUse()
			loaded := make([]frontier.QueueLoad, n)
			next := 0
			for b.Loop() {
				i := next % n
				next++
				must.Do(b, l.ReadRobots(&loaded[i], origins[i].Origin))
			}
			for i := range loaded { // what the loop did not come to
				must.Do(b, l.ReadRobots(&loaded[i], origins[i].Origin))
			}
			total := float64(heapInUse() - before)
			rules := 0
			for i := range loaded {
				if loaded[i].Rules.Match(fmt.Sprintf("/cart-%06d/1", i)).Allowed {
					b.Fatalf("the rules of %s are not those of its file", origins[i].Origin)
				}
				rules += loaded[i].Rules.Size()
			}
			b.ReportMetric(total/float64(n), "B/policy")
			b.ReportMetric(float64(rules)/float64(n), "B/rules")
			b.ReportMetric(total/1e6, "MB")
			b.ReportMetric(float64(len(loaded[0].Record.Body)), "B/file")
		})
	}
}
