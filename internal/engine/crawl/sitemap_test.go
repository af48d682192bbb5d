package crawl

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// sitemapXML is a sitemap, or an index of sitemaps, of paths on the host that is requested.
func sitemapXML(root, item string, paths ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		fmt.Fprintf(&b,
			`<?xml version="1.0" encoding="UTF-8"?><%s xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`, root)
		for _, p := range paths {
			path, facts, _ := strings.Cut(p, " ")
			if strings.HasPrefix(path, "/") {
				path = "http://" + r.Host + path
			}
			fmt.Fprintf(&b, "<%s><loc>%s</loc>%s</%s>\n", item, path, facts, item)
		}
		fmt.Fprintf(&b, "</%s>", root)
		w.Header().Set("Content-Type", "application/xml")
		_, _ = w.Write([]byte(b.String()))
	})
}

func sitemapOf(paths ...string) http.Handler { return sitemapXML("urlset", "url", paths...) }

func indexOf(paths ...string) http.Handler { return sitemapXML("sitemapindex", "sitemap", paths...) }

// zippedFile serves a body as the file that it is when compressed.
func zippedFile(body string) http.Handler {
	return testweb.Content("application/x-gzip", gzipped([]byte(body)))
}

// pagesFor are pages of these paths.
func pagesFor(routes testweb.Routes, paths ...string) testweb.Routes {
	for _, p := range paths {
		routes[p] = testweb.Page(p)
	}
	return routes
}

// entries reads what the store holds of every URL, by host and path.
func entries(t testing.TB, dir string) map[string]storage.Head {
	t.Helper()
	s := must.Get(storage.Open(dir, storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	all := make(map[string]storage.Head)
	must.Do(t, s.Hosts(func(h *storage.Host) error {
		_, err := s.URLs(h.ID, 0, 1<<30, func(head storage.Head) { all[h.Name+head.RequestURI] = head })
		return err
	}))
	return all
}

// A site whose pages nobody links to is found by its sitemaps, of every sort, under the rules of
// its host.
func TestSitemaps(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(testweb.Site{Host: "maps.test", Handler: pagesFor(testweb.Routes{
			"/robots.txt": testweb.Robots(
				"User-agent: *\nDisallow: /private/\nSitemap: /index.xml\nSitemap: /list.txt\nSitemap: " +
					"http://other.test/map.xml\nSitemap: /gone.xml"),
			"/": testweb.Page("home"),
			"/index.xml": indexOf("/one.xml", "/two.xml.gz", "/index.xml", "/private/map.xml",
				"http://other.test/map.xml"),
			"/one.xml": sitemapOf("/late <priority>0.1</priority>",
				"/a <changefreq>weekly</changefreq><lastmod>2024-01-01</lastmod>", "/early <priority>1.0</priority>",
				"http://other.test/x", "/private/p"),
			"/two.xml.gz":   zippedFile("<urlset><url><loc>/b</loc></url></urlset>"),
			"/list.txt":     testweb.Content("text/plain", []byte("http://maps.test/no-such-port\n/c\n")),
			"/private/p":    testweb.Page("never"),
			"/no-such-port": testweb.Page("never"),
		}, "/a", "/b", "/c", "/late", "/early")}, testweb.Site{Host: "other.test", Handler: testweb.Routes{}})
		o := testOptions(t, web)
		o.Frontier.MaxDepth = 1
		crawl(t, o, web.URL("maps.test", "/"))
		all := entries(t, o.DataDir)
		const first, late = 20, -6 // priorities of sitemaps
		want := map[string]struct {
			state     storage.State
			depth     uint16
			priority  int8
			sitemap   bool
			frequency storage.Frequency
		}{
			"/": {state: storage.Fetched}, "/index.xml": {storage.Fetched, 0, first, true, 0},
			"/list.txt":        {storage.Fetched, 0, first, true, 0},
			"/gone.xml":        {storage.Failed, 0, late, true, 0},
			"/one.xml":         {storage.Fetched, 1, late, true, 0},
			"/two.xml.gz":      {storage.Fetched, 1, late, true, 0},
			"/private/map.xml": {storage.Denied, 1, late, true, 0},
			"/late":            {storage.Fetched, 1, -4, false, 0}, "/a": {storage.Fetched, 1, 0, false, 4},
			"/early": {storage.Fetched, 1, 5, false, 0},
			"/b":     {storage.Fetched, 1, 0, false, 0}, "/c": {storage.Fetched, 1, 0, false, 0},
			"/private/p": {storage.Denied, 1, 0, false, 0},
		}
		for key, w := range want {
			h, known := all["maps.test"+key]
			assert.True(t, known && h.Last.State == w.state && h.Depth == w.depth && h.Priority == w.priority &&
				h.Sitemap == w.sitemap && h.Frequency == w.frequency, "%s (known: %t) is %+v, want %+v", key, known, h,
				w)
			delete(all, "maps.test"+key)
		}
		for key := range all {
			assert.Equal(t, key, "maps.test/no-such-port")
		}
		log := web.Requests().Host("maps.test")
		order := func(path string) int {
			return slices.IndexFunc(log, func(q testweb.Request) bool { return q.Path == path })
		}
		assert.True(t, order("/early") <= order("/late") && order("/index.xml") <= order("/a"), "order of requests: %v",
			log)
		checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
		checkOutput(t, o)
		assert.AtMost(t, web.ServedBy("other.test"), 0, "requests to a host out of scope")
	})
}

// What is not wanted is not requested, and what comes as a page is then an ordinary one.
func TestSitemapsNotFollowed(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(testweb.Site{Host: "maps.test", Handler: testweb.Routes{
			"/robots.txt": testweb.Robots("Sitemap: /map.xml"), "/": testweb.Page("home", "/linked.xml", "/feed"),
			"/linked.xml": sitemapOf("/a"), "/map.xml": sitemapOf("/b"),
			"/feed": testweb.Content("application/rss+xml", []byte("<rss><item><link>/c</link></item></rss>")),
		}})
		o := testOptions(t, web)
		o.Sitemaps.Follow, o.Sitemaps.Feeds, o.Sitemaps.Guess = false, false, true
		crawl(t, o, web.URL("maps.test", "/"))
		checkStates(t, o,
			map[string]storage.State{"maps.test/": storage.Fetched, "maps.test/linked.xml": storage.Fetched,
				"maps.test/feed": storage.Fetched})
	})
}

// Sitemaps are found by a link, by their usual key where the robots.txt names none, and as a page;
// feeds as a page.
func TestSitemapsFound(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(
			testweb.Site{Host: "link.test", Handler: pagesFor(testweb.Routes{
				"/robots.txt": testweb.Robots(""),
				"/": testweb.Content("text/html",
					[]byte(
						`<link rel=sitemap href=/map><link rel=alternate type=application/atom+xml href=/feed><a href=/plain.xml>x</a>`)),
				"/map":       testweb.Content("text/plain", []byte("https://other.test/x")),
				"/plain.xml": sitemapOf("/b"),
				"/feed": testweb.Content("application/atom+xml",
					[]byte(
						`<feed xmlns="http://www.w3.org/2005/Atom"><link rel=next href="/feed2"/><entry><link href="/c"/></entry></feed>`)),
				"/feed2": testweb.Content("application/atom+xml",
					[]byte(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="/d"/></entry></feed>`)),
				"/hidden": sitemapOf("/no"),
			}, "/b", "/c", "/d")},
			testweb.Site{Host: "guess.test",
				Handler: pagesFor(testweb.Routes{"/robots.txt": testweb.Status(404), "/": testweb.Page("home"),
					"/sitemap.xml": sitemapOf("/a")}, "/a")},
			testweb.Site{Host: "named.test",
				Handler: pagesFor(testweb.Routes{"/robots.txt": testweb.Robots("Sitemap: /m"),
					"/": testweb.Page("home"), "/m": sitemapOf("/a")}, "/a")},
		)
		o := testOptions(t, web)
		o.Sitemaps.Guess = true
		crawl(t, o, web.URL("link.test", "/"), web.URL("guess.test", "/"), web.URL("named.test", "/"))
		want := map[string]storage.State{"link.test/sitemap.xml": storage.Failed}
		for _, key := range []string{"link.test/", "link.test/map", "link.test/plain.xml", "link.test/feed",
			"link.test/feed2", "link.test/b", "link.test/c", "link.test/d",
			"guess.test/", "guess.test/sitemap.xml", "guess.test/a", "named.test/", "named.test/m", "named.test/a"} {
			want[key] = storage.Fetched
		}
		checkStates(t, o, want)
		depth := entries(t, o.DataDir)
		if depth["link.test/b"].Depth != 1 || depth["link.test/c"].Depth != 2 || depth["link.test/d"].Depth != 3 {
			t.Errorf("depths: %+v %+v %+v", depth["link.test/b"], depth["link.test/c"], depth["link.test/d"])
		}
	})
}

// A sitemap need not lie where the pages lie, but they must lie in the scope. Excluded it is not read.
func TestSitemapsAndScope(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(testweb.Site{Host: "maps.test", Handler: pagesFor(testweb.Routes{
			"/robots.txt": testweb.Robots("Sitemap: /moved.xml\nSitemap: /not-this.xml"),
			"/docs/":      testweb.Page("home"), "/moved.xml": testweb.Redirect(301, "/map.xml"),
			"/map.xml":      sitemapOf("/docs/a", "/docs/b", "/other", "/docs/c/not-this"),
			"/not-this.xml": sitemapOf("/docs/no"),
		}, "/docs/a", "/docs/b", "/docs/no", "/docs/c/not-this")})
		o := testOptions(t, web)
		o.Mode = frontier.ModePrefix
		o.Include, o.Exclude = []*regexp.Regexp{regexp.MustCompile(`/docs/`)},
			[]*regexp.Regexp{regexp.MustCompile(`not-this`)}
		crawl(t, o, web.URL("maps.test", "/docs/"))
		checkStates(t, o, map[string]storage.State{
			"maps.test/docs/": storage.Fetched, "maps.test/moved.xml": storage.Redirected,
			"maps.test/map.xml": storage.Fetched, "maps.test/docs/a": storage.Fetched,
			"maps.test/docs/b": storage.Fetched,
		})
	})
}

// An index leads to sitemaps, and not to further indexes.
func TestIndexesWithoutEnd(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		endless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				testweb.Robots("Sitemap: /map0").ServeHTTP(w, r)
				return
			}
			indexOf(r.URL.Path+"0", r.URL.Path+"1").ServeHTTP(w, r)
		})
		web := serve(testweb.Site{Host: "maps.test", Handler: endless})
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = time.Millisecond
		crawl(t, o, web.URL("maps.test", "/"))
		// The seed is an index too, and each names two sitemaps.
		assert.Equal(t, len(entries(t, o.DataDir)), 2*(1+2), "URLs")
	})
}

// TestSitemapsOfAnIndex: of the sitemaps that one index names only so many are taken.
func TestSitemapsOfAnIndex(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(testweb.Site{Host: "maps.test", Handler: testweb.Routes{
			"/robots.txt": testweb.Robots("Sitemap: /index"), "/": testweb.Page("home"),
			"/index": indexOf("/1", "/2", "/3", "/4", "/5"),
		}})
		o := testOptions(t, web)
		o.Frontier.MaxSitemaps = 3
		crawl(t, o, web.URL("maps.test", "/"))
		assert.Equal(t, len(entries(t, o.DataDir)), 2+3, "URLs are known")
	})
}

// manyURLs is a sitemap with n URLs of a folder that robots.txt forbids, so that they cost no requests.
func manyURLs(n int) string {
	var b strings.Builder
	b.WriteString("<urlset>")
	for i := range n {
		fmt.Fprintf(&b, "<url><loc>/private/%d</loc></url>\n", i)
	}
	b.WriteString("</urlset>")
	return b.String()
}

// A sitemap of more URLs than go into a commit is taken whole, one beyond the bounds as far as they
// reach. Bombs are defused.
func TestLargeSitemaps(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(testweb.Site{Host: "maps.test", Handler: testweb.Routes{
			"/robots.txt": testweb.Robots(
				"User-agent: *\nDisallow: /private/\nSitemap: /map.xml.gz\nSitemap: /bomb.gz"),
			"/":           testweb.Page("home"),
			"/map.xml.gz": zippedFile(manyURLs(7_000)),
			"/bomb.gz": zippedFile("<urlset><url><loc>/private/bomb</loc></url>" + strings.Repeat(" ", 8<<20) +
				"<url><loc>/private/behind</loc></url>"),
		}})
		o := testOptions(t, web)
		o.Sitemaps.Lists.MaxItems, o.Sitemaps.Lists.MaxBytes = 6_000, 4<<20
		crawl(t, o, web.URL("maps.test", "/"))
		denied := 0
		all := entries(t, o.DataDir)
		for _, h := range all {
			if h.Last.State == storage.Denied {
				denied++
			}
		}
		_, behind := all["maps.test/private/behind"]
		assert.True(t, denied == 6_001 && !behind && all["maps.test/bomb.gz"].Last.State == storage.Fetched,
			"%d URLs denied, want 6,001; behind the bound: %t", denied, behind)
	})
}

// A crawl that is stopped in the middle of a long sitemap reads it again later, and then has all of it.
func TestStopWithinSitemap(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(testweb.Site{Host: "maps.test", Handler: testweb.Routes{
			"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /private/\nSitemap: /map.xml"),
			"/":           testweb.Page("home"),
			"/map.xml":    testweb.Content("text/xml", []byte(manyURLs(12_000))),
		}})
		o := testOptions(t, web)
		o.ShutdownGrace, o.GiveUpAfter = 0, time.Minute
		for limit := 100 * time.Millisecond; ; limit *= 2 {
			sum := must.Get(crawlFor(t, o, limit, web.URL("maps.test", "/")))(t)
			if !sum.Stopped() {
				break
			}
		}
		assert.Equal(t, len(entries(t, o.DataDir)), 12_002, "URLs")
		checkOutput(t, o)
	})
}

// Nofollow and its kin are obeyed, recorded, and can be switched off.
func TestNoFollow(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		tagged := func(tag string, h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Robots-Tag", tag)
				h.ServeHTTP(w, r)
			})
		}
		home :=
			`<link rel=canonical href=/canonical><a rel=nofollow href=/ugly>x</a><a href=/meta>x</a><a href=/header>x</a><a href=/list>x</a><a href=/late>x</a>`
		web := serve(testweb.Site{Host: "wishes.test", Handler: pagesFor(testweb.Routes{
			"/robots.txt": testweb.Robots(""), "/": testweb.Content("text/html", []byte(home)),
			"/meta": testweb.Content("text/html",
				[]byte(`<meta name=robots content="nofollow, noai"><a href=/by-meta>x</a>`)),
			"/header": tagged("amble: none", testweb.Page("header", "/by-header")),
			"/list":   tagged("nofollow", sitemapOf("/by-list")),
			"/late":   tagged("unavailable_after: 1999-01-01", testweb.Page("late", "/by-late")),
		}, "/canonical", "/ugly", "/by-meta", "/by-header", "/by-list", "/by-late")})
		for _, obey := range []bool{true, false} {
			o := testOptions(t, web)
			o.NoFollow = obey
			crawl(t, o, web.URL("wishes.test", "/"))
			want := map[string]storage.State{}
			for _, p := range []string{"/", "/canonical", "/meta", "/header", "/list", "/late", "/by-late"} {
				want["wishes.test"+p] = storage.Fetched
			}
			if !obey {
				for _, p := range []string{"/ugly", "/by-meta", "/by-header", "/by-list"} {
					want["wishes.test"+p] = storage.Fetched
				}
			}
			checkStates(t, o, want)
			lines := outputLines(t, o.Archive.Dir)
			at := func(path string) line { return lines[web.URL("wishes.test", path)][0] }
			assert.Equal(t, at("/").Canonical, web.URL("wishes.test", "/canonical"), "canonical")
			l := at("/meta")
			assert.True(t, slices.Equal(l.Robots, []string{"nofollow", "noai"}) && !l.NoIndex &&
				slices.Equal(l.Preferences, []string{"robots: noai"}), "/meta: %+v", l)
			if l := at("/header"); !slices.Equal(l.Robots, []string{"none"}) || !l.NoIndex {
				t.Errorf("/header: %+v", l)
			}
			if l := at("/late"); !l.NoIndex || l.UnavailableAfter != "1999-01-01T00:00:00Z" {
				t.Errorf("/late: %+v", l)
			}
			assert.Equal(t, at("/list").Kind, "sitemap", "/list")
		}
	})
}

// The rules for URLs change what is found. A redirect between two forms of a URL is followed all
// the same.
func TestURLRules(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(testweb.Site{Host: "rules.test", Handler: pagesFor(testweb.Routes{
			"/robots.txt": testweb.Robots("Sitemap: /map.xml"),
			"/": testweb.Page("home", "/a?utm_source=x", "/a?utm_source=y", "/b?utm_id=1",
				"/"+strings.Repeat("long", 20)),
			"/map.xml": sitemapOf("/a?utm_medium=map", "/c?utm_medium=map"),
			"/b":       testweb.Redirect(302, "/b?utm_source=own"), "/b?utm_source=own": testweb.Page("b"),
		}, "/a", "/c", "/d")})
		o := testOptions(t, web)
		o.URLs = weburl.Rules{StripParameters: []string{"utm_*"}, MaxLength: 64}
		crawl(t, o, web.URL("rules.test", "/"), web.URL("rules.test", "/d?utm_source=seed"))
		want := map[string]storage.State{"rules.test/b": storage.Redirected}
		for _, p := range []string{"/", "/map.xml", "/a", "/c", "/d?utm_source=seed", "/b?utm_source=own"} {
			want["rules.test"+p] = storage.Fetched
		}
		checkStates(t, o, want)
	})
}
