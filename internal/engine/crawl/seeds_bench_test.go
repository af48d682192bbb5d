package crawl

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// BenchmarkChangeSeeds adds 10,000 seeds to a running crawl of 10,000 hosts, and removes them. Besides the time of each
// it reports the longest time that the dispatcher, which begins all requests, did not answer meanwhile, and as long
// without a change; each the most of all rounds.
func BenchmarkChangeSeeds(b *testing.B) {
	const hosts = 10_000
	b.Run(fmt.Sprintf("hosts=%d/seeds=%d", hosts, hosts), func(b *testing.B) {
		var sites []testweb.Site
		for i := range 2 * hosts {
			sites = append(sites, testweb.Site{
				Host: fmt.Sprintf("h%d.test", i), Group: fmt.Sprint("g", i%250),
				Handler: testweb.Routes{"/robots.txt": testweb.Robots("")},
			})
		}
		web := testweb.Serve(b, testweb.Config{Sites: sites, CountOnly: true})
		o := testOptions(b, web)
		o.ExitWhenDone, o.Archive.Formats = false, []string{archive.FormatNone}
		o.Frontier.Politeness.Delay = 24 * time.Hour
		list := make([]string, 2*hosts)
		for i := range list {
			list[i] = web.URL(sites[i].Host, "/")
		}
		first, more := seedList(b, list[:hosts]...), seedList(b, list[hosts:]...)
		most := make(map[string]time.Duration)
		report := func(name string, d time.Duration) {
			most[name] = max(most[name], d)
			b.ReportMetric(most[name].Seconds()*1000, name)
		}
		for b.Loop() {
			o.DataDir = b.TempDir()
			e := must.Get(Open(o, testLog(b)))(b)
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { _, err := e.Run(ctx, first); ended <- err }()
			for e.Status().Hosts < hosts/2 {
				time.Sleep(10 * time.Millisecond)
			}
			add, gap := measured(b, e, func() (SeedCounts, error) { return e.ChangeSeeds(ctx, SeedWish{Add: more}) })
			report("add-ms", add)
			report("add-gap-ms", gap)
			_, gap = measured(b, e, func() (SeedCounts, error) { time.Sleep(add); return SeedCounts{}, nil })
			report("idle-gap-ms", gap)
			var w SeedWish
			for i := range more {
				w.Remove = append(w.Remove, more[i].URL)
			}
			remove, gap := measured(b, e, func() (SeedCounts, error) { return e.ChangeSeeds(ctx, w) })
			report("remove-ms", remove)
			report("remove-gap-ms", gap)
			cancel()
			assert.NoError(b, <-ended)
			must.Do(b, e.Close())
		}
	})
}

// measured returns how long a change takes, and the longest time that the dispatcher does not answer meanwhile.
func measured(b *testing.B, e *Engine, change func() (SeedCounts, error)) (took, gap time.Duration) {
	ctx, cancel := context.WithCancel(b.Context())
	longest := make(chan time.Duration, 1)
	go func() {
		var most time.Duration
		for ctx.Err() == nil {
			time.Sleep(time.Millisecond)
			started := time.Now()
			_ = e.mailbox.Load().call(ctx, func(*dispatcher) { most = max(most, time.Since(started)) })
		}
		longest <- most
	}()
	started := time.Now()
	_, err := change()
	assert.True(b, err == nil, "%v", err)
	took = time.Since(started)
	cancel()
	return took, <-longest
}
