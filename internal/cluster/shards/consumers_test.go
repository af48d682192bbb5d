package shards

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// ownConsumers returns the consumers of a cluster's streams that are there for a single shard.
func ownConsumers(ctx context.Context, js jetstream.JetStream) (own []string, seen int, err error) {
	all := js.ListStreams(ctx)
	for s := range all.Info() {
		stream, err := js.Stream(ctx, s.Config.Name)
		if err != nil {
			return nil, 0, err
		}
		consumers := stream.ListConsumers(ctx)
		for c := range consumers.Info() {
			seen++
			for _, subject := range append(c.Config.FilterSubjects, c.Config.FilterSubject) {
				one := subject != "" && !strings.ContainsAny(subject, "*>")
				if one || strings.HasPrefix(s.Config.Name, "OBJ_") { // snapshots are read when a shard is opened
					own = append(own, s.Config.Name+" "+subject)
				}
			}
		}
		if err := consumers.Err(); err != nil {
			return nil, 0, err
		}
	}
	return own, seen, all.Err()
}

// rollingRestart has each of the nodes leave and come back, and returns the consumers of single shards that were seen
// and the most of all that there were at once.
func (w *world) rollingRestart(all []*process, manyShards int) (own []string, most int) {
	w.t.Helper()
	client := w.erases()
	ctx, stop := context.WithCancel(w.t.Context())
	var looking sync.WaitGroup
	looking.Go(func() {
		for ctx.Err() == nil {
			if now, n, err := ownConsumers(ctx, client.js); err == nil {
				own, most = append(own, now...), max(most, n)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	for i, p := range all {
		began := time.Now()
		p.leave()
		all[i] = w.start(p.name, p.dir)
		w.allOwned(all, manyShards)
		w.t.Logf("%s was away, and all shards are owned again, after %v", p.name,
			time.Since(began).Round(time.Millisecond))
	}
	stop()
	looking.Wait()
	return own, most
}

// allOwned waits until the nodes own all shards, and each of them some.
func (w *world) allOwned(all []*process, manyShards int) {
	w.t.Helper()
	w.eventually("all shards are owned", func() error {
		var owned []int // each change is progress
		sum := 0
		for _, p := range all {
			owned = append(owned, len(p.owned()))
			sum += owned[len(owned)-1]
		}
		if sum < manyShards || slices.Contains(owned, 0) {
			return fmt.Errorf("%d of %d", owned, manyShards)
		}
		return nil
	})
}

// TestHeavyConsumers: shards take no consumers of their own on the servers, however often they change hands. A node has
// some, and those of one that has left are there for a while.
func TestHeavyConsumers(t *testing.T) {
	t.Parallel()
	const many = 48
	w := newWorld(t, 20*time.Millisecond, longTTL)
	w.alter = func(o *Options) { o.Cluster.Shards = many }
	all := []*process{w.start("one", t.TempDir()), w.start("two", t.TempDir())}
	w.allOwned(all, many)
	own, most := w.rollingRestart(all, many)
	t.Logf("at most %d consumers", most)
	assert.True(t, len(own) == 0 && most != 0, "of at most %d consumers these are of single shards: %q", most, own)
	w.leaveRest()
	w.readsWithoutConsumers(many)
}

// readsWithoutConsumers reads all that a status shows of a cluster whose nodes have left. It must need no consumer:
// whoever looks at a cluster that has used them up sees that.
func (w *world) readsWithoutConsumers(manyShards int) {
	w.t.Helper()
	js := w.erases().js
	requests := must.Get(js.Conn().SubscribeSync("$JS.API.CONSUMER.>"))(w.t)
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	s, err := membership.ReadSurvey(ctx, js, names)
	assert.True(w.t, err == nil && len(s.Shards) == manyShards, "the survey is %+v: %v", s, err)
	if _, err := journal.ReadReports(ctx, js, names, manyShards); err != nil {
		w.t.Error(err)
	}
	if _, err := ReadErasures(ctx, js.Conn(), js, names, patience); err != nil {
		w.t.Error(err)
	}
	for {
		m, err := requests.NextMsg(time.Millisecond)
		if err != nil {
			return
		}
		w.t.Errorf("a status sends %s", m.Subject)
	}
}
