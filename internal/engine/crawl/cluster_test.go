package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// memoryCluster is what other shards are to an engine, in memory.
type memoryCluster struct {
	mu     sync.Mutex
	seeds  []storage.SeedRow
	more   chan struct{}
	widens func([]storage.SeedRow) error // nil: it succeeds
}

func newMemoryCluster() *memoryCluster { return &memoryCluster{more: make(chan struct{})} }

func (c *memoryCluster) Seeds(from int) ([]storage.SeedRow, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.seeds[from:]), c.more
}

func (c *memoryCluster) PublishSeeds(changes []storage.SeedRow) error {
	if c.widens != nil {
		return c.widens(changes)
	}
	c.publish(changes...)
	return nil
}

func (c *memoryCluster) add(urls ...weburl.URL) {
	for _, u := range urls {
		c.publish(storage.SeedRow{URL: u.String(), Value: []byte{}})
	}
}

func (c *memoryCluster) publish(changes ...storage.SeedRow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seeds = append(c.seeds, changes...)
	close(c.more)
	c.more = make(chan struct{})
}

func (c *memoryCluster) FetchRobots(ctx context.Context, _ RobotsQuery) (robots.Outcome, error) {
	<-ctx.Done()
	return robots.Outcome{}, ctx.Err()
}

// TestScopeOfAllShards: where a seed redirects to is known to the other shards before the commit that
// relies on it. What they have learned is in scope from the next message on that they send, and after a
// restart.
func TestScopeOfAllShards(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const targets = 30
		sites := []testweb.Site{
			{Host: "a.test", Handler: testweb.Routes{"/": testweb.Redirect(301, "//b.test/x")}},
			site("early.test", "", nil, nil),
		}
		for i := range targets {
			sites = append(sites, site(fmt.Sprintf("target%d.test", i), "", nil, nil))
		}
		web := serve(sites...)
		o := testOptions(t, web)
		o.Mode = frontier.ModeHost
		c := newMemoryCluster()
		c.add(mustParse(web.URL("early.test", "/other")))
		j := &memoryJournal{taken: -1, foreign: func(host string) bool { return host == "b.test" }}
		var published []string
		c.widens = func(changes []storage.SeedRow) error {
			for _, c := range changes {
				u := mustParse(c.URL)
				published = append(published, u.Host())
				assert.True(t, u.Host() != "b.test" || len(j.sent) <= 0, "a URL was published before its scope")
			}
			return nil
		}
		arrive := func(host string, n uint64, take func(uint64, []storage.Discovery) error) error {
			u := mustParse(web.URL(host, "/"))
			return take(n, []storage.Discovery{{Found: storage.Found{URL: u, ViaHost: storage.NoHost, At: time.Now()}}})
		}
		j.arrives = func(take func(uint64, []storage.Discovery) error) error {
			err := arrive("early.test", 1, take)
			for i := range targets {
				host := fmt.Sprintf("target%d.test", i)
				c.add(mustParse(web.URL(host, "/")))
				if err == nil {
					err = arrive(host, uint64(i)+2, take)
				}
			}
			return err
		}
		o.Journal, o.Cluster = j, c
		e, stop := daemon(t, o, web.URL("a.test", "/"))
		testkit.Until(t, "all is fetched", func() bool { return e.Status().URLs["fetched"] == targets+1 })
		stop()
		assert.True(t, slices.Contains(published, "b.test") && len(j.sent) == 1,
			"published: scope seeds of %v, %d URLs", published, len(j.sent))
	})
}

// TestRest: an engine of a shard that has nothing to do says so. It takes no URLs from users while others
// find out whether the crawl is over, and takes them again when it is not.
func TestRest(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/p/", 3), nil))
		o := testOptions(t, web)
		o.Journal = &memoryJournal{taken: -1}
		e, stop := daemon(t, o, web.URL("a.test", "/"))
		r, err := e.Rest(t.Context(), true)
		assert.True(t, err == nil && !r.Done, "at the start: %+v, %v", r, err)
		var last Rest
		rests := func() bool {
			r, err := e.Rest(t.Context(), true)
			last = r
			return err == nil && r.Done
		}
		testkit.Until(t, "it rests", rests)
		assert.Equal(t, len(pagesOf(web, "a.test")), 4, "it rests after pages")
		more := additions(t, web.URL("a.test", "/more"))
		if _, _, err := e.addWithResults(t.Context(), more); !errors.Is(err, ErrDraining) {
			t.Errorf("URLs of a user at the end: %v", err)
		}
		assert.Returns(e.Rest(t.Context(), false))(t, last)
		if _, _, err := e.addWithResults(t.Context(), more); err != nil {
			t.Errorf("URLs of a user: %v", err)
		}
		if r, err := e.Rest(t.Context(), true); err != nil || r.Number <= last.Number {
			t.Errorf("after more URLs: %+v, %v, before %+v", r, err, last)
		}
		stop()
	})
}
