package fetchurl

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/robots"
)

// TestReports: each way that a fetch can go has its outcome, and people read why.
func TestReports(t *testing.T) {
	const file = "User-agent: *\nDisallow: /no\nAllow: /no/but\nCrawl-delay: 7\n"
	u := testkit.Parse(t, "http://a.test/no/but")
	record := robots.Record{
		Class: robots.ClassFound, Status: 200, Body: []byte(file), FinalURL: "http://a.test/robots.txt",
	}
	rules := record.Rules("amble")
	header := http.Header{"X-Odd": {"a\x1b[31mb"}}
	sent := requestlog.Request{Sent: true, Delay: 7 * time.Second}
	matched := func(path string, fill func(*crawl.Visit)) *crawl.Visit {
		x := &crawl.Visit{
			Decided: robots.Decision{Kind: robots.DecisionMatch}, Robots: record, Rules: rules,
			Verdict: rules.Match(path), Request: sent,
		}
		fill(x)
		return x
	}
	answered := func(page archive.Page, wall string) *crawl.Visit {
		return matched("/", func(x *crawl.Visit) { x.Header, x.Page, x.Wall = header, page, wall })
	}
	page := func(status int) archive.Page { return archive.Page{URL: u.String(), Status: status, Attempts: 1} }
	browser := page(200)
	browser.NeedsBrowser, browser.Usage = true, map[string]archive.Usage{"train-ai": {Preference: "n", From: "a line"}}
	moved := page(301)
	moved.Redirect = "http://b.test/"
	for _, c := range []struct {
		name  string
		visit *crawl.Visit
		want  Outcome
		text  []string
	}{
		{"opted out", &crawl.Visit{OptOut: "host a.test"}, OptedOut, []string{"opted_out: host a.test"}},
		{"held", &crawl.Visit{Decided: robots.Decision{Kind: robots.DecisionHold, Until: time.Unix(1e9, 0)},
			Robots: robots.Record{Class: robots.ClassUnreachable, Failure: robots.FailureDNS}}, Held,
			[]string{"until         2001-09-09T01:46:40Z", "gives no verdict"}},
		{"disallowed", matched("/no", func(x *crawl.Visit) { x.Request.Sent = false }), Disallowed,
			[]string{"disallowed by line 2: Disallow: /no\n", "crawl delay 7s"}},
		{"usage", matched("/", func(x *crawl.Visit) { x.Usage = true }), Usage, nil},
		{"failed", matched("/", func(x *crawl.Visit) {
			x.Failure, x.Page = &fetch.Error{Kind: fetch.KindReset}, page(0)
		}), Failed, []string{"delay 7s"}},
		{"moved", answered(moved, ""), Redirected, []string{"redirected: to http://b.test/"}},
		{"missing", answered(page(404), ""), Refused, []string{"refused: 404 Not Found"}},
		{"wall", answered(page(200), "somebody's"), Wall, []string{"the challenge of a wall: somebody's"}},
		{"fetched", matched("/no/but", func(x *crawl.Visit) {
			x.Header, x.Page = header, browser
			x.Document = &extract.Page{Links: []extract.Link{{URL: u, NoFollow: true}}}
		}), Fetched, []string{
			"allowed by line 3: Allow: /no/but", "needs a browser", "train-ai=n, by a line", "1 link,",
			"anchor     http://a.test/no/but  nofollow", "X-Odd: a\ufffd[31mb",
		}},
	} {
		c.visit.URL = u
		r, err := NewReport(c.visit)
		if err != nil || r.Outcome != c.want {
			t.Errorf("%s: %+v (%v)", c.name, r, err)
			continue
		}
		var b strings.Builder
		must.Do(t, r.Print(&b, false))
		for _, text := range c.text {
			assert.Contains(t, b.String(), text, c.name, "is not in")
		}
		assert.True(t, !strings.ContainsRune(b.String(), '\x1b'), "%s: a control character of a server is printed",
			c.name)
		if target, err := r.Target(); (c.want == Redirected) != (err == nil) {
			t.Errorf("%s leads to %v (%v)", c.name, target, err)
		}
		encoded, err := json.Marshal(r)
		assert.True(t, err == nil && strings.Contains(string(encoded), `"outcome":"`+string(c.want)+`"`), "%s: %s (%v)",
			c.name, encoded, err)
	}
}
