package shards

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/clusterapi"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/modules/audit/auditapi"
	"github.com/amble-crawler/amble/internal/modules/plan"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

func TestMain(m *testing.M) {
	runChild()
	natstest.RunServer()
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // they wait, most of the time
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// patience is how long something may take that has to happen. Only a failure takes as long.
const patience = testkit.Patience

// shards is how many the clusters of the tests have.
const shards = 4

var names = natsconn.Names{Cluster: "web"}

// world is a web, a NATS server and the nodes that crawl the one by the other.
type world struct {
	t       *testing.T
	web     *testweb.Web
	seeds   []crawl.Seed
	servers *natstest.Servers
	started time.Time // of the clock of all nodes
	delay   time.Duration
	ttl     time.Duration
	nodes   []*process
	stalled atomic.Int64 // the longest time for which this process did nothing
	losses  losses

	replicas int
	alter    func(o *Options) // changes the options of the nodes that start; nil: nothing
	api      bool             // the nodes that start have an API

	mu       sync.Mutex // guards children
	children []*child   // all that were started
}

// newWorld makes a world whose crawl has a delay, and whose members have a TTL.
func newWorld(t *testing.T, delay, ttl time.Duration) *world {
	t.Helper()
	web := serve(t, ring())
	return newWorldOf(t, web, allSeeds(t, web), natstest.Start(t, names, 1, nil), delay, ttl)
}

// newWorldOf makes a world of a web and servers.
func newWorldOf(
	t *testing.T, web *testweb.Web, seeds []crawl.Seed, servers *natstest.Servers, delay, ttl time.Duration,
) *world {
	t.Helper()
	w := &world{t: t, web: web, seeds: seeds, servers: servers, started: time.Now(), delay: delay, ttl: ttl}
	w.replicas = len(servers.Addresses())
	watched, end := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	path := filepath.Join(t.TempDir(), "synced")
	watch.Go(func() { w.watch(watched, path) })
	t.Cleanup(func() {
		w.endChildren()
		for _, p := range w.nodes {
			p.kill()
		}
		end()
		watch.Wait()
	})
	return w
}

// watch measures for how long this process does nothing, or waits for its disk, because the machine is
// slow.
func (w *world) watch(ctx context.Context, path string) {
	const every = 20 * time.Millisecond
	for i := 0; ctx.Err() == nil; i++ {
		before := time.Now()
		time.Sleep(every)
		if i%10 == 0 {
			assert.NoError(w.t, errors.Join(os.WriteFile(path, []byte("x"), 0o600), syncFile(path)))
		}
		w.stalled.Store(max(w.stalled.Load(), int64(time.Since(before)-every)))
	}
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func serve(t *testing.T, sites []testweb.Site) *testweb.Web {
	t.Helper()
	web := must.Get(testweb.New(testweb.Config{Sites: sites}))(t)
	t.Cleanup(func() {
		assert.NoError(t, web.Close())
	})
	return web
}

// crawlOptions are those of a crawl of a web.
func crawlOptions(web *testweb.Web, dir, agent string, delay time.Duration) crawl.Options {
	return crawlOptionsWith(web.ResolverAddr(), dir, agent, delay)
}

// crawlOptionsWith are those of a crawl of the web of a resolver.
func crawlOptionsWith(resolver, dir, agent string, delay time.Duration) crawl.Options {
	o := crawl.DefaultOptions()
	o.MinFree, o.DataDir, o.Archive.Dir = 0, dir, dir+"/output"
	o.Fetch.UserAgent, o.Fetch.AllowPrivate, o.Fetch.Resolver = agent, true, resolver
	o.GiveUpAfter, o.Frontier.Politeness.Delay = time.Hour, delay
	return o
}

func logger(t *testing.T) *slog.Logger {
	level := slog.LevelError
	if testing.Verbose() {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level}))
}

// logger is that of a node of this process.
func (w *world) logger(node string) *slog.Logger {
	lines := &logLines{note: func(line string) { w.losses.note(node, line) }, to: w.t.Output(), all: testing.Verbose()}
	return slog.New(slog.NewTextHandler(lines, nil)).With("node", node)
}

// process is a node with a connection of its own.
type process struct {
	w      *world
	name   string
	dir    string
	proxy  *natstest.Proxy
	nc     *nats.Conn
	node   *Node
	api    *server.Server // nil: it has none
	cancel context.CancelFunc
	done   chan struct{}
	err    error // of Run; set before done is closed

	refused atomic.Bool // a command of a test was sent again: see call
}

// options are those of a node with the data directory dir.
func (w *world) options(name, dir string) Options {
	o := nodeOptions(crawlOptions(w.web, dir, name, w.delay), name, w.ttl)
	o.Seeds, o.Replicas = w.seeds, w.replicas
	if w.alter != nil {
		w.alter(&o)
	}
	return o
}

// start starts a node with the data directory dir.
func (w *world) start(name, dir string) *process {
	w.t.Helper()
	p := &process{w: w, name: name, dir: dir, done: make(chan struct{})}
	p.proxy = natstest.NewProxy(w.t, w.servers.Addresses()[0])
	var js jetstream.JetStream
	p.nc, js = natstest.Connect(w.t, natsconn.Options{
		URLs: []string{p.proxy.URL()}, Node: name, Names: names, IgnoreOthers: true,
	})
	o := w.options(name, dir)
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	must.Do(w.t, untilUp(ctx, func() (err error) {
		p.node, err = Open(ctx, p.nc, js, o, w.logger(name))
		return err
	}))
	if d, is := o.Settings.(*delays); is {
		d.node.Store(p.node)
	}
	must.Do(w.t, agree(ctx, p.node))
	observers := crawl.Observers{unanswered(func(page string, end time.Time) { w.losses.addRequest(name, page, end) })}
	w.nodes = append(w.nodes, p)
	if w.api {
		p.api = serveAPI(w.t, p.node, dir)
		observers = append(observers, p.node.engines.observer)
	}
	p.node.Observe(observers)
	run, stop := context.WithCancel(context.Background())
	p.cancel = stop
	go func() {
		defer close(p.done)
		p.err = p.node.Run(run)
		if p.api != nil {
			p.err = errors.Join(p.err, p.api.Close(run))
		}
		p.nc.Close()
	}()
	return p
}

// untilUp does something again while the servers do not answer in time, as nodes do: a slow machine is no fault.
func untilUp(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !errors.Is(err, storage.ErrLogDown) && !errors.Is(err, natsconn.ErrDown) || ctx.Err() != nil {
			return err
		}
	}
}

// agree makes a node agree with the cluster.
func agree(ctx context.Context, n *Node) error {
	return untilUp(ctx, func() error {
		_, err := n.Agree(ctx)
		return err
	})
}

// hasCommitted reports whether the node has committed all pages; it owns all shards.
func (p *process) hasCommitted(want []string) error {
	n := 0
	for _, s := range p.node.Statuses() {
		n += s.URLs[storage.Fetched.String()]
	}
	if n < len(want) {
		return fmt.Errorf("%d of %d", n, len(want))
	}
	return nil
}

// commits waits until the node has committed all pages.
func (p *process) commits(want []string) {
	p.w.t.Helper()
	p.w.eventually("all pages are committed", func() error { return p.hasCommitted(want) })
}

// serveAPI starts the API of a node.
func serveAPI(t testing.TB, n *Node, dir string) *server.Server {
	t.Helper()
	s := must.Get(server.Start(server.Options{
		Listen: "127.0.0.1:0", Division: clusterapi.New(n, dir, time.Now), DataDir: dir, Now: time.Now,
		Metrics: server.NewMetrics("test"), Operations: []server.Operations{auditapi.Register, plan.Register},
	}, nil))(t)
	return s
}

// nodeOptions are those of a node with four shards.
func nodeOptions(crawling crawl.Options, name string, ttl time.Duration) Options {
	o := DefaultOptions(crawling)
	o.Names, o.Replicas, o.Timeout = names, 1, 10*time.Second // less is too little when cores are scarce
	o.Agreed = map[string]string{"scope.mode": "seed-hosts"}
	o.Uptime = func() time.Duration {
		_, uptime := boot.Clock()
		return uptime
	}
	o.Crawl.ExitWhenDone = false
	c := &o.Cluster
	c.Node, c.Shards = name, shards
	c.TTL, c.Margin, c.LastStart = ttl, ttl/8, 200*time.Millisecond
	c.Heartbeat, c.Retry, c.Settle = 300*time.Millisecond, 500*time.Millisecond, 300*time.Millisecond
	if ttl >= serversTTL {
		c.Heartbeat, c.Retry, c.Settle = 2*time.Second, 2*time.Second, 2*time.Second
	}
	return o
}

// kill ends the process at once. Nothing of it reaches the server any more.
func (p *process) kill() {
	p.proxy.Cut()
	p.cancel()
	p.wait()
	p.w.losses.add(p.name, allShards)
}

// leave makes the node leave in an orderly way.
func (p *process) leave() {
	p.w.t.Helper()
	p.node.Leave()
	if p.wait(); p.err != nil {
		p.w.t.Errorf("%s: %v", p.name, p.err)
	}
}

func (p *process) wait() {
	p.w.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.w.t.Fatalf("%s does not end: %+v", p.name, p.node.Status())
	}
}

// owned returns the shards whose engines the node has open, and that may make requests.
func (p *process) owned() []cluster.Shard { return ownedBy(p.node) }

func ownedBy(n *Node) (all []cluster.Shard) {
	for _, h := range holdings(n) {
		all = append(all, h.Shard())
	}
	slices.Sort(all)
	return all
}

// holdings returns those of the shards whose engines the node has open, and that may make requests.
func (p *process) holdings() []*membership.Holding { return holdings(p.node) }

func holdings(n *Node) (all []*membership.Holding) {
	e := n.engines
	e.mu.Lock()
	defer e.mu.Unlock()
	for h, r := range e.open {
		if h.Check() == nil && r.engine.Load() != nil {
			all = append(all, h)
		}
	}
	return all
}

// takes waits until the node owns so many shards at least.
func (p *process) takes(count int) {
	p.w.t.Helper()
	p.w.eventually(p.name+" has shards", func() error {
		if owned := p.owned(); len(owned) < count {
			return fmt.Errorf("it has %v", owned)
		}
		return nil
	})
}

// eventually waits until something holds.
func (w *world) eventually(what string, holds func() error) {
	w.t.Helper()
	testkit.Eventually(w.t, what, holds)
}

var errNotYet = errors.New("not yet")

// hosts and depth are the size of the web of the tests.
const hosts, depth = 8, 12

func host(i int) string { return fmt.Sprintf("ring%d.test", i%hosts) }

// ring is hosts whose pages link to pages of their own, and to pages of the next host that nobody
// else links to. Each host has an address of its own.
func ring() (all []testweb.Site) {
	for i := range hosts {
		routes := testweb.Routes{"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /no/\n")}
		for j := range depth {
			next := []string{"/no/1", fmt.Sprintf("//%s/from-another/%d", host(i+1), j)}
			for k := 1; j == 0 && k < depth; k++ { // there is much to request without another commit
				next = append(next, fmt.Sprintf("/own/%d", k))
			}
			routes[fmt.Sprintf("/own/%d", j)] = testweb.Page("own", next...)
			routes[fmt.Sprintf("/from-another/%d", j)] = testweb.Page("from another", "/own/0", "/no/2")
		}
		routes["/"] = testweb.Page("root", "/no/3")
		if i == 0 {
			routes["/"] = testweb.Page("root", "/own/0")
		}
		all = append(all, testweb.Site{Host: host(i), Handler: routes})
	}
	return all
}

// sharing is the ring with addresses that hosts share, and pages that take some time.
func sharing(address func(host int) string, slow time.Duration) []testweb.Site {
	all := ring()
	for i := range all {
		all[i].Group = address(i)
		routes := all[i].Handler.(testweb.Routes)
		for path, page := range routes {
			routes[path] = testweb.Slow(slow, page)
		}
	}
	return all
}

func allSeeds(t *testing.T, web *testweb.Web) (all []crawl.Seed) {
	t.Helper()
	for _, host := range web.Sites() {
		all = append(all, seed(t, web, host))
	}
	return all
}

// seed is the root of a host.
func seed(t *testing.T, web *testweb.Web, host string) crawl.Seed {
	t.Helper()
	u := must.Get(weburl.Parse(web.URL(host, "/")))(t)
	return crawl.Seed{URL: u, Source: "the test"}
}

// pages returns the pages that were requested, sorted.
func pages(web *testweb.Web) (all []string) {
	for _, q := range web.Requests().Pages() {
		all = append(all, q.Host+q.Path)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// crawlAlone crawls on one machine without a cluster, until that is done.
func crawlAlone(t *testing.T, seeds []crawl.Seed, o crawl.Options) {
	t.Helper()
	e, err := crawl.Open(o, logger(t))
	must.Do(t, err)
	_, err = e.Run(t.Context(), seeds)
	must.Do(t, errors.Join(err, e.Close()))
}

// ringPages are the pages of the ring, sorted.
func ringPages() (all []string) {
	for i := range hosts {
		all = append(all, host(i)+"/")
		for j := range depth {
			all = append(all, fmt.Sprintf("%s/own/%d", host(i), j), fmt.Sprintf("%s/from-another/%d", host(i), j))
		}
	}
	slices.Sort(all)
	return all
}

// crawled waits until all pages were requested.
func (w *world) crawled(want []string) {
	w.t.Helper()
	w.requested(len(want))
}

// requested waits until so many pages were requested.
func (w *world) requested(count int) {
	w.t.Helper()
	w.eventually("the crawl", func() error {
		if got := len(pages(w.web)); got < count {
			return fmt.Errorf("%d of %d pages were requested", got, count)
		}
		return nil
	})
}

// check compares what the servers have seen with the crawl of one machine.
func (w *world) check(want []string) testweb.Log {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	must.Do(w.t, w.web.Settle(ctx))
	assert.Slice(w.t, pages(w.web), want, "pages were requested, one machine requests", len(want))
	log := w.web.Requests()
	w.checkGaps(log)
	for _, q := range log.BeforeRobots() {
		w.t.Errorf("%s%s was requested before the robots.txt of the host", q.Host, q.Path)
	}
	return log
}

// checkGaps checks that each host had its delay.
func (w *world) checkGaps(log testweb.Log) {
	w.t.Helper()
	for _, host := range w.web.Sites() {
		for _, g := range log.Host(host).ShortGaps(w.delay) {
			if w.losses.sawLate(g, w.delay) {
				continue
			}
			w.t.Errorf("%s: %v between %s by %s and %s by %s", host, g.Length,
				g.Before.Path, g.Before.UserAgent, g.After.Path, g.After.UserAgent)
		}
	}
}

// seedsOf returns the seeds as they are on another web.
func (w *world) seedsOf(web *testweb.Web) (all []crawl.Seed) {
	w.t.Helper()
	for _, s := range w.seeds {
		all = append(all, seed(w.t, web, s.URL.Host()))
	}
	return all
}
