package shards

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// inShards returns names of hosts that are in different shards.
func inShards(n int) (all []string) {
	taken := make(map[cluster.Shard]bool)
	for i := 0; len(all) < n; i++ {
		name := fmt.Sprintf("site%d.test", i)
		if s := shardOf(name); !taken[s] {
			taken[s] = true
			all = append(all, name)
		}
	}
	return all
}

// TestHeavyScopeSeedOfAnotherShard: a seed redirects to a host of another shard, which is no seed. Its pages and those
// of a third shard lead to each other, in turns, so every shard has to know that the host belongs to the crawl:
// also the engines that take over when a node is killed in the middle.
func TestHeavyScopeSeedOfAnotherShard(t *testing.T) {
	t.Parallel()
	apart := inShards(3)
	seeded, target, third := apart[0], apart[1], apart[2]
	const turns = 15
	there, back := testweb.Routes{}, testweb.Routes{"/": testweb.Page("root")}
	for i := range turns {
		there[fmt.Sprintf("/%d", i)] = testweb.Page("target", fmt.Sprintf("//%s/%d", third, i))
		back[fmt.Sprintf("/%d", i)] = testweb.Page("third", fmt.Sprintf("//%s/%d", target, i+1))
	}
	sites := []testweb.Site{
		{Host: seeded, Handler: testweb.Routes{"/": testweb.Redirect(301, "//"+target+"/0")}},
		{Host: target, Handler: there}, {Host: third, Handler: back},
	}
	web := serve(t, sites)
	w := newWorldOf(t, web, nil, natstest.Start(t, names, 1, nil), 20*time.Millisecond, shortTTL)
	w.seeds = append(w.seeds, seed(t, web, seeded), seed(t, web, third))

	machine := serve(t, sites)
	o := crawlOptions(machine, t.TempDir(), "alone", time.Millisecond)
	crawlAlone(t, w.seedsOf(machine), o)
	want := pages(machine)
	must.True(t, len(want) == 2*turns+3, "one machine has requested %d pages", len(want))
	victim := w.start("first", t.TempDir())
	w.requested(turns)
	victim.kill()
	second := w.start("second", t.TempDir())
	w.eventually("the crawl", func() error {
		if got := pages(web); !slices.Equal(got, want) {
			return fmt.Errorf("%d of %d pages were requested: %v", len(got), len(want), got)
		}
		return nil
	})
	second.leave()
}
