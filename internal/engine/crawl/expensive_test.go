package crawl

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/rules/expensive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// forge is a site with a repository of Gitea: each page links to the ordinary pages, to expensive
// endpoints, and to pages of another site that only look like them.
func forge(w http.ResponseWriter, r *http.Request) {
	const commit = "8a3a2d59c0c3d4a1b5c6e7f8091a2b3c4d5e6f70"
	if r.URL.Path == "/" { // its cookie comes once
		http.SetCookie(w, &http.Cookie{Name: "i_like_gitea", Value: "1"})
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, `<title>%s</title>`, r.URL.Path)
	for _, path := range []string{
		"/o/r", "/o/r/src/branch/main/a.go", "/o/r/issues/1", "/o/r/commit/" + commit,
		"/o/r/src/commit/" + commit + "/a.go",
		"/o/r/blame/branch/main/a.go", "/o/r/archive/v1.zip", "/o/r/compare/v1...v2",
		"//" + strings.Replace(r.Host, "forge", "plain", 1) + "/o/r/compare/v1",
	} {
		fmt.Fprintf(w, `<a href="%s">x</a>`, path)
	}
}

// TestForge: a forge gets no request for an expensive endpoint by default, and such requests after all
// others if they come last. Another site keeps URLs that only look like them. Seeds are fetched.
func TestForge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode    expensive.Mode
		pages   int
		refused uint64
	}{{expensive.Skip, 5, 5 * 5}, {expensive.Last, 10, 0}, {expensive.Crawl, 10, 0}} {
		t.Run(c.mode.String(), func(t *testing.T) {
			t.Parallel()
			plain := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "plain") }
			web := startWeb(t, testweb.Site{Host: "forge.test", Handler: http.HandlerFunc(forge)},
				testweb.Site{Host: "plain.test", Handler: http.HandlerFunc(plain)})
			o := trapOptions(t, web)
			o.Mode, o.Traps = frontier.ModeAny, DefaultOptions().Traps
			o.Traps.Expensive = c.mode
			crawl(t, o, web.URL("forge.test", "/"), web.URL("forge.test", "/o/r/raw/branch/main/a.go"))
			assert.Not(t, web.ServedBy("plain.test"), 0, "a link to another site is taken for one to the forge")
			var pages []string
			for _, r := range web.Requests() {
				if r.Host == "forge.test" && r.Path != "/robots.txt" {
					pages = append(pages, r.Path)
				}
			}
			assert.Equal(t, len(pages), c.pages, "requests", pages)
			assert.True(t, c.mode != expensive.Last || !strings.Contains(strings.Join(pages[:5], " "), "/commit/"),
				"expensive endpoints are not last: %q", pages)
			assert.Equal(t, refusals(t, o.DataDir, "forge.test")[storage.TrapExpensive].Count, c.refused,
				"links are refused")
		})
	}
}
