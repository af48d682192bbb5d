package crawl

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// madePages is a site of pages that link to the next one, each with a style sheet, its images and those of a host of
// their own. made are all of these.
func madePages(n int) (sites []testweb.Site, made []string) {
	site, cdn := testweb.Routes{}, testweb.Routes{"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /no/\n")}
	add := func(routes testweb.Routes, host, path, contentType, text string) {
		made = append(made, host+path)
		routes[path] = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			_, port, _ := strings.Cut(q.Host, ":")
			testweb.Content(contentType, []byte(strings.ReplaceAll(text, "PORT", port))).ServeHTTP(w, q)
		})
	}
	name := func(i int) string {
		if i == 0 {
			return "/"
		}
		return fmt.Sprintf("/p%d", i)
	}
	add(site, "a.test", "/s.css", "text/css", "@import 'import.css'; a { background: url(sheet.png) }")
	add(site, "a.test", "/import.css", "text/css", "a { color: red }")
	add(site, "a.test", "/sheet.png", "image/png", "sheet")
	for i := range n {
		add(site, "a.test", name(i), "text/html", fmt.Sprintf(`<link rel=stylesheet href=/s.css><img src=/i%d.png>`+
			`<img src="http://cdn.test:PORT/c%d.png"><img src="http://cdn.test:PORT/no/%d.png"><a href=%s>next</a>`,
			i, i, i, name((i+1)%n)))
		add(site, "a.test", fmt.Sprintf("/i%d.png", i), "image/png", fmt.Sprint("image ", i))
		add(cdn, "cdn.test", fmt.Sprintf("/c%d.png", i), "image/png", fmt.Sprint("far image ", i))
	}
	return []testweb.Site{{Host: "a.test", Handler: site}, {Host: "cdn.test", Handler: cdn}}, made
}

// TestHeavyRequisitesKilled: a process is killed at random while it archives pages with what they are made of. Each
// page and each requisite is in exactly one verified place at the end, also what was found before a kill. In real
// time: processes are killed.
func TestHeavyRequisitesKilled(t *testing.T) {
	t.Parallel()
	const pages, kills = 40, 5
	const delay = 5 * time.Millisecond
	sites, made := madePages(pages)
	web := startWeb(t, sites...)
	dir, o := prepareChild(t, childConfig{
		Resolver: web.ResolverAddr(), Delay: delay, Seeds: []string{web.URL("a.test", "/")}, Requisites: true,
		Formats: allFormats, Compress: archive.CompressNone,
	})
	waited, killed := 0, 0
	for over := false; !over; {
		child, done := startChild(t, dir)
		for until := web.Served() + 1 + rand.Int64N(20); ; {
			select {
			case err := <-done:
				must.Do(t, err)
				over = true
			case <-time.After(time.Millisecond):
				if killed == kills || web.Served() < until {
					continue
				}
				must.Do(t, child.Process.Kill())
				<-done
				killed++
				answered(t, web)
				if lastCommit(t, o.DataDir) == 0 {
					break
				}
				for u, outcome := range stored(t, o.DataDir) {
					if outcome.State == storage.Queued && strings.HasSuffix(u, ".png") {
						waited++
					}
				}
			}
			break
		}
	}
	assert.AtLeast(t, killed, kills, "the crawl was over after kills")
	log := web.Requests()
	checkPolite(t, log, delay)
	checkOutput(t, o)
	want := map[string]storage.State{}
	for _, u := range made {
		want[u] = storage.Fetched
	}
	for i := range pages {
		want[fmt.Sprintf("cdn.test/no/%d.png", i)] = storage.Denied
	}
	checkStates(t, o, want)
	for host := range maps.Keys(log.CountByPath()) {
		assert.True(t, !strings.HasPrefix(host, "cdn.test/no/"), "%s is disallowed and was requested", host)
	}
	for u, facts := range metadata(t, o.Archive.Dir) {
		n := strings.Count(facts, "requisite: http")
		assert.True(t, !(strings.HasSuffix(u, "/") || strings.Contains(u, "/p")) || n == 4,
			"the archive names %d requisites of %s: %s", n, u, facts)
	}
	t.Logf("%d requests, %d requisites waited when a process was killed", len(log), waited)
}
