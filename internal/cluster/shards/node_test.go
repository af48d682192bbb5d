package shards

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// The TTLs of members: one that no slow machine exceeds, one that elections of three servers do not, and
// one for tests that wait for its end. A new granter waits for it.
const longTTL, serversTTL, shortTTL = 10 * time.Second, 15 * time.Second, 2 * time.Second

// TestHeavyOneNode: a node with four shards requests the pages that one machine requests, each once.
func TestHeavyOneNode(t *testing.T) {
	t.Parallel()
	want := ringPages()
	alone := aloneAt(t, ring())
	must.True(t, slices.Equal(alone, want), "one machine has requested %v, want %v", alone, want)
	w := newWorld(t, 20*time.Millisecond, longTTL)
	p := w.start("first", t.TempDir())
	w.crawled(want)
	p.leave()
	w.checkRepeats(want)
}

// TestKilledNode: of three nodes one is killed in the middle of the crawl. The others request its pages,
// and none of another host again; the node itself requests nothing any more.
func TestKilledNode(t *testing.T) {
	t.Parallel()
	want := ringPages()
	w := newWorld(t, 20*time.Millisecond, shortTTL)
	for i := range 3 {
		w.start(fmt.Sprintf("node%d", i), t.TempDir())
	}
	victim := w.victim(want)
	victim.kill()
	dead := time.Now()
	w.crawled(want)
	for _, p := range w.nodes {
		if p != victim {
			p.leave()
		}
	}
	twice := w.checkRepeats(want)
	after, late := 0, make(map[string]int)
	for _, q := range w.web.Requests() {
		if !q.Start.After(dead) {
			continue
		}
		if after++; q.UserAgent == victim.name {
			late[q.Host]++
		}
	}
	for host, n := range late {
		if n > 1 { // the server may see the one that was in flight late
			t.Errorf("%s received %d requests of the node that was killed", host, n)
		}
	}
	assert.Not(t, after, 0, "the crawl was over before the node was killed")
	t.Logf("%d pages, %d of them twice, %d requests after the death", len(want), twice, after)
}

// TestHeavyCutOff: a node that cannot reach NATS any more, and goes on to live, stops before another node
// begins. When it is back it is a node like others.
func TestHeavyCutOff(t *testing.T) {
	t.Parallel()
	want := ringPages()
	w := newWorld(t, 100*time.Millisecond, shortTTL)
	for i := range 3 {
		w.start(fmt.Sprintf("node%d", i), t.TempDir())
	}
	victim := w.victim(want)
	victim.proxy.Cut()
	w.crawled(want)
	victim.proxy.Mend()
	victim.takes(1)
	for _, p := range w.nodes {
		p.leave()
	}
	t.Logf("%d pages, %d of them twice", len(want), w.checkRepeats(want))
}

// victim waits until the crawl is under way, and returns a node that has some of the shards.
func (w *world) victim(want []string) (victim *process) {
	w.t.Helper()
	w.eventually("the nodes crawl all shards", func() error {
		owned := 0
		victim = nil
		for _, p := range w.nodes {
			all := p.owned()
			if owned += len(all); len(all) < shards && slices.ContainsFunc(all, hasHosts) {
				victim = p
			}
		}
		if n := len(pages(w.web)); owned != shards || victim == nil || n < len(want)/4 {
			return fmt.Errorf("%d shards, and %d of %d pages", owned, n, len(want)) // each change is progress
		}
		return nil
	})
	return victim
}

// hasHosts reports whether hosts of the web are in a shard.
func hasHosts(s cluster.Shard) bool {
	for i := range hosts {
		if shardOf(host(i)) == s {
			return true
		}
	}
	return false
}

// TestMoves: shards go to a node that joins, and back when it leaves, in an orderly way. No page is
// requested twice.
func TestMoves(t *testing.T) {
	t.Parallel()
	want := ringPages()
	w := newWorld(t, 20*time.Millisecond, longTTL)
	first := w.start("first", t.TempDir())
	w.requested(len(want) / 8)
	second := w.start("second", t.TempDir())
	second.takes(1)
	first.leave()
	w.crawled(want)
	second.leave()
	by := make(map[string]int)
	w.checkRepeats(want)
	for _, q := range w.web.Requests() {
		by[q.UserAgent]++
	}
	assert.True(t, by["first"] != 0 && by["second"] != 0, "requests by node: %v", by)
}

// TestValidate: what a cluster cannot do is refused by name.
func TestValidate(t *testing.T) {
	web := serve(t, ring())
	o := DefaultOptions(crawlOptions(web, t.TempDir(), "test", time.Second))
	o.Names, o.Cluster.Node = names, "first"
	must.Do(t, o.Validate())
	o.Crawl.Recrawl = &recrawl.Options{Budget: 1e12}
	o.Crawl.Workers, o.Crawl.Shared = 0, new(crawl.Shared)
	err := o.Validate()
	must.True(t, err != nil, "nothing is refused")
	for _, name := range []string{"recrawl.budget", "crawl.workers", "Shared"} {
		assert.Contains(t, err.Error(), name, "is not named", err)
	}
}
