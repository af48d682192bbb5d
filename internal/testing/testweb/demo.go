package testweb

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"time"
)

// demoSlowness is the time that the slow host of the demo takes for each response.
const demoSlowness = 150 * time.Millisecond

// Demo returns the sites of "amble demo", a small town's web of 18 hosts and
// more than 400 pages, and the facts about it.
//
// Its calendar is a trap: every month links to the next for ever. Robots rules disallow the earlier
// months; only a limit of depth bounds the later ones. The demo runs with crawl.max_depth set to
// Facts.MaxDepth, which takes a dozen months.
func Demo() ([]Site, Facts) { return newDemo(strings.NewReplacer()) }

// DemoDomains is Demo with a registrable domain for each site, news.test instead of news.amble.test, since
// a cluster divides a web by these domains.
func DemoDomains() ([]Site, Facts) {
	return newDemo(strings.NewReplacer(".amble.test", ".test"))
}

func newDemo(names *strings.Replacer) ([]Site, Facts) {
	d := &demo{names: names, facts: Facts{CrawlDelay: make(map[string]time.Duration), MaxDepth: 12}}
	d.portal()
	d.news()
	d.docs()
	d.shop()
	d.wiki()
	d.blog()
	d.archive()
	d.forum()
	d.mirror()
	d.gallery()
	d.closed()
	d.down()
	d.calendar()
	d.slow()
	d.moved()
	d.old()
	d.errors()
	d.broken()
	d.world()
	return d.sites, d.facts
}

// demo collects the sites and, page by page, the facts about them.
type demo struct {
	names *strings.Replacer
	sites []Site
	facts Facts
}

// text returns a text with the names of the sites in place of those that are written here.
func (d *demo) text(s string) string { return d.names.Replace(s) }

// demoSite is one site being built.
type demoSite struct {
	*demo
	host, name string
	routes     Routes
}

// site begins a site whose root is a seed. If robots is nil, the site has no robots.txt.
func (d *demo) site(host, name string, robots http.Handler) *demoSite {
	host = d.text(host)
	s := &demoSite{demo: d, host: host, name: name, routes: Routes{}}
	if robots != nil {
		s.routes["/robots.txt"] = robots
	}
	d.sites = append(d.sites, Site{Host: host, Handler: s.routes})
	d.facts.Seeds = append(d.facts.Seeds, Ref{host, "/"})
	return s
}

// last returns the site that was begun last, for changes.
func (d *demo) last() *Site { return &d.sites[len(d.sites)-1] }

// must adds a page that is fetched once and responds with status.
func (s *demoSite) must(path string, status int, h http.Handler) { s.recovers(path, 1, status, h) }

// recovers adds a page that responds with status at the given attempt.
func (s *demoSite) recovers(path string, tries, status int, h http.Handler) {
	if _, twice := s.routes[path]; twice {
		panic("testweb: the demo has two pages at " + s.host + path)
	}
	s.routes[path] = h
	s.facts.Must = append(s.facts.Must, Expected{Ref: Ref{s.host, path}, Status: status, Tries: tries})
}

// page adds an ordinary page.
func (s *demoSite) page(path, title string, links ...link) {
	s.must(path, http.StatusOK, s.render(path, title, "", links))
}

// pageWithHead adds a page with additional text in its head.
func (s *demoSite) pageWithHead(path, title, head string, links ...link) {
	s.must(path, http.StatusOK, s.render(path, title, head, links))
}

// may adds a page that a crawler may fetch.
func (s *demoSite) may(path string, h http.Handler) {
	s.routes[path] = h
	s.facts.May = append(s.facts.May, Ref{s.host, path})
}

// never forbids all paths with this prefix to a crawler, and serves a page there for crawlers that
// fetch them anyway.
func (s *demoSite) never(prefix string) {
	s.routes[prefix] = s.render(prefix, "Not for crawlers", "", nil)
	s.facts.Never = append(s.facts.Never, Ref{s.host, prefix})
}

// link is an anchor of a page. A link to another site is "//host/path".
type link struct{ href, text, attributes string }

func to(href, text string) link { return link{href: href, text: text} }

// render makes a page of the site, with prose of its own and the links. PORT in head stands for the
// port of the web.
func (s *demoSite) render(path, title, head string, links []link) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := proseOf(s.host + path)
		_, port := splitPort(r.Host)
		var b strings.Builder
		fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>%s "+
			"– %s</title>\n<link rel=\"stylesheet\" href=\"/style.css\">\n%s</head>\n<body>\n<header><a "+
			"href=\"/\">%s</a></header>\n<main>\n<h1>%s</h1>\n",
			html.EscapeString(title), s.name, strings.ReplaceAll(s.text(head), ":PORT", port), s.name,
			html.EscapeString(title))
		for range 3 {
			fmt.Fprintf(&b, "<p>%s</p>\n", text.paragraph())
		}
		b.WriteString("<ul>\n")
		for _, l := range links {
			linked := s.text(l.href)
			href := onPort(linked, r)
			if href != linked {
				href = "http:" + href
			}
			fmt.Fprintf(&b, "<li><a href=\"%s\"%s>%s</a></li>\n", html.EscapeString(href), l.attributes,
				html.EscapeString(l.text))
		}
		b.WriteString("</ul>\n</main>\n<footer><p>A page of the demonstration web of " +
			"amble.</p></footer>\n</body>\n</html>\n")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(b.String()))
	})
}

// withPort is content in which :PORT is replaced by the port of the web.
func (d *demo) withPort(contentType, text string) http.Handler {
	text = d.text(text)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, port := splitPort(r.Host)
		Content(contentType, []byte(strings.ReplaceAll(text, ":PORT", port))).ServeHTTP(w, r)
	})
}
