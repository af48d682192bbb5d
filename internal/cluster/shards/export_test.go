package shards

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// exportTo exports the crawl of the cluster.
func (w *world) exportTo(ctx context.Context, dir string, report func(Exported)) (Exported, error) {
	w.t.Helper()
	nc, js := w.connect()
	o := w.options("export", w.t.TempDir())
	o.Timeout = patience // an export gives up after it
	return Export(ctx, nc, js, o, dir, report)
}

// publishFor publishes a URL for its shard, as another shard does before its commit.
func (w *world) publishFor(text string) {
	w.t.Helper()
	nc, _ := w.connect()
	streams := must.Get(journal.Open(w.t.Context(), nc, (&Options{
		Names: names, Replicas: w.replicas, Cluster: nodeOptions(crawl.Options{}, "x", w.ttl).Cluster,
		Timeout: patience,
	}).journal()))(w.t)
	u := must.Get(weburl.Parse(text))(w.t)
	found := storage.Found{URL: u, At: time.Now()}
	must.Do(w.t, streams.Shard(w.t.Context(), 0, 0).Publish(1, []storage.Discovery{{Found: found}}))
}

// The host that opts out in the tests of exports: nobody else links to the pages that the next host has from it.
var outHost, afterOut = host(hosts - 1), host(0) + "/from-another/"

// TestHeavyExport: a crawl that three nodes have begun goes on on one machine. Each page is requested once over
// both, hosts wait for as long as they demand, who opted out is left alone, and a URL that no shard had
// committed is fetched. While nodes own shards, or an export is under way, nothing is exported or joins.
func TestHeavyExport(t *testing.T) {
	t.Parallel()
	sites := ringAndBusy()
	sites[2].Handler.(testweb.Routes)["/on-its-way"] = testweb.Page("on its way")
	web := serve(t, sites)
	w := newWorldOf(t, web, allSeeds(t, web), natstest.Start(t, names, 1, nil), 40*time.Millisecond, moveTTL)
	w.alter = func(o *Options) { o.Crawl.Frontier.RetryDelay = time.Second }
	dir := filepath.Join(t.TempDir(), "whole")
	assert.Fails(w.exportTo(t.Context(), dir, nil))(t, membership.ErrNoCluster, "an export of no cluster")
	for _, node := range []string{"node0", "node1", "node2"} {
		w.start(node, t.TempDir())
	}
	w.requested(len(ringPages()) / 3)
	_, err := w.exportTo(t.Context(), dir, nil)
	assert.True(t, errors.Is(err, ErrOwned) && strings.Contains(err.Error(), "node node0 "),
		"an export of a cluster in service: %v", err)
	w.optOut(outHost)
	w.eventually("the busy host answers", func() error {
		if len(web.Requests().Host(busyHost).Pages()) < 2 {
			return errNotYet
		}
		return nil
	})
	for _, p := range w.nodes {
		p.leave()
	}
	before := len(web.Requests().Host(outHost))
	w.publishFor(web.URL(host(2), "/on-its-way"))
	w.publishFor(web.URL(outHost, "/on-its-way"))

	w.interruptExport(dir)
	w.overtakeExport()
	w.killExport(dir)
	done, err := w.exportTo(t.Context(), dir, func(Exported) {})
	must.True(t, err == nil && done.Shards == shards && done.InTransit >= 2 && done.OptOuts == 1, "%+v, %v", done, err)
	assert.Fails(w.exportTo(t.Context(), dir, nil))(t, ErrNotEmpty, "an export to a directory that is not empty")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the export has made %v, %v", entries, err)
	}
	w.killLate(done.Counters)
	if _, err := w.exportTo(t.Context(), filepath.Join(t.TempDir(), "again"), func(Exported) {}); err != nil {
		t.Errorf("an export after others that were killed late: %v", err)
	}
	assert.NoError(t, w.tryOpen("late"), "a node that joins after the export")

	o := Options{Crawl: crawlOptions(web, dir, "alone", w.delay)}
	w.alter(&o)
	crawlAlone(t, w.seeds, o.Crawl)
	assert.Equal(t, len(web.Requests().Host(outHost)), before, outHost, "was requested times after it had opted out")
	w.checkOnce(append(ringPages(), busyHost+"/", busyHost+"/last", busyHost+"/later", host(2)+"/on-its-way"))
}

// optOut has a host opt out, and waits until all nodes know.
func (w *world) optOut(host string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	e, err := optout.New(optout.Entry{Scope: optout.ScopeHost, Value: host, At: time.Now()})
	must.Do(w.t, err)
	sequence := uint64(0)
	err = untilUp(ctx, func() (err error) {
		_, sequence, err = w.nodes[0].node.SetOptOut(ctx, e, false)
		return err
	})
	for _, p := range w.nodes {
		err = errors.Join(err, p.node.WaitForDesired(ctx, sequence))
	}
	must.Do(w.t, err)
}

// interruptExport breaks an export off after a shard. No node joins while it is under way.
func (w *world) interruptExport(dir string) {
	w.t.Helper()
	ctx, interrupt := context.WithCancel(w.t.Context())
	defer interrupt()
	_, err := w.exportTo(ctx, dir, func(x Exported) {
		assert.AtMost(w.t, x.Shards, 1, "an export that was interrupted goes on")
		assert.Is(w.t, w.tryOpen("early"), membership.ErrReserved, "a node that joins during an export")
		interrupt()
	})
	assert.Is(w.t, err, context.Canceled, "an export that is interrupted")
	left, err := os.ReadDir(filepath.Dir(dir))
	assert.True(w.t, err == nil && len(left) == 0, "an export that was interrupted has left %v, %v", left, err)
}

// overtakeExport exports while another export is under way, which then says once that it was taken over.
func (w *world) overtakeExport() {
	w.t.Helper()
	dir := w.t.TempDir()
	_, err := w.exportTo(w.t.Context(), filepath.Join(dir, "first"), func(x Exported) {
		if x.Shards > 1 {
			w.t.Error("an export that was taken over goes on")
			return
		}
		if _, err := w.exportTo(w.t.Context(), filepath.Join(dir, "second"), func(Exported) {}); err != nil {
			w.t.Errorf("an export during another: %v", err)
		}
	})
	assert.True(w.t, err != nil && strings.Count(err.Error(), "another import or export") == 1,
		"an export that was taken over: %v", err)
}

// killExport kills a process that exports: after the first shard, in the middle, and when all of them are joined.
// There is nothing at the place of the export then, and no node joins until the export is repeated.
func (w *world) killExport(dir string) {
	w.t.Helper()
	for _, after := range []int{1, shards / 2, shards} {
		w.startMover(func(c *childConfig) { c.Export, c.StopAfter = dir, after }).killAfter(after)
		assert.Fails(os.Stat(dir))(w.t, fs.ErrNotExist, "an export that was killed after", after, "shards has left",
			dir)
		if _, err := os.Stat(dir + ".export.partial"); err != nil {
			w.t.Errorf("an export that was killed after %d shards had made nothing yet: %v", after, err)
		}
		assert.Is(w.t, w.tryOpen("early"), membership.ErrReserved, "a node that joins after an export was killed")
	}
}

// killLate kills processes at the end of an export, when they complete the directory or put it at its place. It is
// not there then, or it is all there.
func (w *world) killLate(want storage.Counters) {
	w.t.Helper()
	for range 3 {
		dir := filepath.Join(w.t.TempDir(), "late")
		w.startMover(func(c *childConfig) { c.Export = dir }).killAfter(shards)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		store, err := storage.Open(dir, storage.Options{ReadOnly: true})
		if err != nil {
			w.t.Error(err)
			continue
		}
		if got := store.Counters(); got.Hosts != want.Hosts || got.URLs != want.URLs {
			w.t.Errorf("an export that was killed late has %d hosts and %d URLs, want %d and %d", got.Hosts, got.URLs,
				want.Hosts, want.URLs)
		}
		assert.NoError(w.t, store.Close())
	}
}

// checkOnce checks that each page was requested once, but for what was lost, those that opted out and what only they
// link to, and that hosts were left alone for as long as they demand.
func (w *world) checkOnce(want []string) {
	w.t.Helper()
	log := w.web.Requests()
	w.checkLost(log.Pages().Filter(func(q testweb.Request) bool { return q.Path != "/later" }))
	w.checkLost(log.Path("/later")[1:]) // it is requested again after it was refused
	times := log.Pages().CountByPath()
	for _, page := range want {
		may := strings.HasPrefix(page, outHost) || strings.HasPrefix(page, afterOut)
		if n := times[page]; n == 0 && !may || n == 1 && page == busyHost+"/later" {
			w.t.Errorf("%s was requested %d times", page, n)
		}
		delete(times, page)
	}
	assert.AtMost(w.t, len(times), 0, "these are no pages of the crawl", times)
	w.checkGaps(log)
	var refused time.Time
	for _, q := range log.Host(busyHost).Pages() {
		if wait := q.Start.Sub(refused); !refused.IsZero() && wait < busyWait-clockSkew {
			w.t.Errorf("%s%s was requested after %v, it demanded %v", busyHost, q.Path, wait, busyWait)
		}
		if q.Path == "/later" && refused.IsZero() && !w.losses.isLost(q) {
			refused = q.End
		}
	}
}
