package node

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// clients are those of crawls whose fetchers decide everything. What they get is held against plain
// maps.
type clients struct {
	t       *testing.T
	n       running
	r       *rand.Rand
	ids     []string
	hosts   []string
	delay   time.Duration            // of all hosts
	delays  map[string]time.Duration // of a crawl and a host
	blocks  map[string]time.Time     // likewise
	last    map[string]time.Time     // when a batch began or a request ended, likewise
	held    map[string]heldURL       // by crawl and URL
	handed  int
	batches map[string]int // by crawl
}

type heldURL struct {
	crawl, host string
	until       time.Time
}

func key(crawl, host string) string { return crawl + " " + host }

// settle takes note of what has run out.
func (c *clients) settle() {
	for k, h := range c.held {
		if !time.Now().Before(h.until) {
			delete(c.held, k)
			c.last[key(h.crawl, h.host)] = h.until
		}
	}
}

// get gets URLs of a crawl, and checks that nothing comes too early and not too much.
func (c *clients) get(id string, most int) {
	c.t.Helper()
	e, release := c.n.use(c.t, id, false)
	defer release()
	c.settle()
	visibility := time.Duration(2+c.r.IntN(5)) * time.Second
	leases := must.Get(e.Lease(c.t.Context(),
		remote.Request{Fetcher: "c", N: 100, PerHost: most, Visibility: visibility}))(c.t)
	now, began := time.Now(), map[string]bool{}
	for _, l := range leases {
		host, inProcess := l.URL.Host(), 0
		for _, h := range c.held {
			if h.host == host {
				inProcess++
			}
		}
		assert.True(c.t, inProcess < most, "%s: %s is handed out with %d of its host in process, want %d at most", id,
			l.URL, inProcess, most)
		if !began[host] {
			c.checkTime(id, host, now)
			began[host] = true
			c.batches[id]++
		}
		c.held[key(id, l.URL.String())] = heldURL{id, host, now.Add(visibility)}
		c.handed++
	}
	for host := range began {
		c.last[key(id, host)] = now
	}
}

// checkTime checks the time of a batch.
func (c *clients) checkTime(id, host string, now time.Time) {
	c.t.Helper()
	delay, last := time.Duration(0), time.Time{}
	if _, isSet := c.delays[key(id, host)]; !isSet {
		delay = c.delay
	}
	for _, other := range c.ids {
		delay = max(delay, c.delays[key(other, host)])
		if at := c.last[key(other, host)]; at.After(last) {
			last = at
		}
		if until := c.blocks[key(other, host)]; now.Before(until) {
			c.t.Errorf("%s: %s is handed out, and %s blocks it for %v", id, host, other, until.Sub(now))
		}
	}
	assert.AtLeast(c.t, now.Sub(last), delay, id, host, "is handed out after the last request")
}

// put ends one that is in process: it is done, or due again.
func (c *clients) put() {
	c.settle()
	for k, h := range c.held {
		u, err := weburl.Parse(k[len(h.crawl)+1:])
		p := crawl.Put{URL: u, Known: true}
		if c.r.IntN(3) == 0 {
			p.Due = time.Now().Add(-time.Hour)
		}
		e, release := c.n.use(c.t, h.crawl, false)
		if err == nil {
			_, err = e.Put(c.t.Context(), []crawl.Put{p})
		}
		release()
		must.Do(c.t, err)
		delete(c.held, k)
		c.last[key(h.crawl, h.host)] = time.Now()
		return
	}
}

// set changes settings of a host.
func (c *clients) set(id, host string, change func(*crawl.QueueSettings)) {
	c.t.Helper()
	e, release := c.n.use(c.t, id, false)
	defer release()
	must.Do(c.t, e.SetQueue(c.t.Context(), host, change))
}

// fill puts URLs of a host into a crawl.
func (c *clients) fill(id, host string, count int) {
	c.t.Helper()
	e, release := c.n.use(c.t, id, true)
	defer release()
	var puts []crawl.Put
	for i := range count {
		u := must.Get(weburl.Parse(fmt.Sprintf("http://%s/%d", host, i)))(c.t)
		puts = append(puts, crawl.Put{URL: u})
	}
	must.Get(e.Put(c.t.Context(), puts))(c.t)
}

// delete deletes the queue of a host. What its crawl has done there is forgotten.
func (c *clients) delete(id, host string) {
	c.t.Helper()
	e, release := c.n.use(c.t, id, false)
	defer release()
	must.Get(e.Delete(c.t.Context(), crawl.Deletion{Host: host}))(c.t)
	c.settle()
	for k, h := range c.held {
		if h.crawl == id && h.host == host {
			delete(c.held, k)
		}
	}
	delete(c.last, key(id, host))
	delete(c.delays, key(id, host))
	delete(c.blocks, key(id, host))
	c.fill(id, host, 20)
}

// step does anything.
func (c *clients) step(o *Options) {
	id, host := c.ids[c.r.IntN(len(c.ids))], c.hosts[c.r.IntN(len(c.hosts))]
	switch x := c.r.IntN(100); {
	case x < 50:
		c.get(id, 1+c.r.IntN(3))
	case x < 85:
		c.put()
	case x < 90:
		d := time.Duration(c.r.IntN(4)) * time.Second
		c.set(id, host, func(q *crawl.QueueSettings) { q.Delay = &d })
		c.delays[key(id, host)] = d
	case x < 93:
		until := time.Now().Add(time.Duration(c.r.IntN(10)) * time.Second)
		c.set(id, host, func(q *crawl.QueueSettings) { q.BlockedUntil = until })
		c.blocks[key(id, host)] = until
	case x < 95:
		c.delay = time.Duration(c.r.IntN(3)) * time.Second
		must.Do(c.t, c.n.SetDefaultDelay(c.t.Context(), c.delay))
	case x < 98:
		c.delete(id, host)
	default:
		c.restart(o)
	}
}

// restart goes on with the files as they are now, as after kill -9.
func (c *clients) restart(o *Options) {
	next := *o
	next.Crawl.DataDir = copyOf(c.t, o.Crawl.DataDir)
	next.Crawl.Archive.Dir = filepath.Join(next.Crawl.DataDir, "output")
	c.n.stop()
	*o = next
	c.n = start(c.t, *o)
}

// newClients starts a node in which each crawl has URLs of each host.
func newClients(t *testing.T, o *Options, seed uint64) *clients {
	o.Crawl.IgnoreRobots, o.Crawl.Frontier.Politeness.Delay, o.Idle = true, time.Second, 24*time.Hour
	c := &clients{
		t: t, n: start(t, *o), r: rand.New(rand.NewPCG(seed, 18)), delay: time.Second,
		ids: []string{Default, "x", "y"}, hosts: []string{"a.test", "b.test", "c.test"},
		delays: map[string]time.Duration{}, blocks: map[string]time.Time{}, last: map[string]time.Time{},
		held: map[string]heldURL{}, batches: map[string]int{},
	}
	for _, id := range c.ids {
		for _, host := range c.hosts {
			c.fill(id, host, 20)
		}
	}
	return c
}

// newClosing starts a node that closes crawls after a minute without use.
func newClosing(t *testing.T) (*clients, *Options) {
	o := testOptions(t)
	c := newClients(t, &o, 1)
	o.Idle = time.Minute
	c.restart(&o)
	return c, &o
}

// waitForClose waits until a crawl is closed.
func (c *clients) waitForClose(id string) {
	c.t.Helper()
	if time.Sleep(3 * time.Minute); c.n.isOpen(id) {
		c.t.Fatalf("%s is open", id)
	}
}

// handOut hands out a URL of each host that may have one now, and returns these hosts.
func (c *clients) handOut() []string {
	c.t.Helper()
	e, release := c.n.use(c.t, Default, false)
	defer release()
	leases, err := e.Lease(c.t.Context(), remote.Request{Fetcher: "c", N: 100, PerHost: 1, Visibility: time.Second})
	must.Do(c.t, err)
	hosts := make(map[string]bool)
	for i := range leases {
		hosts[leases[i].URL.Host()] = true
	}
	return slices.Sorted(maps.Keys(hosts))
}

// TestHeavyPolitenessOfClients: crawls whose fetchers decide everything keep the longest delay that was
// set for a host in any of them, and else the default, from any batch of a host and from the end of any of
// its requests, hold what any of them blocks, and have as many URLs of a host in process together as one may
// have. All of them get on.
func TestHeavyPolitenessOfClients(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		synctest.Test(t, func(t *testing.T) {
			o := testOptions(t)
			c := newClients(t, &o, seed)
			defer func() { c.n.stop() }()
			for range 400 {
				time.Sleep(time.Duration(c.r.IntN(700)) * time.Millisecond)
				c.step(&o)
			}
			assert.AtLeast(t, c.handed, 60, "seed", seed, "URLs were handed out")
			for _, id := range c.ids {
				assert.AtLeast(t, c.batches[id], 5, "seed", seed, id, "batches")
			}
			must.True(t, !t.Failed(), "seed %d", seed)
		})
	}
}

// TestClosedCrawl: what is set in a crawl that is closed opens it, and holds for all at once. When it is
// closed again, its blocks still hold, and its delays count again when it is opened.
func TestClosedCrawl(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClosing(t)
		defer func() { c.n.stop() }()
		expect := func(hosts ...string) {
			t.Helper()
			assert.Slice(t, c.handOut(), hosts, "are handed out")
		}
		c.waitForClose("x")
		expect("a.test", "b.test", "c.test")
		delay, until := 4*time.Minute, time.Now().Add(time.Hour)
		c.set("x", "a.test", func(q *crawl.QueueSettings) { q.Delay = &delay })
		c.set("x", "b.test", func(q *crawl.QueueSettings) { q.BlockedUntil = until })
		time.Sleep(10 * time.Second)
		expect("c.test")
		c.waitForClose("x")
		time.Sleep(delay / 2) // what DEFAULT was told to wait is over; it has not run out for the next time
		expect("a.test", "c.test")
		time.Sleep(30 * time.Second)
		expect("a.test", "c.test")
		_, release := c.n.use(t, "x", false)
		defer release()
		time.Sleep(10 * time.Second)
		expect("c.test")
		time.Sleep(5 * time.Minute)
		expect("a.test", "c.test")
		time.Sleep(time.Hour)
		expect("a.test", "b.test", "c.test")
	})
}

// TestHoldOfClosedCrawl: a block that a crawl had when it was closed holds the host for the other crawls,
// after a restart too.
func TestHoldOfClosedCrawl(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, o := newClosing(t)
		defer func() { c.n.stop() }()
		c.set("x", "b.test", func(q *crawl.QueueSettings) { q.BlockedUntil = time.Now().Add(time.Hour) })
		c.waitForClose("x")
		handsOut := func() bool {
			time.Sleep(time.Minute)
			return slices.Contains(c.handOut(), "b.test")
		}
		c.restart(o)
		assert.True(t, !handsOut(), "b.test is handed out while it is blocked")
		if time.Sleep(time.Hour); !handsOut() {
			t.Error("b.test is not handed out after the block")
		}
		c.restart(o) // x was closed while it had the block
		c.waitForClose("x")
		c.restart(o)
		if <-c.n.reopened; c.n.isOpen("x") {
			t.Error("x is opened without need")
		}
	})
}

// TestOptOutOfClosedCrawl: an opt-out that is removed while a crawl is closed lets that hand out its URLs
// again when it is opened.
func TestOptOutOfClosedCrawl(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := testOptions(t)
		o.Crawl.IgnoreRobots, o.Idle = true, time.Minute
		c := &clients{t: t, n: start(t, o)}
		defer c.n.stop()
		c.fill("x", "a.test", 3)
		count := func(want int) {
			t.Helper()
			e, release := c.n.use(t, "x", false)
			defer release()
			time.Sleep(30 * time.Second) // what changes the URLs is through
			leases, err := e.Lease(t.Context(),
				remote.Request{Fetcher: "c", N: 9, PerHost: 9, Visibility: time.Second})
			assert.True(t, err == nil && len(leases) == want, "%d URLs are handed out, %v, want %d", len(leases), err,
				want)
		}
		entry := optout.Entry{Scope: optout.ScopeHost, Value: "a.test"}
		must.Do(t, c.n.Default().AddOptOut(t.Context(), entry))
		count(0)
		c.waitForClose("x")
		must.Do(t, c.n.Default().RemoveOptOut(t.Context(), entry.Scope, entry.Value))
		c.waitForClose("x")
		count(3)
	})
}

// TestDeletedCrawl: what the clients of a crawl have requested does not hold the hosts of others once the
// crawl is deleted, or the queue.
func TestDeletedCrawl(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := testOptions(t)
		c := newClients(t, &o, 1)
		defer c.n.stop()
		for _, step := range []struct {
			id   string
			want int
		}{{"x", 3}, {"y", 3}, {Default, 3}} {
			if c.get(step.id, 1); c.handed != step.want {
				t.Errorf("%s: %d URLs were handed out in all, want %d", step.id, c.handed, step.want)
			}
		}
		must.Get(c.n.Delete(t.Context(), "x"))(t)
		c.ids = []string{Default, "y"}
		clear(c.held)
		if c.get("y", 1); c.handed != 6 {
			t.Errorf("%d URLs were handed out in all, want 6", c.handed)
		}
		c.delete("y", "b.test")
		if c.get(Default, 1); c.handed != 7 {
			t.Errorf("%d URLs were handed out in all, want 7", c.handed)
		}
	})
}

// browse is a client of one crawl whose frontier reads robots.txt: it requests what it gets and puts it
// with its next date, until the time is over.
func browse(t *testing.T, n running, web *testweb.Web, id string, next map[string]time.Duration, end time.Time) {
	e, release := n.use(t, id, false)
	defer release()
	for time.Now().Before(end) {
		leases, err := e.Lease(t.Context(), remote.Request{Fetcher: id, N: 10, PerHost: 3, Visibility: time.Minute})
		if err != nil {
			t.Error(err)
			return
		}
		for _, l := range leases {
			transport := &http.Transport{DisableKeepAlives: true,
				DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
					_, port, _ := net.SplitHostPort(addr)
					return web.Dial(ctx, network, net.JoinHostPort(l.Address.String(), port))
				}}
			response, err := (&http.Client{Transport: transport}).Get(l.URL.String())
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			p := crawl.Put{URL: l.URL, Known: true, Fetcher: id}
			if after := next[l.URL.RequestURI()]; after > 0 {
				p.Due = time.Now().Add(after)
			}
			if _, err := e.Put(t.Context(), []crawl.Put{p}); err != nil {
				t.Error(err)
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestRobotsForClients: a crawl that reads robots.txt for its clients hands out nothing that is
// disallowed, keeps Crawl-delay together with the other crawls of the process, and fetches what clients
// put with a date when that has come.
func TestRobotsForClients(t *testing.T) {
	t.Parallel()
	offline(t)
	synctest.Test(t, func(t *testing.T) {
		routes := testweb.Routes{"/robots.txt": testweb.Robots("User-agent: *\nCrawl-delay: 3\nDisallow: /secret\n")}
		for _, path := range []string{"/0", "/1", "/2", "/never", "/secret"} {
			routes[path] = testweb.Slow(200*time.Millisecond, testweb.Page(path))
		}
		web := testweb.Serve(t, testweb.Config{
			Network: memnet.New(memnet.Options{Latency: time.Millisecond}),
			Sites:   []testweb.Site{{Host: "a.test", Handler: routes}},
		})
		o := testOptions(t)
		useWeb(&o, web)
		n := start(t, o)
		defer n.stop()
		ids := []string{Default, "x"}
		var clients sync.WaitGroup
		for _, id := range ids {
			e, release := n.use(t, id, true)
			for path := range routes {
				u, err := weburl.Parse(web.URL("a.test", path))
				if path == "/robots.txt" || err != nil {
					continue
				}
				must.Get(e.Put(t.Context(), []crawl.Put{{URL: u, Known: path == "/never"}}))(t)
			}
			release()
			end := time.Now().Add(10 * time.Minute)
			clients.Go(func() { browse(t, n, web, id, map[string]time.Duration{"/1": 4 * time.Minute}, end) })
		}
		clients.Wait()
		log := web.Requests()
		for _, g := range log.Host("a.test").ShortGaps(3 * time.Second) {
			t.Errorf("%v between %s and %s", g.Length, g.Before.Path, g.After.Path)
		}
		for path, want := range map[string]int{"/0": 2, "/1": 2 * 3, "/2": 2, "/never": 0, "/secret": 0} {
			assert.Equal(t, len(log.Path(path)), want, path, "requests")
		}
		assert.AtMost(t, len(log.BeforeRobots()), 0, "before robots.txt", log.BeforeRobots())
		again := log.Path("/1")
		for i := 2; i < len(again); i++ { // those of two crawls alternate, or one comes twice
			assert.AtLeast(t, again[i].Start.Sub(again[i-2].Start), 4*time.Minute-10*time.Second, "/1 again after")
		}
	})
}
