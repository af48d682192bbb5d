package crawl

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testweb"
)

// Results gather between two commits, but nobody waits for a commit that nothing would be added to, or that he asked for.
func TestGathers(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*run)
		want    bool
	}{
		"behind a commit":        {func(*run) {}, true},
		"after the pause":        {func(r *run) { r.gathering.end() }, false},
		"nothing else in flight": {func(r *run) { r.busy = 0 }, false},
		"while ending":           {func(r *run) { r.draining = true }, false},
		"an order":               {func(r *run) { r.pending.orders = []*order{{}} }, false},
		"a drop":                 {func(r *run) { r.pending.drops = []*drop{{}} }, false},
		"many results":           {func(r *run) { r.pending.size = gatherItems }, false},
		"much output":            {func(r *run) { r.pending.bytes = maxPendingBytes }, false},
	} {
		r := &run{pending: newJob(), busy: 1}
		r.gathering.begin(time.Hour)
		test.prepare(r)
		if got := r.gathers(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	g := gathering{}
	g.begin(time.Hour)
	select {
	case <-g.over:
	case <-time.After(patience):
		t.Error("the pause does not end")
	}
}

// A crawl of many pages makes fewer commits than requests, and what one commit held is not in the next.
func TestGatheredOnce(t *testing.T) {
	m := testweb.Mesh{Hosts: 8, Pages: 60, Links: 8}
	web, err := testweb.NewMesh(m, testweb.Config{CountOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := web.Close(); err != nil {
			t.Error(err)
		}
	})
	o := testOptions(t, web)
	o.Frontier.Politeness.Delay = 0
	e, err := Open(o, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	var seeds []Seed
	for h := range m.Hosts {
		seeds = append(seeds, seed(t, web.URL(m.Host(h), "/")))
	}
	sum, err := e.Run(t.Context(), seeds)
	if err != nil {
		t.Fatal(err)
	}
	requests, commits := e.store.Counters().Requests, e.tally.commits.Load()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if want := uint64(m.Hosts * (m.Pages + 1)); int(sum.Status.Run.Pages) != m.TotalPages() || requests != want {
		t.Errorf("%d pages and %d requests counted, want %d and %d", sum.Status.Run.Pages, requests, m.TotalPages(), want)
	}
	if commits >= requests/2 {
		t.Errorf("%d commits for %d requests", commits, requests)
	}
}
