package crawl

import (
	"context"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// TestDemoWeb crawls the web of the demo and compares what the web saw with
// what a correct crawler does there. In real time: the demo serves real loopback addresses.
func TestDemoWeb(t *testing.T) {
	t.Parallel()
	sites, facts := testweb.Demo()
	web := testweb.Serve(t, testweb.Config{Sites: sites})
	o := testOptions(t, web)
	o.Frontier.MaxDepth = uint16(facts.MaxDepth)
	o.Fetch.MaxIdleConns = 0 // on a busy machine, connections that are lost on reuse add to a host's backoff
	var seeds []Seed
	for _, s := range facts.Seeds {
		seeds = append(seeds, seed(t, web.URL(s.Host, s.Path)))
	}
	e, err := Open(o, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sum, err := e.Run(ctx, seeds)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", sum)
	for _, complaint := range facts.Check(web.Requests()) {
		t.Error(complaint)
	}
}
