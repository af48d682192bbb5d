package shards

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

// fetchedOf returns an error unless nodes have so many pages.
func fetchedOf(nodes []*process, count int) error {
	n := 0
	for _, p := range nodes {
		for _, s := range p.node.Statuses() {
			n += s.URLs[storage.Fetched.String()]
		}
	}
	if n < count {
		return fmt.Errorf("%d of %d pages", n, count)
	}
	return nil
}

// TestHeavyErasure: nothing of a host is left on any node, one that was killed and one that was away included, nor on
// the servers; and everything of the others is.
func TestHeavyErasure(t *testing.T) {
	t.Parallel()
	gone := host(6)
	want := slices.DeleteFunc(ringPages(), func(page string) bool { return page == gone+"/" })
	w := newWorld(t, 5*time.Millisecond, shortTTL)
	// A seed would be found again.
	w.seeds = slices.DeleteFunc(w.seeds, func(s crawl.Seed) bool { return s.URL.Host() == gone })
	w.alter = func(o *Options) { o.Erase, o.Crawl.Mode = eraseDirectory, frontier.ModeAny }
	nodes := threeNodes(w)
	w.crawled(want)
	w.eventually("all pages are committed", func() error { return fetchedOf(nodes, len(want)) })
	away, victim := nodes[2], nodes[1]
	c := w.erases()
	// What other shards have published of it, and nobody has committed yet, would be new URLs.
	e := optout.Entry{Scope: optout.ScopeDomain, Value: gone, At: time.Now()}
	must.Do(t, untilUp(t.Context(), func() error {
		_, _, err := nodes[0].node.SetOptOut(t.Context(), e, false)
		return err
	}))
	away.kill()
	c.begin(gone)
	victim.kill() // at any moment of it
	victim = w.start(victim.name, victim.dir)
	c.done(nodes[0].name, victim.name) // the kill may have cost a count
	away = w.start(away.name, away.dir)
	c.done(nodes[0].name, victim.name, away.name)
	pagesOfOthers := 0
	for _, p := range want {
		if len(p) < len(gone) || p[:len(gone)] != gone {
			pagesOfOthers++
		}
	}
	w.eventually("the other hosts are as they were", func() error {
		return fetchedOf([]*process{nodes[0], victim, away}, pagesOfOthers)
	})
	w.leaveRest()
	left := c.messages(gone + ":")
	for _, p := range nodes {
		left = append(left, mentions(t, p.dir, gone+":", "test."+gone[:len(gone)-len(".test")])...)
	}
	assert.AtMost(t, len(left), 0, "left", left)
}
