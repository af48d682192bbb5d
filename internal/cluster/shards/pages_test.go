package shards

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestHeavyMaxPages: all nodes together fetch as many pages as crawl.max_pages says, and no more, and then leave:
// also if a node is killed in the middle, with a part of its block unused, and if most shards have nothing
// to do any more.
func TestHeavyMaxPages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		sites []testweb.Site
		most  uint64
		kill  bool
	}{{"a third", ring(), 70, false}, {"nearly all, in one shard", lopsided(), 40, false},
		{"with a death", ring(), 90, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testMaxPages(t, c.sites, c.most, c.kill)
		})
	}
}

// lopsided is a web of 43 pages: three shards have one each.
func lopsided() (sites []testweb.Site) {
	for i, name := range inShards(shards) {
		routes := testweb.Routes{"/": testweb.Page("root")}
		if i == 0 {
			var paths []string
			for n := range 39 {
				paths = append(paths, fmt.Sprintf("/%d", n))
				routes[paths[n]] = testweb.Page("page")
			}
			routes["/"] = testweb.Page("root", paths...)
		}
		sites = append(sites, testweb.Site{Host: name, Handler: routes})
	}
	return sites
}

func testMaxPages(t *testing.T, sites []testweb.Site, most uint64, kill bool) {
	web := serve(t, sites)
	w := newWorldOf(t, web, nil, natstest.Start(t, names, 1, nil), 20*time.Millisecond, shortTTL)
	for _, site := range sites {
		w.seeds = append(w.seeds, seed(t, web, site.Host))
	}
	w.alter = func(o *Options) { o.Crawl.MaxPages, o.EndEvery = most, 50*time.Millisecond }
	for i := range 3 {
		w.start(fmt.Sprintf("node%d", i), t.TempDir())
	}
	var victim *process
	if kill {
		victim = w.busy(int(most) / 3)
		victim.kill()
	}
	for _, p := range w.nodes {
		if p == victim {
			continue
		}
		if p.wait(); p.err != nil || !p.node.Summary().Finished {
			t.Errorf("%s: %v, %+v", p.name, p.err, p.node.Summary())
		}
	}
	last := make(map[string]testweb.Request)
	for _, q := range web.Requests().Pages() {
		before, again := last[q.Host+q.Path]
		if last[q.Host+q.Path] = q; again && !w.losses.isLost(before) {
			t.Errorf("%s%s was requested by %s and again by %s", q.Host, q.Path, before.UserAgent, q.UserAgent)
		}
	}
	fetched := w.fetchedPages()
	assert.Equal(t, uint64(len(fetched)), most, len(fetched), "pages are fetched, of")
	for _, path := range fetched {
		_, is := last[path]
		assert.True(t, is, "%s counts as fetched, and was not requested", path)
		delete(last, path)
	}
	for path, q := range last { // requested and never committed
		assert.True(t, w.losses.isLost(q), "%s was requested beyond the limit", path)
	}
	t.Logf("%d pages were requested and not committed", len(last))
}

// fetchedPages returns the pages that count as fetched in the newest database of each shard.
func (w *world) fetchedPages() (all []string) {
	w.t.Helper()
	for s := range cluster.Shard(shards) {
		var newest uint64
		var list []string
		for _, p := range w.nodes {
			if at, these := w.fetchedIn(p.node.engines.o.directory(s)); at > newest {
				newest, list = at, these
			}
		}
		all = append(all, list...)
	}
	return all
}

// fetchedIn returns the pages that are fetched in a database, and the number of its newest record.
func (w *world) fetchedIn(dir string) (at uint64, all []string) {
	w.t.Helper()
	if _, err := os.Stat(filepath.Join(dir, storage.FileName)); err != nil {
		return 0, nil
	}
	db := must.Get(storage.Open(dir, storage.Options{ReadOnly: true}))(w.t)
	defer db.Close()
	position := must.Get(db.LogPosition())(w.t)
	must.Do(w.t, db.Hosts(func(h *storage.Host) error {
		_, err := db.URLs(h.ID, 0, 1<<30, func(head storage.Head) {
			if head.Last.State == storage.Fetched {
				all = append(all, h.Name+head.RequestURI)
			}
		})
		return err
	}))
	return position.Number, all
}
