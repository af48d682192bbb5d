package shards

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// relay is a web whose pages lead from host to host: most of the time all shards but one have nothing to
// do. One host cannot be reached.
func relay(turns int) (sites []testweb.Site) {
	const hosts = 6
	name := func(i int) string { return fmt.Sprintf("relay%d.test", i%hosts) }
	for i := range hosts {
		routes := testweb.Routes{"/": testweb.Page("root")}
		for turn := i; turn < turns; turn += hosts {
			routes[fmt.Sprintf("/%d", turn)] = testweb.Page("turn", fmt.Sprintf("//%s/%d", name(turn+1), turn+1))
		}
		if i == 0 {
			routes["/"] = testweb.Page("root", "/0")
		}
		sites = append(sites, testweb.Site{Host: name(i), Handler: routes})
	}
	return append(sites, testweb.Site{Host: "broken.test", Handler: testweb.Routes{
		"/": testweb.Page("never"), "/robots.txt": testweb.Status(500),
	}})
}

// TestHeavyEnd: with exit_when_done all nodes leave when the crawl is over on all of them, and not before: also
// if a node is killed in the middle. Hosts that could not be fetched are reported as on one machine.
func TestHeavyEnd(t *testing.T) {
	t.Parallel()
	const turns = 60
	// Below the first backoff of a robots.txt, and beyond what a slow page makes its host wait.
	const giveUp = 20 * time.Second
	web := serve(t, relay(turns))
	w := newWorldOf(t, web, nil, natstest.Start(t, names, 1, nil), 20*time.Millisecond, shortTTL)
	for _, site := range relay(turns) {
		w.seeds = append(w.seeds, seed(t, web, site.Host))
	}
	w.alter = func(o *Options) {
		o.Crawl.ExitWhenDone, o.Crawl.GiveUpAfter, o.EndEvery = true, giveUp, 10*time.Millisecond
	}
	machine := serve(t, relay(turns))
	o := crawlOptions(machine, t.TempDir(), "alone", time.Millisecond)
	o.GiveUpAfter = giveUp
	crawlAlone(t, w.seedsOf(machine), o)
	want := pages(machine)
	for i := range 3 {
		w.start(fmt.Sprintf("node%d", i), t.TempDir())
	}
	victim := w.busy(len(want) / 4)
	victim.kill()
	var postponed []crawl.Postponed
	for _, p := range w.nodes {
		if p == victim {
			continue
		}
		if p.wait(); p.err != nil {
			t.Errorf("%s: %v", p.name, p.err)
		}
		s := p.node.Summary()
		assert.True(t, s.Finished, "%s has left, and the crawl was not over", p.name)
		postponed = append(postponed, s.Postponed...)
	}
	assert.Slice(t, pages(web), want, "pages were requested, one machine requests", len(want))
	if !slices.ContainsFunc(postponed, func(p crawl.Postponed) bool { return p.Host == "broken.test" && p.Failed }) {
		t.Errorf("postponed: %+v", postponed)
	}
}

// busy waits until so many pages were requested, and returns the node that has most shards.
func (w *world) busy(after int) (most *process) {
	w.t.Helper()
	w.requested(after)
	for _, p := range w.nodes {
		if most == nil || len(p.owned()) > len(most.owned()) {
			most = p
		}
	}
	return most
}

// TestGoldenAnswers: queries and answers of this version are these bytes.
func TestGoldenAnswers(t *testing.T) {
	r := rest{epoch: 300, done: true, number: 129, read: 5, pages: 6}
	b := r.append(nil)
	assert.Equal(t, fmt.Sprintf("%x", b), "ac020181010506", "rest is", b)
	d := wire.NewDecoder(b)
	assert.Returns(decodeRest(&d))(t, r, "rest")
	epochs := []uint64{300, 0, 7}
	b = appendEnd(nil, epochs)
	assert.Equal(t, fmt.Sprintf("%x", b), "0103ac020007", "the end is", b)
	got, err := decodeEnd(b, 3)
	assert.True(t, err == nil && slices.Equal(got, epochs), "the end: %v, %v", got, err)
	assert.Fails(decodeEnd(b, 4))(t, nil, "the end of a crawl with other shards")
}

// FuzzEnd: whatever arrives, it is refused or means what is encoded the same.
func FuzzEnd(f *testing.F) {
	f.Add(appendEnd(nil, []uint64{300, 0, 7}))
	f.Add((&rest{epoch: 300, read: 5}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if epochs, err := decodeEnd(b, 3); err == nil {
			again, err := decodeEnd(appendEnd(nil, epochs), 3)
			assert.True(t, err == nil && slices.Equal(again, epochs), "%v, %v, want %v", again, err, epochs)
		}
		d := wire.NewDecoder(b)
		if r, err := decodeRest(&d); err == nil {
			d = wire.NewDecoder(r.append(nil))
			assert.Returns(decodeRest(&d))(t, r)
		}
	})
}
