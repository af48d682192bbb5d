package shards

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/storage"
)

// TestLostLog: the stream with the logs is deleted. A node that has shards does not begin with an empty one,
// and says so; one that has none does.
func TestLostLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Millisecond, shortTTL)
	dir := t.TempDir()
	p := w.start("first", dir)
	w.requested(10)
	p.leave()
	w.start("first", dir).leave() // the log is the same
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	nc, js := natstest.Connect(t, natsconn.Options{
		URLs: []string{"nats://" + w.servers.Addresses()[0]}, Node: "first", Names: names,
	})
	defer nc.Close()
	must.Do(t, js.DeleteStream(ctx, names.Stream()))
	o := nodeOptions(crawlOptions(w.web, dir, "first", w.delay), "first", w.ttl)
	o.Seeds = w.seeds
	err := tryOpen(t, nc, js, o)
	assert.True(t, errors.Is(err, storage.ErrAhead) && strings.Contains(err.Error(), dir),
		"the node begins with another log: %v", err)
	err = tryOpen(t, nc, js, o)
	assert.True(t, errors.Is(err, storage.ErrAhead), "again: %v", err)
	w.start("second", t.TempDir()).takes(shards)
}

// TestShardsOfAnotherCluster: a node does not open what another cluster has left in its data directory, with the
// note that says so or without it. Without these databases it begins.
func TestShardsOfAnotherCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Millisecond, shortTTL)
	dir := t.TempDir()
	p := w.start("first", dir)
	w.requested(10)
	p.leave()
	other := natsconn.Names{Cluster: "other"}
	nc, js := natstest.Connect(t, natsconn.Options{
		URLs: []string{"nats://" + w.servers.Addresses()[0]}, Node: "first", Names: other, IgnoreOthers: true,
	})
	defer nc.Close()
	open := func() error {
		o := nodeOptions(crawlOptions(w.web, dir, "first", w.delay), "first", w.ttl)
		o.Seeds, o.Names = w.seeds, other
		return tryOpen(t, nc, js, o)
	}
	assert.Is(t, open(), storage.ErrAhead, "the shards of another cluster are opened")
	path := filepath.Join(dir, shardsDir)
	must.Do(t, os.Remove(filepath.Join(path, logFile)))
	for range 2 {
		assert.Is(t, open(), storage.ErrAhead, "the shards of nobody knows which cluster are opened")
	}
	must.Do(t, os.RemoveAll(path))
	assert.NoError(t, open(), "a node without shards")
}
