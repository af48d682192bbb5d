package crawl

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// Results gather between two commits, but nobody waits for a commit that nothing would be added to,
// or that he waits for.
func TestGathers(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*dispatcher)
		want    bool
	}{
		"behind a commit":        {func(*dispatcher) {}, true},
		"after the pause":        {func(d *dispatcher) { d.timeIs(d.pauseEnd) }, false},
		"nothing else in flight": {func(d *dispatcher) { d.flights.busy = 0 }, false},
		"while ending":           {func(d *dispatcher) { d.shuttingDown = true }, false},
		"a command":              {func(d *dispatcher) { d.pending.waiting = append(d.pending.waiting, nil) }, false},
		"many results":           {func(d *dispatcher) { d.pending.size = maxGather }, false},
		"much output":            {func(d *dispatcher) { d.pending.bytes = maxPendingBytes }, false},
	} {
		d := testDispatcher(t)
		d.pending.rows.Found = make([]storage.Found, 1)
		d.flights.busy, d.pauseEnd = 1, time.Now().Add(time.Hour)
		test.prepare(d)
		_, b := d.nextBatch()
		assert.True(t, (b == nil) == test.want, "%s: offered %v", name, b)
	}
}

// Additions follow each other while the crawl's own work gathers, and take turns with it when it is
// ready. The commit of an addition does not make the crawl's own work wait longer.
func TestAdditionsTakeTurns(t *testing.T) {
	for name, test := range map[string]struct {
		lastAdded, paused, empty bool
		want                     bool
	}{
		"while own work gathers":              {lastAdded: true, paused: true, want: true},
		"when own work is ready":              {lastAdded: true, want: false},
		"after own work":                      {want: true},
		"after own work, while more gathers":  {paused: true, want: true},
		"after an addition, without own work": {lastAdded: true, empty: true, want: true},
	} {
		d := testDispatcher(t)
		if !test.empty {
			d.pending.rows.Found = make([]storage.Found, 1)
		}
		d.flights.busy, d.lastAdded = 1, test.lastAdded
		if test.paused {
			d.pauseEnd = time.Now().Add(time.Hour)
		}
		d.addition = &addition{answer: make(chan lists.Added, 1)}
		_, b := d.nextBatch()
		assert.Equal(t, b != nil && b.addition != nil, test.want, name, "an addition is offered")
		before := d.pauseEnd
		d.takeCommitted(&batch{addition: d.addition, took: time.Second})
		assert.Equal(t, d.pauseEnd, before, name, "the addition moved the end of the pause")
	}
}

// TestGatheredOnce: a crawl of many pages makes fewer commits than requests, and what one commit held
// is not in the next. In real time: results gather while a commit takes its time.
func TestGatheredOnce(t *testing.T) {
	m := testweb.Mesh{Hosts: 8, Pages: 60, Links: 8}
	web := must.Get(testweb.NewMesh(m, testweb.Config{CountOnly: true}))(t)
	t.Cleanup(func() {
		must.Do(t, web.Close())
	})
	o := testOptions(t, web)
	o.Frontier.Politeness.Delay = 0
	e := must.Get(Open(o, testLog(t)))(t)
	var seeds []Seed
	for h := range m.Hosts {
		seeds = append(seeds, seed(t, web.URL(m.Host(h), "/")))
	}
	sum := must.Get(e.Run(t.Context(), seeds))(t)
	requests, commits := e.store.Counters().Requests, e.tally.Commits.Load()
	must.Do(t, e.Close())
	if want := uint64(m.Hosts * (m.Pages + 1)); int(sum.Status.Run.Pages) != m.TotalPages() || requests != want {
		t.Errorf("%d pages and %d requests counted, want %d and %d", sum.Status.Run.Pages, requests,
			m.TotalPages(), want)
	}
	assert.True(t, commits < requests/2, "%d commits for %d requests", commits, requests)
}
