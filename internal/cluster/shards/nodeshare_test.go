package shards

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// TestPart: the part of a node goes down at once, and up when it has been possible for a TTL.
func TestPart(t *testing.T) {
	var p nodeShare
	for _, step := range []struct {
		at          time.Duration
		share, want float64
		alone       bool
	}{
		{0, 1, 1, true},
		{1, 0.5, 0.5, false},
		{2, 0.25, 0.25, false},
		{3, 1, 0.25, true},    // the others seem to be gone
		{8, 0.5, 0.25, false}, // one is back
		{12, 0.5, 0.25, false},
		{13, 0.5, 0.5, false},
		{14, 1, 0.5, false},
		{20, 0.5, 0.5, false}, // nothing is planned any more
		{25, 1, 0.5, false},
		{34, 1, 0.5, false},
		{35, 1, 1, false},
		{36, 0, 0, false},
	} {
		assert.Equal(t, p.update(step.share, step.alone, step.at*time.Second, 10*time.Second), step.want, "at", step.at,
			"s")
	}
	p = nodeShare{}
	assert.True(t, p.update(0.5, false, 0, 10*time.Second) == 0 &&
		p.update(0.5, false, 10*time.Second, 10*time.Second) == 0.5, "a node that joins others waits for a TTL")
	share, alone, ok := shareOf(membership.Status{Node: "b", Joined: true, Members: []membership.MemberStatus{
		{Node: "a", Weight: 1, State: "live"}, {Node: "b", Weight: 3, State: "live"},
		{Node: "c", Weight: 9, State: "left"},
		{Node: "d", Weight: 9, State: "silent"},
	}})
	assert.True(t, share == 0.75 && !alone && ok, "share %g, alone %v", share, alone)
}

// TestHeavyMaxRate: crawl.max_rate is that of all nodes together, also when a node joins.
func TestHeavyMaxRate(t *testing.T) {
	t.Parallel()
	const rate, burst = 60, 6
	want := ringPages()
	w := newWorld(t, time.Millisecond, shortTTL)
	w.alter = func(o *Options) { o.Crawl.MaxRate = rate }
	w.start("first", t.TempDir())
	w.requested(1)
	w.start("second", t.TempDir())
	w.crawled(want)
	w.leaveRest()
	log := w.check(want)
	by := log.Filter(func(q testweb.Request) bool { return q.UserAgent == "second" })
	must.True(t, len(by) != 0, "the second node has made no request")
	log = log.Filter(func(q testweb.Request) bool { return !q.Start.Before(by[0].Start) }) // of both nodes
	// the server may have seen the first one late
	took := log[len(log)-1].Start.Sub(log[0].Start) + time.Duration(w.stalled.Load())
	assert.AtMost(t, len(log), int(took.Seconds()*rate)+3*burst, "requests in", took, "at most are allowed")
	t.Logf("%d requests in %v, %d of the second node", len(log), took, len(by))
}
