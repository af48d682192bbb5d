package zoo

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// Site is a host of many pages that misuses links, status codes or sitemaps. It answers a request for a
// target at an instant; base is its own address, for URLs that have to be absolute.
type Site func(base, target string, at time.Time) (response string, refused bool)

// AddSite starts a site at an address of its own, and returns a function that lists the requests for
// all but its robots.txt so far. Call it before the first visit.
func (z *Zoo) AddSite(name string, answer Site) (visits func() []Visit, err error) {
	var mu sync.Mutex // guards all
	var all []Visit
	a := server{name: name, path: "/", fromStart: true, serve: func(g *client) {
		target := g.request()
		if target == "" {
			return
		}
		base := fmt.Sprintf("http://%s:%d", z.Host(name), g.raw.LocalAddr().(*net.TCPAddr).Port)
		mu.Lock()
		now := z.clock.Now()
		response, refused := answer(base, target, now)
		if target != "/robots.txt" {
			all = append(all, Visit{At: now, Target: target, Refused: refused})
		}
		mu.Unlock()
		g.send(response)
	}}
	if err := z.start(a, loopback); err != nil {
		return nil, err
	}
	return func() []Visit {
		mu.Lock()
		defer mu.Unlock()
		return append([]Visit(nil), all...)
	}, nil
}

// textPage is a page that no other target has, with links.
func textPage(target string, links ...string) string {
	text := "<title>" + target + "</title><p>This is the page " + target + " and no other."
	for _, link := range links {
		text += `<a href="` + link + `">x</a>`
	}
	return closing("200 OK", "", html, text)
}

// refreshPage is a page that refreshes to a target.
func refreshPage(to string) string {
	return closing("200 OK", "", html, `<meta http-equiv="refresh" content="0; URL='`+to+`'"><p>Please wait.`)
}

// numberedTargets returns targets of a form with the numbers from 0 on.
func numberedTargets(form string, n int) (targets []string) {
	for i := range n {
		targets = append(targets, fmt.Sprintf(form, i))
	}
	return targets
}

// RefreshMaze returns a site whose pages refresh for ever: those of /verify/ to themselves with another
// token each time, those of /next/ to another path each time. The first page links to n of each.
func RefreshMaze(n int) Site {
	turn := 0
	return func(_, target string, _ time.Time) (string, bool) {
		path, _, _ := strings.Cut(target, "?")
		turn++
		switch {
		case target == "/robots.txt":
			return closing("200 OK", "", "text/plain", ""), false
		case strings.HasPrefix(path, "/verify/"):
			return refreshPage(fmt.Sprintf("%s?bm-verify=%d", path, turn)), false
		case strings.HasPrefix(path, "/next/"):
			return refreshPage(fmt.Sprintf("/next/%d-%d", n, turn)), false
		}
		return textPage(target, append(numberedTargets("/verify/%d", n), numberedTargets("/next/%d", n)...)...), false
	}
}

// SitemapMaze returns a site whose index names n sitemaps. Each sitemap is an index of n more, at any depth. The first
// page links to pages.
func SitemapMaze(n, pages int) Site {
	return func(_, target string, _ time.Time) (string, bool) {
		switch {
		case target == "/robots.txt":
			return closing("200 OK", "", "text/plain", "Sitemap: /map\n"), false
		case strings.HasPrefix(target, "/map"):
			var b strings.Builder
			b.WriteString("<sitemapindex>")
			for i := range n {
				fmt.Fprintf(&b, "<sitemap><loc>%s-%d</loc></sitemap>", target, i)
			}
			b.WriteString("</sitemapindex>")
			return closing("200 OK", "", "application/xml", b.String()), false
		case target == "/":
			return textPage(target, numberedTargets("/page/%d", pages)...), false
		}
		return textPage(target), false
	}
}
