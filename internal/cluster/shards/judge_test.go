package shards

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// shardOf returns the shard of a host of the web.
func shardOf(host string) cluster.Shard { return cluster.ShardOf(host, shards) }

// by returns the requests that a node has made.
func (w *world) by(agent string) testweb.Log {
	return w.web.Requests().Filter(func(q testweb.Request) bool { return q.UserAgent == agent })
}

// checkRepeats is check for a web that nodes have crawled with faults. It returns how many requests
// there were for pages that had been requested before: only what a node could not commit.
func (w *world) checkRepeats(want []string) (repeats int) {
	w.t.Helper()
	log := w.check(want)
	for _, address := range log.Addresses() {
		assert.AtMost(w.t, log.Address(address).MaxInFlight(), 1, "requests to the address", address, "at a time")
	}
	return w.checkLost(log.Pages())
}

// checkLost checks that only what a node could not commit was requested again, and returns how many requests did so.
func (w *world) checkLost(log testweb.Log) (repeats int) {
	w.t.Helper()
	last := make(map[string]testweb.Request)
	for _, q := range log {
		before, again := last[q.Host+q.Path]
		if last[q.Host+q.Path] = q; !again {
			continue
		}
		repeats++
		w.eventually("what was requested again was lost", func() error { // a node that stalls says so later
			if !w.losses.isLost(before) {
				return fmt.Errorf("%s%s was requested by %s and again by %s", q.Host, q.Path, before.UserAgent,
					q.UserAgent)
			}
			return nil
		})
	}
	return repeats
}

// interval is a time in which a node certainly owned a shard.
type interval struct {
	shard    cluster.Shard
	from, to time.Time
}

// sample looks what a node of this process owns until the result is called, which returns for what
// times it certainly did.
func (w *world) sample(p *process) func() []interval {
	ctx, end := context.WithCancel(w.t.Context())
	var all []interval
	var sampling sync.WaitGroup
	sampling.Go(func() {
		since := make(map[*membership.Holding]int) // in all
		for ctx.Err() == nil {
			before := time.Now()
			held := p.holdings()
			after := time.Now()
			for _, h := range held {
				i, known := since[h]
				if !known {
					i = len(all)
					all, since[h] = append(all, interval{shard: h.Shard(), from: after}), i
				}
				all[i].to = before
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	return func() []interval {
		end()
		sampling.Wait()
		return slices.Clone(all)
	}
}

// goesOn waits until so many pages of each host are requested.
func (w *world) goesOn(what string, pages int) {
	w.t.Helper()
	before := len(w.web.Requests())
	w.eventually(what+": the crawl goes on", func() error {
		later := w.web.Requests()[before:].Pages()
		for _, host := range w.web.Sites() {
			if n := len(later.Host(host)); n < pages {
				return fmt.Errorf("%s waits after %d of %d pages", host, n, pages)
			}
		}
		return nil
	})
}

// checkStill checks that the web has received nothing since a time, but for what was on its way.
func (w *world) checkStill(t *testing.T, since time.Time) {
	t.Helper()
	late := w.web.Requests().Filter(func(q testweb.Request) bool { return q.Start.After(since) })
	for _, host := range late.Hosts() {
		assert.AtMost(t, len(late.Host(host)), 1, "requests to", host, "while the crawl stands still")
	}
}
