package crawl

import (
	"context"
	"fmt"
	"net"
	"slices"

	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// givenAs returns the seed of a line of a list.
func givenAs(t *testing.T, line string) Seed {
	t.Helper()
	item := must.Get(seeds.ParseLine(line))(t)
	return item.Seed("test")
}

// TestSeedFields crawls hosts with a seed each that says something. Want are the paths that are known afterwards, with
// far.test as the path /far.
func TestSeedFields(t *testing.T) {
	for field, want := range map[string]struct{ path, known string }{
		"scope=prefix":                {"/in/", "/in/ /in/a"},
		"scope=host":                  {"/in/", "/in/ /in/a /no /yes /yes/a"},
		"include=/in/$ include=/yes":  {"/in/", "/in/ /yes /yes/a"},
		"exclude=/yes exclude=/in/a":  {"/in/", "/in/ /no"},
		"max_depth=1":                 {"/in/", "/in/ /in/a /no /yes"},
		"hops=1":                      {"/in/", "/far /in/ /in/a /no /sub /yes /yes/a"},
		"hops=1 max_depth=1":          {"/in/", "/far /in/ /in/a /no /sub /yes"},
		"scope=any exclude=/yes":      {"/in/", "/far /far/deep /in/ /in/a /no /sub"},
		"links=none":                  {"/in/", "/in/"},
		"links=sitemap":               {"/in/", "/in/ /listed"},
		"links=sitemap scope=prefix":  {"/in/", "/in/"},
		"store=no tags=list,index":    {"/in/", "/in/ /in/a /no /yes /yes/a"},
		"priority=7 recrawl=never":    {"/in/", "/in/ /in/a /no /yes /yes/a"},
		"scope=domain":                {"/in/", "/in/ /in/a /no /sub /yes /yes/a"},
		"scope=domain exclude=/sub$":  {"/in/", "/in/ /in/a /no /yes /yes/a"},
		"max_depth=1 scope=domain":    {"/yes", "/yes /yes/a"},
		"store=no max_depth=1 hops=1": {"/yes", "/yes /yes/a"},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				checkSeedField(t, serve, field, want.path, strings.Fields(want.known))
			})
		})
	}
}

func checkSeedField(t *testing.T, serve func(...testweb.Site) *testweb.Web, field, path string, want []string) {
	routes := testweb.Routes{
		"/yes": testweb.Page("yes", "/yes/a"), "/yes/a": body("deep"), "/listed": body("l"), "/in/a": body("a"),
		"/no": body("no"),
	}
	web := serve(
		testweb.Site{Host: "www.example.com", Handler: routes},
		site("sub.example.com", "", nil, testweb.Routes{"/sub": body("sub")}),
		site("far.test", "", nil, testweb.Routes{"/": testweb.Page("far", "/deep"), "/deep": body("deep")}),
	)
	routes["/robots.txt"] = testweb.Robots("Sitemap: " + web.URL("www.example.com", "/map.xml") + "\n")
	routes["/map.xml"] = sitemapOf("/listed")
	routes["/in/"] = testweb.Page("in", "/in/a", "/yes", "/no", web.URL("far.test", "/"),
		web.URL("sub.example.com", "/sub"))
	o := testOptions(t, web)
	o.Sitemaps.Follow = strings.Contains(field, "links=")
	s := givenAs(t, web.URL("www.example.com", path)+" "+field)
	e := must.Get(Open(o, testLog(t)))(t)
	must.Get(e.Run(t.Context(), []Seed{s}))(t)
	must.Do(t, e.Close())
	var known []string
	for url := range stored(t, o.DataDir) {
		short := strings.Replace(url, web.URL("far.test", "/"), web.URL("www.example.com", "/far/"), 1)
		short = strings.Replace(short, web.URL("sub.example.com", ""), web.URL("www.example.com", ""), 1)
		if u := parse(t, short); u.RequestURI() != "/map.xml" {
			known = append(known, strings.Replace(u.RequestURI(), "/far/", "/far", 1))
		}
	}
	for i := range known {
		known[i] = strings.Replace(known[i], "/fardeep", "/far/deep", 1)
	}
	slices.Sort(known)
	assert.Slice(t, known, want, "known")
	lines := outputLines(t, o.Archive.Dir)
	_, has := lines[s.URL.String()]
	assert.True(t, has != strings.Contains(field, "store=no"), "the output has the seed: %v", has)
	for url, list := range lines {
		assert.Slice(t, list[0].Tags, s.Tags, url, "has the tags")
	}
}

// TestSeedRecrawl crawls for four hours and a bit: a seed that says so each ten minutes, one never again, and one by
// the rule of the crawl.
func TestSeedRecrawl(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("often.test", "", nil, nil), site("never.test", "", nil, nil),
			site("rarely.test", "", nil, nil))
		o := recrawling(t, web)
		o.Recrawl.Policy, o.Recrawl.Interval = recrawl.Fixed, 4*time.Hour
		o.Recrawl.Min, o.Recrawl.Max = time.Minute, 8*time.Hour
		e := must.Get(Open(o, testLog(t)))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Hour)
		defer cancel()
		must.Get(e.Run(ctx, []Seed{
			givenAs(t, web.URL("often.test", "/")+" recrawl=10m"),
			givenAs(t, web.URL("never.test", "/")+" recrawl=never"),
			givenAs(t, web.URL("rarely.test", "/")),
		}))(t)
		must.Do(t, e.Close())
		visits := func(host string) int { return pagesOf(web, host)["/"] }
		if h, n, d := visits("often.test"), visits("never.test"), visits("rarely.test"); h < 20 || n != 1 || d != 2 {
			t.Errorf("%d visits of the seed of ten minutes, %d, %d of the others; want 20 or more, 1, 2", h, n, d)
		}
	})
}

// TestBareHost gives hosts without a scheme: https is tried first, and http where it cannot be reached.
func TestBareHost(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("old.test", "", []string{"/p"}, nil), site("dev.test", "", []string{"/p"}, nil))
		port := fmt.Sprint(parse(t, web.URL("old.test", "/")).Port())
		o := testOptions(t, web)
		dial := o.Fetch.Dial
		o.Fetch.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if host, found := strings.CutSuffix(address, ":443"); found {
				to := &net.TCPAddr{IP: net.ParseIP(host), Port: 443}
				return nil, &net.OpError{Op: "dial", Net: network, Addr: to, Err: syscall.ECONNREFUSED}
			}
			if host, found := strings.CutSuffix(address, ":80"); found {
				address = net.JoinHostPort(host, port)
			}
			return dial(ctx, network, address)
		}
		e := must.Get(Open(o, testLog(t)))(t)
		sum, err := e.Run(t.Context(), []Seed{givenAs(t, "old.test scope=prefix tags=old"),
			givenAs(t, "dev.test:"+port+" tags=old")})
		must.True(t, err == nil && !sum.Seeds.Failed, "%+v: %v", sum.Seeds, err)
		must.Do(t, e.Close())
		states := stored(t, o.DataDir)
		for url, want := range map[string]storage.State{
			"http://old.test/": storage.Fetched, "http://old.test/p": storage.Fetched,
			"https://old.test/": storage.Failed, "https://dev.test:" + port + "/": storage.Failed,
			"http://dev.test:" + port + "/": storage.Fetched, "http://dev.test:" + port + "/p": storage.Fetched,
		} {
			got, known := states[url]
			assert.True(t, known && got.State == want, "%s is %s, want %s", url, got.State, want)
		}
		for url, list := range outputLines(t, o.Archive.Dir) {
			assert.Slice(t, list[0].Tags, []string{"old"}, url, "has the tags")
		}
	})
}
