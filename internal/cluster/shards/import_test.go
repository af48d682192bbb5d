package shards

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// busyHost is a host that wants to be left alone for a while: longer than the move takes, and the TTL for
// which the nodes then wait.
const busyHost, busyWait, moveTTL = "busy.test", 8 * time.Second, 2 * time.Second

// clockSkew is by how much a wait may be shorter that passes from process to process. It passes by the wall clock,
// which may be set meanwhile, and the web measures it by the monotonic one. On busy machines 30 ms were seen.
const clockSkew = time.Second / 2

// ringAndBusy is the ring and a host whose first page says so.
func ringAndBusy() []testweb.Site {
	return append(ring(), testweb.Site{Host: busyHost, Handler: testweb.Routes{
		"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /no/\n"), "/": testweb.Page("root", "/later", "/last"),
		"/last":  testweb.Page("last"),
		"/later": testweb.Flaky(1, testweb.RetryAfter(http.StatusTooManyRequests, "8"), testweb.Page("later")),
	}})
}

// connect connects to the servers of the world without being a node.
func (w *world) connect() (*nats.Conn, jetstream.JetStream) {
	w.t.Helper()
	nc, js := natstest.Connect(w.t, natsconn.Options{
		URLs: []string{"nats://" + w.servers.Addresses()[0]}, Node: "import", Names: names, IgnoreOthers: true,
	})
	return nc, js
}

// crawlHalf crawls on one machine until so many pages were requested.
func (w *world) crawlHalf(dir string, count int) {
	w.t.Helper()
	o := Options{Crawl: crawlOptions(w.web, dir, "alone", w.delay)}
	if w.alter != nil {
		w.alter(&o)
	}
	e := must.Get(crawl.Open(o.Crawl, logger(w.t)))(w.t)
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		_, err := e.Run(ctx, w.seeds)
		ended <- errors.Join(err, e.Close())
	}()
	w.requested(count)
	stop()
	must.Do(w.t, <-ended)
}

// importFrom imports the crawl of one machine.
func (w *world) importFrom(ctx context.Context, dir string, report func(Imported)) (Imported, error) {
	w.t.Helper()
	nc, js := w.connect()
	o := w.options("import", w.t.TempDir())
	o.Timeout = patience
	return Import(ctx, nc, js, o, dir, report)
}

// TestHeavyImport: a crawl that one machine has begun goes on in a cluster. Each page is requested once over both,
// unless a node has lost it, and hosts wait for as long as they would have on the one machine. An import that is
// interrupted keeps nodes out, and is done again.
func TestHeavyImport(t *testing.T) {
	t.Parallel()
	web := serve(t, ringAndBusy())
	w := newWorldOf(t, web, allSeeds(t, web), natstest.Start(t, names, 1, nil), 20*time.Millisecond, moveTTL)
	w.alter = func(o *Options) { o.Crawl.Frontier.RetryDelay = time.Second }
	want := append([]string{busyHost + "/", busyHost + "/last", busyHost + "/later"}, ringPages()...)
	alone := t.TempDir()
	w.crawlHalf(alone, len(want)/2)
	before := w.by("alone").Host(busyHost).Pages()
	must.True(t, len(before) >= 2, "%d requests of %s before the move", len(before), busyHost)
	database := must.Get(os.ReadFile(filepath.Join(alone, storage.FileName)))(t)

	killed, kill := context.WithCancel(t.Context())
	if _, err := w.importFrom(killed, alone, func(i Imported) {
		if i.Shards == 2 {
			kill()
		}
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("an import that is interrupted: %v", err)
	}
	assert.Is(t, w.tryOpen("early"), membership.ErrReserved, "a node that joins before the import is complete")
	for _, after := range []int{1, shards / 2, shards} {
		w.startMover(func(c *childConfig) { c.Import, c.StopAfter = alone, after }).killAfter(after)
		assert.Is(t, w.tryOpen("early"), membership.ErrReserved, "a node that joins after an import was killed")
	}
	done, err := w.importFrom(t.Context(), alone, func(Imported) {})
	must.True(t, err == nil && done.Shards == shards && done.Counters.Of(storage.Fetched) >= uint64(len(want)/3),
		"%+v, %v", done, err)
	assert.Fails(w.importFrom(t.Context(), alone, func(Imported) {}))(t, membership.ErrInService,
		"an import into a cluster in service")

	for _, node := range []string{"node0", "node1", "node2"} {
		w.start(node, t.TempDir())
	}
	w.crawled(want)
	w.eventually("the busy host is requested again", func() error {
		if len(web.Requests().Host(busyHost).Pages()) < 4 {
			return errNotYet
		}
		return nil
	})
	for _, p := range w.nodes {
		p.leave()
	}
	log := w.check(want)
	w.checkLost(log.Pages().Filter(func(q testweb.Request) bool { return q.Host != busyHost }))
	busy := log.Host(busyHost)
	for _, q := range busy {
		if wait := q.Start.Sub(before[1].End); wait > 0 && wait < busyWait-clockSkew {
			t.Errorf("%s%s was requested after %v, it demanded %v", busyHost, q.Path, wait, busyWait)
		}
	}
	if after, err := os.ReadFile(filepath.Join(alone, storage.FileName)); err != nil ||
		string(after) != string(database) {
		t.Errorf("the database that was imported has changed: %v", err)
	}
}

// tryOpen opens a node that is not to run.
func (w *world) tryOpen(name string) error {
	w.t.Helper()
	nc, js := w.connect()
	return tryOpen(w.t, nc, js, w.options(name, w.t.TempDir()))
}

func tryOpen(t *testing.T, nc *nats.Conn, js jetstream.JetStream, o Options) error {
	t.Helper()
	return untilUp(t.Context(), func() error {
		n, err := Open(t.Context(), nc, js, o, logger(t))
		if err == nil {
			n.member.Close()
			n.routes.Close()
			n.engines.shared.Close()
		}
		return err
	})
}
