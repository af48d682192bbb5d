package crawl

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

var retryURLs = flag.Int("retry-urls", 1_000_000, "URLs of BenchmarkRetry, of a thousand hosts")

// BenchmarkRetry counts URLs that failed, one in ten of all, and puts them back, while no crawl runs.
func BenchmarkRetry(b *testing.B) {
	const hosts = 1000
	o := DefaultOptions()
	o.DataDir, o.Archive.Dir, o.MinFree, o.Storage.NoSync, o.Fetch.UserAgent = b.TempDir(), b.TempDir(), 0, true,
		"amble-bench"
	s := must.Get(storage.Open(o.DataDir, o.Storage))(b)
	each := *retryURLs / hosts
	for h := range hosts {
		var batch storage.Batch
		for i := range each {
			u := mustParse(fmt.Sprintf("http://h%d.test/a/page/of/some/length/%d.html", h, i))
			outcome := storage.Outcome{State: storage.Fetched, Status: 200, Bytes: 20_000,
				Digest: uint64(i)<<32 | uint64(h) | 1, At: time.Unix(1_790_000_000, 0)}
			if i%10 == 0 {
				outcome = storage.Outcome{State: storage.Failed, Reason: storage.ReasonStatus, Status: 404,
					At: outcome.At}
			}
			batch.Found = append(batch.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u)})
			batch.Done = append(batch.Done,
				storage.Done{Host: storage.HostID(h + 1), Ordinal: uint32(i), Outcome: outcome})
		}
		must.Get(s.Commit(&batch))(b)
	}
	must.Do(b, s.Close())
	r := must.Get(OpenRetrier(o, nil))(b)
	defer r.Close()
	selection := sweep.Selection{States: storage.In(storage.Failed)}
	for b.Loop() {
		began := time.Now()
		counted := must.Get(sweep.Count(context.Background(), r.store, selection, nil, noProgress))(b)
		looked := time.Since(began)
		began = time.Now()
		done, err := r.Retry(context.Background(), selection, noProgress)
		must.True(b, err == nil && done.Back == counted.Back, "%+v, %+v, %v", counted, done, err)
		b.ReportMetric(float64(counted.Inspected)/looked.Seconds(), "looked/s")
		b.ReportMetric(float64(done.Back)/time.Since(began).Seconds(), "back/s")
		selection.States = storage.In(storage.Retrying) // the next time
	}
}
