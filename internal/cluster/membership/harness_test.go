package membership

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(childURL) != "" {
		runChild()
		return
	}
	natstest.RunServer()
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // they wait, most of the time
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

var names = natsconn.Names{Cluster: "web"}

// patience is how long something may take that has to happen. Only a failure takes as long.
const patience = testkit.Patience

// shortOptions are options with a TTL of 2 s.
func shortOptions(node string) cluster.Options {
	o := cluster.DefaultOptions()
	o.Node, o.Shards = node, 24
	o.TTL, o.Margin, o.LastStart = 2*time.Second, 300*time.Millisecond, 200*time.Millisecond
	o.Heartbeat, o.Retry, o.Settle = 300*time.Millisecond, 500*time.Millisecond, 500*time.Millisecond
	return o
}

// neverLate gives a node a TTL that ends by no slow machine: only a test that moves its clock comes to that.
func neverLate(o *Options) { o.Cluster.TTL, o.Cluster.Margin = 3*patience, patience }

// patient returns a context that gives an answer of a server as long as patience. Without a deadline the client would
// wait for seconds only.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// ownership is the time in which a node certainly owned a shard with an epoch: from after the first
// sample until before the last.
type ownership struct {
	node     string
	shard    cluster.Shard
	epoch    cluster.Sequence
	from, to time.Duration // from is 0 if there was no sample
	orderly  bool
	ended    bool
}

// judge has what all engines of a test have seen. All nodes of the test read the same clock.
type judge struct {
	mu     sync.Mutex
	owners []*ownership
}

func (j *judge) open(node string, h *Holding) *ownership {
	o := &ownership{node: node, shard: h.Shard(), epoch: h.Epoch()}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.owners = append(j.owners, o)
	return o
}

// sample records that the node owns the shard, if it does so throughout a sample.
func (j *judge) sample(o *ownership, owns func() bool) {
	before := uptime()
	if !owns() {
		return
	}
	after := uptime()
	j.mu.Lock()
	defer j.mu.Unlock()
	if o.from == 0 {
		o.from = after
	}
	o.to = max(o.to, before)
}

// check holds that no two nodes owned a shard at a time, and that no epoch was used twice.
func (j *judge) check(t *testing.T) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, a := range j.owners {
		for _, b := range j.owners[i+1:] {
			if a.shard != b.shard {
				continue
			}
			assert.Not(t, a.epoch, b.epoch, "shard", a.shard, "was opened twice with epoch by", a.node, b.node)
			if a.from != 0 && b.from != 0 && a.from <= b.to && b.from <= a.to {
				t.Errorf("shard %d had two owners: %s with epoch %d from %v to %v, %s with epoch %d from %v to %v",
					a.shard, a.node, a.epoch, a.from, a.to, b.node, b.epoch, b.from, b.to)
			}
		}
	}
}

// engines are engines that only check whether they own their shards.
type engines struct {
	node   string
	shared *judge
	mu     sync.Mutex
	open   map[*Holding]*fakeEngine
	wg     sync.WaitGroup
}

type fakeEngine struct {
	record *ownership
	end    context.CancelFunc
}

func (e *engines) Open(h *Holding) {
	ctx, cancel := context.WithCancel(context.Background())
	f := &fakeEngine{record: e.shared.open(e.node, h), end: cancel}
	e.mu.Lock()
	e.open[h] = f
	e.mu.Unlock()
	e.wg.Go(func() {
		for ctx.Err() == nil {
			e.request(ctx, h, f.record)
		}
		e.mu.Lock()
		delete(e.open, h)
		e.mu.Unlock()
		h.Ended(nil)
	})
}

// request is a request that takes some time. The node owns the shard for as long as it may be made.
func (e *engines) request(ctx context.Context, h *Holding, o *ownership) {
	r, err := h.Begin(ctx)
	if err != nil {
		pause(ctx, 5*time.Millisecond)
		return
	}
	defer r.End()
	for range rand.IntN(10) {
		e.shared.sample(o, func() bool { return r.Context().Err() == nil && r.Check() == nil })
		pause(r.Context(), 5*time.Millisecond)
	}
}

func (e *engines) Close(h *Holding, orderly bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.open[h]; f != nil {
		f.record.orderly, f.record.ended = orderly, true
		f.end()
	}
}

func (e *engines) Granted(string) {}

// owned returns the shards that may make requests now.
func (e *engines) owned() (shards []cluster.Shard) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for h := range e.open {
		if h.Check() == nil {
			shards = append(shards, h.Shard())
		}
	}
	return shards
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// world is some nodes with their servers.
type world struct {
	t       *testing.T
	judge   *judge
	servers *natstest.Servers
	file    string // with credentials that allow one cluster only
	alter   func(o *Options)
	mu      sync.Mutex
	nodes   map[string]*process
}

func newWorld(t *testing.T, servers int) *world {
	t.Helper()
	return newWorldOf(t, servers, natstest.Start)
}

// newWorldOf makes a world whose servers start starts.
func newWorldOf(t *testing.T, servers int, start func(testing.TB, natsconn.Names, int,
	func(int, *natsconn.ServerOptions)) *natstest.Servers) *world {
	t.Helper()
	w := &world{t: t, judge: &judge{}, nodes: make(map[string]*process)}
	w.file = filepath.Join(t.TempDir(), "credentials")
	must.Do(t, os.WriteFile(w.file, []byte("amble:secret\n"), 0o600))
	w.servers = start(t, names, servers, func(_ int, o *natsconn.ServerOptions) { o.Credentials = w.file })
	t.Cleanup(func() {
		for _, p := range w.processes() {
			p.kill()
		}
		w.judge.check(t)
	})
	return w
}

// process is a node with connections of its own.
type process struct {
	w       *world
	name    string
	proxies []*natstest.Proxy
	nc      *nats.Conn
	node    *Node
	engines *engines
	cancel  context.CancelFunc
	done    chan struct{}
	err     error
}

// connect connects a node to all servers through proxies.
func (w *world) connect(name string) (p *process, js jetstream.JetStream) {
	w.t.Helper()
	p = &process{w: w, name: name, done: make(chan struct{})}
	var urls []string
	for _, a := range w.servers.Addresses() {
		proxy := natstest.NewProxy(w.t, a)
		p.proxies = append(p.proxies, proxy)
		urls = append(urls, proxy.URL())
	}
	o := natsconn.Options{URLs: urls, Node: name, Names: names, Credentials: w.file, IgnoreOthers: true}
	var err error
	for range 100 {
		if p.nc, js, err = natsconn.Connect(o); err == nil {
			return p, js
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Fatal(err)
	return nil, nil
}

func (w *world) options(name string) Options {
	o := Options{Cluster: shortOptions(name), Names: names, Replicas: min(len(w.servers.Addresses()), 3),
		Uptime:  uptime,
		Engines: &engines{node: name, shared: w.judge, open: make(map[*Holding]*fakeEngine)}}
	if testing.Verbose() {
		o.Log = slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})).With(
			"node", name)
	}
	if w.alter != nil {
		w.alter(&o)
	}
	return o
}

// start starts a node.
func (w *world) start(name string) *process {
	w.t.Helper()
	p, js := w.connect(name)
	o := w.options(name)
	p.engines, _ = o.Engines.(*engines)
	var err error
	for range 20 { // servers may still elect their leader
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		p.node, err = Join(ctx, p.nc, js, o)
		cancel()
		if err == nil {
			break
		}
	}
	must.Do(w.t, err)
	p.run()
	return p
}

// run runs the node until it is killed or has left.
func (p *process) run() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.w.mu.Lock()
	p.w.nodes[p.name] = p
	p.w.mu.Unlock()
	go func() {
		defer close(p.done)
		p.err = p.node.Run(ctx)
		p.nc.Close()
	}()
}

// kill ends the process at once. Nothing of it reaches a server any more.
func (p *process) kill() {
	p.cut()
	p.cancel()
	<-p.done
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.w.nodes[p.name] == p {
		delete(p.w.nodes, p.name)
	}
}

func (p *process) cut() {
	for _, proxy := range p.proxies {
		proxy.Cut()
	}
}

func (p *process) mend() {
	for _, proxy := range p.proxies {
		proxy.Mend()
	}
}

// leave makes the node leave and waits for its end.
func (p *process) leave() {
	p.w.t.Helper()
	p.node.Leave()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.w.t.Fatalf("%s has not left: %+v", p.name, p.node.Status())
	}
	assert.NoError(p.w.t, p.err, p.name)
	p.w.mu.Lock()
	delete(p.w.nodes, p.name)
	p.w.mu.Unlock()
}

func (w *world) processes() (list []*process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.nodes {
		list = append(list, p)
	}
	return list
}

// served waits until each shard belongs to one of some nodes, and each of these has one.
func (w *world) served(what string, nodes ...*process) {
	w.t.Helper()
	testkit.Eventually(w.t, what, func() error {
		owners := make(map[cluster.Shard]int)
		for _, p := range nodes {
			shards := p.engines.owned()
			if len(shards) == 0 {
				return fmt.Errorf("%s owns nothing", p.name)
			}
			for _, s := range shards {
				owners[s]++
			}
		}
		for s := range cluster.Shard(shortOptions("x").Shards) {
			if owners[s] != 1 {
				return fmt.Errorf("shard %d has %d owners", s, owners[s])
			}
		}
		return nil
	})
}

var errNotYet = errors.New("not yet")
