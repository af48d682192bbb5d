package shards

import (
	"syscall"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
)

// TestHeavyStoppedOwner: a process is stopped by SIGSTOP for longer than its TTL. After SIGCONT it makes no
// request before it has claimed its shards again, and what it has fetched and not committed is not
// committed any more: another node has requested it.
func TestHeavyStoppedOwner(t *testing.T) {
	t.Parallel()
	stopOwner(t, 1, shortTTL, 0)
}

// stopOwner stops a process some times, each time until another node has all shards, and for a time at
// least.
func stopOwner(t *testing.T, rounds int, ttl, least time.Duration) {
	g := newGrowing(hosts, 1)
	web := serve(t, g.sites)
	w := newWorldOf(t, web, allSeeds(t, web), natstest.Start(t, names, 1, nil), 100*time.Millisecond, ttl)
	other := w.start("other", t.TempDir())
	stopped := w.startChild("stopped", t.TempDir())
	signal := func(s syscall.Signal) {
		t.Helper()
		must.Do(t, stopped.command.Process.Signal(s))
	}
	stopped.stops = true
	owned := w.sample(other)
	requests := func() int { return len(w.by(stopped.agent)) }
	for range rounds {
		before := requests()
		w.eventually("the child crawls, and the other node", func() error {
			if requests() < before+20 || len(other.owned()) == shards {
				return errNotYet
			}
			return nil
		})
		signal(syscall.SIGSTOP)
		from := time.Now()
		w.eventually("the other node has all shards", func() error {
			if len(other.owned()) < shards || time.Since(from) < least {
				return errNotYet
			}
			return nil
		})
		signal(syscall.SIGCONT)
	}
	before := requests()
	w.eventually("the child crawls again", func() error {
		if requests() < before+20 {
			return errNotYet
		}
		return nil
	})
	want := w.finish(g)
	intervals := owned()
	stopped.leave()
	other.leave()
	t.Logf("%d pages, %d of them twice", len(want), w.checkRepeats(want))
	for _, q := range w.by(stopped.agent) {
		for _, o := range intervals {
			assert.True(t, o.shard != shardOf(q.Host) || !q.Start.After(o.from) || !q.Start.Before(o.to),
				"%s%s was requested by the process that was stopped, while the other owned the shard", q.Host, q.Path)
		}
	}
}
