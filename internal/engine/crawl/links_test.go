package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/modules/pagerules"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/extract"
)

// TestExtracted: the output says of a page that it was not read as a browser reads it, or not
// whole.
func TestExtracted(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		page := func(text string) http.Handler { return testweb.Content("text/html", []byte(text)) }
		web := serve(testweb.Site{Host: "a.test", Handler: testweb.Routes{
			"/robots.txt": testweb.Robots(""),
			"/":           page("<a href=/deep>x</a><a href=/links>x</a><a href=/list>x</a><a href=/more>x</a>"),
			"/deep":       page(strings.Repeat("<div>", 600) + "<a href=/found>x</a>"), "/found": page("<p>"),
			"/links": page("<a href=/1>x</a><a href=/2>x</a><a href=/3>x</a><a href=/4>x</a><a href=/5>x</a>"),
			"/list":  testweb.Content("application/xml", []byte("<urlset><url><loc>/found</loc></url><url><loc>/fo")),
			"/more":  page("<p>" + strings.Repeat("x", 9<<20)),
		}})
		o := testOptions(t, web)
		o.Extract.MaxLinks = 4
		crawl(t, o, web.URL("a.test", "/"))
		lines := outputLines(t, o.Archive.Dir)
		for path, want := range map[string]string{"/": "", "/deep": "flat", "/found": "", "/links": "part",
			"/list": "part",
			"/more": "part"} {
			got := lines[web.URL("a.test", path)]
			assert.True(t, len(got) == 1 && got[0].Extracted == want, "%s: %+v, want extracted %q", path, got, want)
		}
	})
}

// TestFieldsAreInTheOutput: a rule takes fields of the pages that it is for, and bounds their links.
func TestFieldsAreInTheOutput(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		page := testweb.Content("text/html",
			[]byte(
				"<nav><a href=/no>x</a></nav><main><b class=price> 5 €</b> <a href=/item>x</a> <a href=/>y</a></main>"))
		web := serve(testweb.Site{Host: "a.test", Handler: testweb.Routes{
			"/robots.txt": testweb.Robots(""), "/": page, "/item": page, "/no": page,
		}})
		o := testOptions(t, web)
		rule := must.Get(pagerules.New(&extract.RuleText{Hosts: []string{"a.test"}, Links: []string{"main"},
			Fields: map[string]string{"price": ".price", "links": "a@href*"}}))(t)
		o.Extract.Rules = []extract.Rule{rule}
		crawl(t, o, web.URL("a.test", "/"))
		lines := outputLines(t, o.Archive.Dir)
		got := lines[web.URL("a.test", "/item")]
		assert.True(t, len(lines) == 2 && len(got) == 1 &&
			fmt.Sprint(got[0].Fields) == "map[links:[/no /item /] price:5 €]", "%v", lines)
	})
}

// TestStopWhileListsAreRead: a list that is being read when the crawl has to end is given up, and
// read by the next run.
func TestStopWhileListsAreRead(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		var list strings.Builder
		list.WriteString("<urlset>")
		for i := range 40_000 {
			fmt.Fprintf(&list, "<url><loc>/%d</loc></url>", i)
		}
		web := serve(testweb.Site{Host: "a.test", Handler: testweb.Routes{
			"/robots.txt": testweb.Robots(""), "/list": testweb.Content("application/xml", []byte(list.String())),
		}})
		o := testOptions(t, web)
		o.ShutdownGrace = 0
		e := must.Get(Open(o, testLog(t)))(t)
		ctx, cancel := context.WithCancel(t.Context())
		e.Observe(&stopper{at: "/list", stop: cancel})
		sum, err := e.Run(ctx, []Seed{seed(t, web.URL("a.test", "/list"))})
		if err := errors.Join(err, e.Close()); err != nil || !sum.Stopped() {
			t.Fatalf("stopped: %v, %v", sum.Stopped(), err)
		}
		assert.Equal(t, stored(t, o.DataDir)[web.URL("a.test", "/list")].State.String(), "queued", "the list")
	})
}

// stopper stops a crawl when a URL has been answered.
type stopper struct {
	bomb
	at   string
	stop func()
}

func (s *stopper) Requested(q requestlog.Request) {
	if strings.HasSuffix(q.URL.String(), s.at) {
		s.stop()
	}
}
