package crawl

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// fixedJitter makes the chances of a crawl the same in each run of a test.
func fixedJitter() func() float64 {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64()
	}
}

// crawlBesideDeadNames crawls hosts with endless pages for a while in virtual time, among names
// that name servers take two seconds to know nothing of, and returns the record of the live hosts
// and when the crawl began.
func crawlBesideDeadNames(t *testing.T, dead, live int, lasts time.Duration) (log testweb.Log, began time.Time) {
	t.Helper()
	virtually(t, memnet.Options{Latency: 20 * time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		sites := endlessSites(live, 100*time.Millisecond)
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: sites, AbsenceTakes: 2 * time.Second})
		var seeds []string
		for i := range dead {
			seeds = append(seeds, web.URL(fmt.Sprintf("dead-%d.test", i), "/"))
		}
		for _, host := range web.Sites() {
			seeds = append(seeds, web.URL(host, "/"))
		}
		o := testOptions(t, web)
		o.Frontier.Politeness = DefaultOptions().Frontier.Politeness
		o.Frontier.Jitter = fixedJitter()
		o.Archive.Formats = []string{archive.FormatNone}
		began = time.Now()
		must.Get(crawlFor(t, o, lasts, seeds...))(t)
		log = web.Requests()
	})
	return log, began
}

// TestDeadNames: names that do not exist, each , which a name server takes two seconds to say, do
// not keep a crawl from the hosts that do: all names are looked up once as fast as that many at a
// time allow, and a host that was found is requested at its pace from then on, whatever its address
// takes.
func TestDeadNames(t *testing.T) {
	t.Parallel()
	const dead, live, lasts = 150, 5, 60 * time.Second
	log, began := crawlBesideDeadNames(t, dead, live, lasts)
	n := len(log.Hosts())
	must.True(t, n == live, "%d hosts were found, want %d", n, live)
	// Two seconds for each 56 names, , which one in eight is of a name that has failed.
	const sweep = 2 * time.Second * (dead/49 + 1)
	for _, host := range log.Hosts() {
		pages := log.Host(host).Pages()
		assert.AtMost(t, pages[0].Start.Sub(began), sweep, host, "first page after")
		// A page takes 100 ms, and is followed by 1 s of delay and a round trip or two of 40 ms.
		least := int((lasts - pages[0].Start.Sub(began)) / (1200 * time.Millisecond))
		assert.AtLeast(t, len(pages), least, host, "pages")
	}
}

// TestNamesAreLookedUpOnce: a name that does not exist is looked up once until what its name
// servers have said is over, an address literal never; and neither waits for a worker, or keeps
// one.
func TestNamesAreLookedUpOnce(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		pages := paths("/", 100)
		web := testweb.Serve(t, testweb.Config{
			Network: network, Sites: []testweb.Site{site("a.test", "", pages, nil), site("127.0.0.1", "", pages, nil)},
			AbsenceTakes: 4 * time.Second, AbsenceLasts: 4 * time.Minute,
		})
		o := testOptions(t, web)
		o.Workers, o.Frontier.Resolvers, o.Frontier.MaxAttempts = 1, 1, 2
		o.Frontier.Politeness.Delay = time.Second
		o.GiveUpAfter = time.Hour
		seeds := []string{web.URL("a.test", "/"), web.URL("127.0.0.1", "/")}
		for i := range 10 {
			seeds = append(seeds, web.URL(fmt.Sprintf("dead-%d.test", i), "/"))
		}
		crawl(t, o, seeds...)
		log := web.Requests()
		for _, host := range []string{"a.test", "127.0.0.1"} {
			for _, gap := range log.Host(host).Gaps() {
				assert.AtMost(t, gap.Length, 1100*time.Millisecond, host, "between", gap.Before.Path, gap.After.Path)
			}
		}
		assert.Equal(t, web.Lookups("127.0.0.1"), 0, "an address literal was looked up times")
		for u, o := range stored(t, o.DataDir) {
			want := "fetched 200"
			if strings.Contains(u, "dead-") {
				want = "failed dns_not_found"
			}
			assert.Equal(t, ended(o, false), want, u)
		}
		for i := range 10 { // twice: that there is no such name is said of IPv6 too
			assert.Equal(t, web.Lookups(fmt.Sprintf("dead-%d.test", i)), 2, "dead-", i, "test was requested times")
		}
	})
}

// TestLookupsEndWithTheCrawl: a crawl that is stopped does not wait for name servers.
func TestLookupsEndWithTheCrawl(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, AbsenceTakes: 4 * time.Second})
		o := testOptions(t, web)
		began := time.Now()
		sum, err := crawlFor(t, o, time.Second, web.URL("dead.test", "/"))
		if took := time.Since(began); took > 1100*time.Millisecond || err != nil || !sum.Stopped() {
			t.Errorf("the crawl ended after %v: %v, stopped: %t", took, err, sum.Stopped())
		}
		for u, o := range stored(t, o.DataDir) {
			assert.Equal(t, o.State, storage.Queued, u)
		}
	})
}
