package shards

import (
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/politeness"
)

// sharedLimit is a limit that hosts of several shards share.
type sharedLimit struct {
	address func(host int) string // the name of its address
	slow    time.Duration         // how long a page takes
	limit   func(o *crawl.Options)
	check   func(t *testing.T, log testweb.Log)
}

// The delays of limits: that of an address, or a range, and that of a group.
const addressDelay, groupDelay = 5 * time.Millisecond, 10 * time.Millisecond

func oneAddress(int) string { return "one" }

// sharedLimits are the limits of the tests, by name.
var sharedLimits = map[string]sharedLimit{
	"delay": {
		address: oneAddress,
		limit:   func(o *crawl.Options) { o.Frontier.Politeness.IPDelay = addressDelay },
		check:   checkAddressDelay,
	},
	"slots": {
		address: oneAddress, slow: 10 * time.Millisecond,
		limit: func(o *crawl.Options) { o.Frontier.Politeness.PerIP = 3 },
		check: func(t *testing.T, log testweb.Log) {
			most := log.MaxInFlight()
			assert.True(t, most <= 3, "%d requests at a time to an address that allows 3", most)
		},
	},
	"range": {
		address: func(i int) string { return host(i) },
		limit: func(o *crawl.Options) {
			o.Frontier.Ranges = []frontier.Range{{
				Network: netip.MustParsePrefix("127.0.0.0/8"), Limit: politeness.LimitOptions{Delay: addressDelay},
				Shared: true,
			}}
		},
		check: func(t *testing.T, log testweb.Log) { checkGaps(t, "the range", log, addressDelay) },
	},
	"budget": {
		address: oneAddress, slow: 2 * time.Millisecond,
		limit: func(o *crawl.Options) {
			o.Frontier.Politeness.IPRate, o.Frontier.Politeness.PerIP = budgetRate, 3
		},
		check: checkAddressBudget,
	},
	// Each group has hosts at both addresses.
	"groups": {
		address: func(i int) string { return fmt.Sprint("address", i/2%2) },
		limit: func(o *crawl.Options) {
			o.Frontier.Politeness.IPDelay = addressDelay
			for g := range 2 {
				group := frontier.Group{Name: fmt.Sprint("group", g), Limit: politeness.LimitOptions{Delay: groupDelay}}
				for i := g; i < hosts; i += 2 {
					group.Hosts = append(group.Hosts, host(i))
				}
				o.Frontier.Groups = append(o.Frontier.Groups, group)
			}
		},
		check: func(t *testing.T, log testweb.Log) {
			checkAddressDelay(t, log)
			for g := range 2 {
				checkGaps(t, fmt.Sprint("group", g), log.Filter(func(q testweb.Request) bool {
					return slices.ContainsFunc([]int{0, 2, 4, 6}, func(i int) bool { return q.Host == host(i+g) })
				}), groupDelay)
			}
		},
	},
}

// budgetRate is the requests a second with which the budget of an address begins.
const budgetRate = 20

// checkAddressBudget holds an address to the budget with which it begins, for all nodes together: it takes 8
// responses of one node to make it larger.
func checkAddressBudget(t *testing.T, log testweb.Log) {
	t.Helper()
	checkGaps(t, "the first requests", log[:min(8, len(log))], time.Second/budgetRate)
	assert.AtMost(t, log.MaxInFlight(), 3, "requests at a time to an address that allows 3")
}

func checkAddressDelay(t *testing.T, log testweb.Log) {
	t.Helper()
	for _, address := range log.Addresses() {
		checkGaps(t, address, log.Address(address), addressDelay)
	}
}

// checkGaps reports gaps that are too short.
func checkGaps(t *testing.T, what string, log testweb.Log, least time.Duration) {
	t.Helper()
	for _, g := range log.ShortGaps(least) {
		t.Errorf("%s: %v between %s%s by %s and %s%s by %s", what, g.Length, g.Before.Host, g.Before.Path,
			g.Before.UserAgent, g.After.Host, g.After.Path, g.After.UserAgent)
	}
}

// share crawls the ring with three nodes and a shared limit. In the middle of the crawl something happens.
// All pages are requested, and the servers see the limit kept.
func share(t *testing.T, limit sharedLimit, ttl time.Duration, happens func(w *world, want []string)) {
	want := ringPages()
	web := serve(t, sharing(limit.address, limit.slow))
	w := newWorldOf(t, web, allSeeds(t, web), natstest.Start(t, names, 1, nil), time.Millisecond, ttl)
	w.alter = func(o *Options) { limit.limit(&o.Crawl) }
	for i := range 3 {
		w.start(fmt.Sprintf("node%d", i), t.TempDir())
	}
	happens(w, want)
	w.crawled(want)
	w.leaveRest()
	by := make(map[string]int)
	for _, q := range w.check(want) {
		by[q.UserAgent]++
	}
	limit.check(t, w.web.Requests())
	assert.AtLeast(t, len(by), 2, "requests by node", by)
	t.Logf("%d pages; requests by node: %v", len(want), by)
}

// leaveRest has the nodes leave that have not ended.
func (w *world) leaveRest() {
	for _, p := range w.nodes {
		select {
		case <-p.done:
		default:
			p.leave()
		}
	}
}

// kill kills the node that grants the first address.
func kill(w *world, want []string) {
	w.victim(want)
	w.granter().kill()
}

// granter returns the node that owns the shard of an address, and grants it.
func (w *world) granter() *process {
	w.t.Helper()
	address := netip.MustParseAddr(w.web.Requests()[0].Address)
	key := grantKey(frontier.LimitKey{Network: politeness.AddressKey(address)})
	var granter *process
	w.eventually("somebody grants the address", func() error {
		for _, p := range w.nodes {
			if slices.Contains(p.owned(), cluster.GranterOf(key, shards)) {
				granter = p
				return nil
			}
		}
		return errNotYet
	})
	return granter
}

// TestSharedAddress: hosts of several shards and nodes share an address with a delay. The node that grants
// it is killed.
func TestSharedAddress(t *testing.T) {
	t.Parallel()
	share(t, sharedLimits["delay"], shortTTL, kill)
}

// TestHeavySharedBudget: hosts of several shards and nodes share an address, and its budget is one for all nodes.
func TestHeavySharedBudget(t *testing.T) {
	t.Parallel()
	share(t, sharedLimits["budget"], longTTL, func(*world, []string) {})
}

// countGrants counts the messages about grants from now on.
func (w *world) countGrants() func() int {
	nc, _ := natstest.Connect(w.t, natsconn.Options{
		URLs: []string{"nats://" + w.servers.Addresses()[0]}, Node: "counts", Names: names, IgnoreOthers: true,
	})
	var n atomic.Int64
	for _, subject := range []string{"grant", "granted"} {
		must.Get(nc.Subscribe(names.Subject(subject, ">"), func(*nats.Msg) { n.Add(1) }))(w.t)
	}
	must.Do(w.t, nc.Flush())
	return func() int { return int(n.Load()) }
}

// TestHeavySoleUsers: while no two nodes need the same address, there are few messages about grants, however
// many requests there are; and a node alone sends none.
func TestHeavySoleUsers(t *testing.T) {
	t.Parallel()
	want := ringPages()
	w := newWorld(t, time.Millisecond, longTTL)
	messages := w.countGrants()
	w.start("first", t.TempDir())
	w.requested(len(want) / 2)
	assert.AtMost(t, messages(), 0, "messages about grants of one node")
	w.start("second", t.TempDir())
	w.crawled(want)
	w.leaveRest()
	requests := len(w.check(want))
	assert.AtMost(t, messages(), requests/4, "messages about grants for", requests, "requests")
	t.Logf("%d messages about grants for %d requests", messages(), requests)
}

// TestHandOver: hosts of several shards and nodes share an address. A node leaves in an orderly way and comes
// back, and then all of them at once. The address waits for no TTL.
func TestHandOver(t *testing.T) {
	t.Parallel()
	handOver(t, 20*time.Millisecond, 1)
}

// handOver is TestHandOver with some of three nodes that leave one by one, and a delay of the address.
func handOver(t *testing.T, delay time.Duration, leaving int) {
	const ttl = time.Minute
	want := ringPages()
	web := serve(t, sharing(oneAddress, 0))
	w := newWorldOf(t, web, allSeeds(t, web), natstest.Start(t, names, 1, nil), time.Millisecond, ttl)
	w.alter = func(o *Options) {
		o.Crawl.Frontier.Politeness.IPDelay = delay
		o.Cluster.Heartbeat, o.Cluster.Retry, o.Cluster.Settle = time.Second, 500*time.Millisecond, 300*time.Millisecond
	}
	var all []*process
	for i := range 3 {
		all = append(all, w.start(fmt.Sprint("node", i), t.TempDir()))
	}
	for i, p := range all[:leaving] {
		w.requested(len(want) * (i + 1) / (leaving + 2))
		p.leave()
		all[i] = w.start(p.name, p.dir)
	}
	w.requested(len(want) * (leaving + 1) / (leaving + 2))
	for _, p := range all {
		p.node.Leave()
	}
	for i, p := range all {
		p.leave()
		all[i] = w.start(p.name, p.dir)
	}
	w.crawled(want)
	w.leaveRest()
	w.check(want)
	var longest time.Duration
	for _, address := range web.Requests().Addresses() {
		log := web.Requests().Address(address)
		checkGaps(t, address, log, delay)
		for _, g := range log.Gaps() {
			longest = max(longest, g.Length)
		}
	}
	t.Logf("the longest pause of the address: %v", longest.Round(time.Millisecond))
	assert.True(t, longest <= ttl/2 || time.Duration(w.stalled.Load()) >= time.Second,
		"no request to the address for %v", longest)
}
