package crawl

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// withTwo runs a test with two crawls of one process whose clients decide everything. The second has
// what it shares from the first.
func withTwo(t *testing.T, test func(t *testing.T, a, b *clientRun)) {
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", nil, nil)}})
		o := clientOptions(t, web)
		o.Several = true
		a := &clientRun{o: o}
		a.remoteRun = startRemote(t, a.o)
		b := &clientRun{o: clientOptions(t, web)}
		b.o.Shared = a.Shared()
		b.remoteRun = startRemote(t, b.o)
		time.Sleep(time.Millisecond)
		test(t, a, b)
		b.end()
		a.end()
	})
}

// TestLeaseAfterOtherCrawl: a client that may have a URL of a host because another crawl is through with
// it gets that at once, also before its own crawl was told.
func TestLeaseAfterOtherCrawl(t *testing.T) {
	t.Parallel()
	withTwo(t, func(t *testing.T, a, b *clientRun) {
		must.Do(t, a.SetDefaultDelay(t.Context(), 0))
		must.Do(t, b.SetDefaultDelay(t.Context(), 0))
		const held, wanted = "http://a.test/held", "http://a.test/wanted"
		a.discover(held)
		b.discover(wanted)
		time.Sleep(time.Minute) // the queues are read
		one := remote.Request{PerHost: 1, Visibility: time.Hour}
		a.expect(one, held)
		b.expect(one)
		wait := &leaseWait{
			request: remote.Request{Fetcher: "client", N: 1, PerHost: 1, Visibility: time.Hour}, host: storage.NoHost,
			done: make(chan struct{}),
		}
		err := b.mailbox.Load().call(t.Context(), func(d *dispatcher) { // which hears of nothing meanwhile
			a.put(Put{URL: parse(t, held), Known: true})
			d.lend(wait)
		})
		assert.True(t, err == nil && len(wait.given) == 1, "%d leases, %v, want that of %s", len(wait.given), err,
			wanted)
	})
}

// TestOptOutBeforeLease: once an opt-out is recorded for the first crawl, a client of another gets
// nothing of what it covers, and what it covered is handed out again once it is removed.
func TestOptOutBeforeLease(t *testing.T) {
	t.Parallel()
	withTwo(t, func(t *testing.T, a, b *clientRun) {
		b.discover("http://a.test/1", "http://b.test/1")
		time.Sleep(time.Minute) // the queues are read
		entry := optout.Entry{Scope: optout.ScopeHost, Value: "a.test"}
		must.Do(t, a.AddOptOut(t.Context(), entry))
		b.expect(remote.Request{Visibility: time.Hour}, "http://b.test/1")
		must.Do(t, a.RemoveOptOut(t.Context(), entry.Scope, entry.Value))
		time.Sleep(10 * time.Minute) // they come back over a while
		b.expect(remote.Request{Visibility: time.Hour}, "http://a.test/1")
	})
}
