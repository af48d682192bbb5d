package shards

import (
	"fmt"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// TestHeavyCheckOutside: a link that leaves the scope is checked by the node that owns its host, once, and followed by
// none.
func TestHeavyCheckOutside(t *testing.T) {
	t.Parallel()
	apart := inShards(2)
	web := serve(t, []testweb.Site{
		{Host: apart[0], Handler: testweb.Routes{
			"/": testweb.Page("root", "/a", "//"+apart[1]+"/far"), "/a": testweb.Page("a", "//"+apart[1]+"/far"),
		}},
		{Host: apart[1], Handler: testweb.Routes{"/far": testweb.Page("far", "/deeper"), "/deeper": testweb.Page("x")}},
	})
	w := newWorldOf(t, web, nil, natstest.Start(t, names, 1, nil), 20*time.Millisecond, shortTTL)
	w.alter = func(o *Options) { o.Crawl.CheckOutside, o.Crawl.Mode = true, 0 }
	w.seeds = append(w.seeds, seed(t, web, apart[0]))
	nodes := []*process{w.start("first", t.TempDir()), w.start("second", t.TempDir())}
	w.eventually("the check", func() error {
		if n := len(web.Requests().Host(apart[1]).Path("/far")); n != 1 {
			return fmt.Errorf("it was requested %d times", n)
		}
		return nil
	})
	time.Sleep(2 * time.Second) // what comes behind it would come now
	for _, p := range nodes {
		p.leave()
	}
	for _, q := range web.Requests().Host(apart[1]) {
		assert.True(t, q.Path == "/robots.txt" || q.Path == "/far" && q.Method == "HEAD",
			"outside of the scope was requested: %s %s", q.Method, q.Path)
	}
	assert.Equal(t, len(web.Requests().Host(apart[1]).Path("/far")), 1, "the link was checked times")
}
