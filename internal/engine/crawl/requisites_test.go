package crawl

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// requisiteOptions are those of a crawl that archives pages with what they are made of.
func requisiteOptions(t testing.TB, web *testweb.Web) Options {
	o := testOptions(t, web)
	o.Archive.Formats = []string{archive.FormatJSONL, warcfiles.Name}
	o.Requisites.Fetch = true
	o.Frontier.Politeness.Delay = time.Second
	return o
}

// referers are the Referer fields of requests, by host and path.
type referers struct {
	mu  sync.Mutex
	all map[string]string
}

// noting serves a content, and notes the Referer.
func (r *referers) noting(contentType, content string) http.Handler {
	next := testweb.Content(contentType, []byte(content))
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.all[strings.Split(q.Host, ":")[0]+q.URL.Path] = q.Header.Get("Referer")
		r.mu.Unlock()
		next.ServeHTTP(w, q)
	})
}

// requestPaths are what was requested of a host, in order.
func requestPaths(web *testweb.Web, host string) (paths []string) {
	for _, r := range web.Requests().Host(host) {
		paths = append(paths, r.Path)
	}
	return paths
}

// TestRequisites archives a page with all that it is made of, under the rules of each host, and judges it by what the
// servers saw.
func TestRequisites(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		r := referers{all: make(map[string]string)}
		var web *testweb.Web
		with := func(text string) http.Handler { // the port is known later
			return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				_, port, _ := strings.Cut(q.Host, ":")
				r.noting("text/html", strings.ReplaceAll(text, "PORT", port)).ServeHTTP(w, q)
			})
		}
		web = serve(
			testweb.Site{Host: "a.test", Handler: testweb.Routes{
				"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /secret\n"),
				"/": with(`<a href=/page>next</a><a href=/beyond>more</a><link rel=stylesheet href=/s.css>` +
					`<img src=/i.png><img src="http://cdn.test:PORT/big.png"><img src="http://cdn.test:PORT/no.png">` +
					`<script src=/secret.js></script>` +
					`<object data="http://cdn.test:PORT/frame.html"></object>`),
				"/page":       with(`<link rel=stylesheet href=/s.css><img src=/last.png>`),
				"/beyond":     with(`<p>beyond the budget`),
				"/never":      with(`<p>only a frame of another site links here`),
				"/s.css":      r.noting("text/css", `@import "import.css"; @font-face { src: url(font.woff2) }`),
				"/import.css": r.noting("text/css", `a { background: url(deep.png) }`),
				"/font.woff2": r.noting("font/woff2", "font"), "/deep.png": r.noting("image/png", "deep"),
				"/i.png": r.noting("image/png", "i"), "/last.png": r.noting("image/png", "last"),
			}},
			testweb.Site{Host: "cdn.test", Handler: testweb.Routes{
				"/robots.txt": testweb.Robots("User-agent: *\nCrawl-delay: 5\nDisallow: /no\n"),
				"/big.png":    r.noting("image/png", "big"),
				"/frame.html": with(`<a href="http://a.test:PORT/never">x</a><img src=/other.png>`),
			}},
		)
		o := requisiteOptions(t, web)
		o.Frontier.HostBudget, o.GiveUpAfter = 2, time.Hour
		crawl(t, o, web.URL("a.test", "/"))

		got := requestPaths(web, "a.test")
		want := []string{"/robots.txt", "/", "/s.css", "/i.png", "/import.css", "/font.woff2", "/page", "/last.png"}
		assert.Slice(t, got, want, "of a.test was requested")
		assert.Equal(t, fmt.Sprint(requestPaths(web, "cdn.test")), "[/robots.txt /big.png /frame.html]",
			"of cdn.test was requested")
		checkPolite(t, web.Requests(), time.Second)
		checkStates(t, o, map[string]storage.State{
			"a.test/": storage.Fetched, "a.test/page": storage.Fetched, "a.test/beyond": storage.Queued,
			"a.test/s.css": storage.Fetched, "a.test/i.png": storage.Fetched, "a.test/import.css": storage.Fetched,
			"a.test/font.woff2": storage.Fetched, "a.test/last.png": storage.Fetched,
			"a.test/secret.js": storage.Denied, "cdn.test/no.png": storage.Denied,
			"cdn.test/big.png": storage.Fetched, "cdn.test/frame.html": storage.Fetched,
		})
		for path, from := range map[string]string{
			"a.test/i.png": web.URL("a.test", "/"), "a.test/font.woff2": web.URL("a.test", "/s.css"),
			"cdn.test/big.png": web.URL("a.test", "/"), "a.test/page": "",
			"a.test/last.png": web.URL("a.test", "/page"),
		} {
			assert.Equal(t, r.all[path], from, path, "was requested with Referer")
		}
		checkArchive(t, o)
		facts := metadata(t, o.Archive.Dir)
		for path, n := range map[string]int{"/": 6, "/s.css": 2, "/import.css": 0} {
			assert.Equal(t, strings.Count(facts[web.URL("a.test", path)], "requisite: "), n, "the metadata of", path,
				"should name requisites")
		}
		readHost(t, o.DataDir, "a.test", func(s *storage.Store, h *storage.Host) error {
			assert.True(t, h.Pages() == 2 && h.Waiting() == 0 && s.Counters().Pages() == 2,
				"%d pages, %d requisites wait; %d pages in all", h.Pages(), h.Waiting(), s.Counters().Pages())
			return nil
		})
		o.Frontier.HostBudget = 3 // requisites count for no budget after a restart either
		crawl(t, o, web.URL("a.test", "/"))
		if got := requestPaths(web, "a.test"); got[len(got)-1] != "/beyond" || len(got) != len(want)+1 {
			t.Errorf("then was requested %v", got[len(want):])
		}
	})
}

// TestRequisitesBound: a page cannot make amble fetch more than its bound, its style sheets included, nor anything
// private.
func TestRequisitesBound(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		var page, sheet strings.Builder
		for i := range 50 {
			fmt.Fprintf(&page, "<link rel=stylesheet href=/s%d.css><img src=/i%d.png>", i, i)
			fmt.Fprintf(&sheet, "a { background: url(/deep%d-", i)
			fmt.Fprintf(&sheet, "%d.png) }", i)
		}
		routes := testweb.Routes{
			"/":       testweb.Content("text/html", []byte(page.String())),
			"/s0.css": testweb.Content("text/css", []byte(sheet.String())),
			"/s1.css": testweb.Content("text/css", []byte(strings.ReplaceAll(sheet.String(), "deep", "other"))),
		}
		web := serve(testweb.Site{Host: "a.test", Handler: routes})
		o := requisiteOptions(t, web)
		o.Requisites.PerPage = 20
		crawl(t, o, web.URL("a.test", "/"))
		got := requestPaths(web, "a.test")
		n := len(got) - 2
		assert.True(t, n <= 20 && n >= 15, "%d requisites were requested, want at most 20: %v", n, got)
	})
}

// TestRequisitesIncoming: what other shards have found is judged as on one machine.
func TestRequisitesIncoming(t *testing.T) {
	o := DefaultOptions()
	scope := frontier.NewScope(frontier.ModeHost, nil, []*regexp.Regexp{regexp.MustCompile("/private/")},
		parse(t, "http://a.test/"))
	for _, test := range []struct {
		url      string
		priority int8
		want     bool
	}{
		{"http://cdn.test/i.png", storage.PriorityRequisite, true},
		{"http://cdn.test/private/i.png", storage.PriorityRequisite, false},
		{"http://cdn.test/page", 0, false}, {"http://a.test/page", 0, true},
	} {
		d := storage.Discovery{Found: storage.Found{URL: parse(t, test.url), Priority: test.priority, Room: 3}}
		f, ok := o.admitIncoming(scope, printer{}, &d)
		assert.True(t, ok == test.want && (!ok || f.Room == 3), "%s of priority %d: %v, room %d", test.url,
			test.priority, ok, f.Room)
	}
}

// printer makes no fingerprints.
type printer struct{}

func (printer) Fingerprint(weburl.URL) uint64 { return 1 }

// TestRequisitesPrivate: what a page is made of is not fetched from an address that is not public. The run that reads
// the page may reach the loopback, and ends there. All addresses are of this machine, in case they are reached.
func TestRequisitesPrivate(t *testing.T) {
	t.Parallel()
	var web *testweb.Web
	handler := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, `<img src=%q><img src="http://127.9.9.9/admin.png">`, web.URL("b.test", "/i.png"))
			fmt.Fprint(w, `<link rel=stylesheet href="http://[::1]/x.css">`)
		default:
			http.NotFound(w, q)
		}
	})
	web = startWeb(t, testweb.Site{Host: "a.test", Handler: handler}, testweb.Site{Host: "b.test"})
	o := requisiteOptions(t, web)
	o.Frontier.Politeness.Delay = 20 * time.Millisecond
	o.Frontier.MaxAttempts, o.MaxPages = 1, 1
	crawl(t, o, web.URL("a.test", "/"))
	o.MaxPages, o.Fetch.AllowPrivate = 0, false
	crawl(t, o, web.URL("a.test", "/"))
	assert.AtMost(t, len(web.Requests().Host("b.test")), 0, "a private address was fetched from")
	for _, u := range []string{"http://127.9.9.9/admin.png", web.URL("b.test", "/i.png"), "http://[::1]/x.css"} {
		got := stored(t, o.DataDir)[u]
		assert.True(t, got.State != storage.Fetched && got.Status == 0, "%s: %+v", u, got)
	}
}
