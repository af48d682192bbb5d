package shards

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
)

// consumersOf returns how many consumers the streams of a cluster have together.
func consumersOf(ctx context.Context, js jetstream.JetStream) (count int, err error) {
	all := js.ListStreams(ctx)
	for s := range all.Info() {
		count += s.State.Consumers
	}
	return count, all.Err()
}

// rollingRestart has each of the nodes leave and come back, and returns the most consumers that were seen.
func (w *world) rollingRestart(all []*process, manyShards int) (most int) {
	w.t.Helper()
	client := w.erases()
	ctx, stop := context.WithCancel(w.t.Context())
	seen := make(chan int)
	go func() {
		most := 0
		for ctx.Err() == nil {
			if n, err := consumersOf(ctx, client.js); err == nil {
				most = max(most, n)
			}
			time.Sleep(20 * time.Millisecond)
		}
		seen <- most
	}()
	for i, p := range all {
		began := time.Now()
		p.leave()
		all[i] = w.start(p.name, p.dir)
		w.allOwned(all, manyShards)
		w.t.Logf("%s was away, and all shards are owned again, after %v", p.name,
			time.Since(began).Round(time.Millisecond))
	}
	stop()
	return <-seen
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
	if most := w.rollingRestart(all, many); most >= many {
		t.Errorf("%d consumers for %d nodes with %d shards", most, len(all), many)
	}
	w.leaveRest()
	w.readsWithoutConsumers(many)
}

// readsWithoutConsumers reads all that a status shows of a cluster whose nodes have left. It must need no consumer:
// whoever looks at a cluster that has used them up sees that.
func (w *world) readsWithoutConsumers(manyShards int) {
	w.t.Helper()
	js := w.erases().js
	requests, err := js.Conn().SubscribeSync("$JS.API.CONSUMER.>")
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	s, err := membership.ReadSurvey(ctx, js, names)
	if err != nil || len(s.Shards) != manyShards {
		w.t.Errorf("the survey is %+v: %v", s, err)
	}
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
