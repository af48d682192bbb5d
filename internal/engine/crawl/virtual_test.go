package crawl

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// virtually runs a test in virtual time, with a network in memory for its webs: the time that a
// crawl waits passes at once, and that of a busy machine does not count. testOptions makes a crawl
// use the network of its web. Only the disk is real.
func virtually(t *testing.T, o memnet.Options, test func(t *testing.T, network *memnet.Network)) {
	t.Helper()
	// Package net reads its configuration once, and keeps a channel with it that has to come from
	// outside of all bubbles.
	offline := func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
	_, _ = (&net.Resolver{PreferGo: true, Dial: offline}).LookupHost(t.Context(), "outside.test")
	synctest.Test(t, func(t *testing.T) { test(t, memnet.New(o)) })
}

// inVirtualTime runs a test in virtual time, with a network whose latency is a millisecond. serve
// serves sites on it until the test ends.
func inVirtualTime(t *testing.T, test func(t *testing.T, serve func(...testweb.Site) *testweb.Web)) {
	t.Helper()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		test(t, func(sites ...testweb.Site) *testweb.Web {
			return testweb.Serve(t, testweb.Config{Network: network, Sites: sites})
		})
	})
}

// TestVirtualTime: a crawl in virtual time takes exactly as long as its delays and the latency of
// its network request, and is as polite.
func TestVirtualTime(t *testing.T) {
	t.Parallel()
	const latency = 50 * time.Millisecond
	virtually(t, memnet.Options{Latency: latency}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{
			site("a.test", "", paths("/", 20), nil),
			site("b.test", "User-agent: *\nCrawl-delay: 60\n", paths("/", 20), nil),
		}})
		o := testOptions(t, web)
		o.GiveUpAfter = time.Hour
		o.Frontier.Politeness.Delay = 10 * time.Second
		started := time.Now()
		crawl(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		took := time.Since(started)
		least, most := 21*time.Minute, 22*time.Minute
		assert.True(t, took >= least && took <= most, "the crawl took %v, want %v to %v", took, least, most)
		log := web.Requests()
		for host, delay := range map[string]time.Duration{"a.test": 10 * time.Second, "b.test": time.Minute} {
			for _, gap := range log.Host(host).Gaps()[1:] {
				assert.Equal(t, gap.Length, delay+2*latency, host, "between", gap.Before.Path, gap.After.Path)
			}
		}
		assert.Equal(t, len(log.Pages()), 42, "pages")
		checkOutput(t, o)
	})
}
