package crawl

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestCaptures: what a fetcher has requested for a page is archived with it, as HTTP/1.1 would have carried it and
// without credentials; but nothing of a host that is opted out, and nothing that says that it must not be archived.
func TestCaptures(t *testing.T) {
	t.Parallel()
	var o Options
	var url string
	_, written := withFetcher(t, func(set *Options) {
		set.Archive.Formats = []string{archive.FormatJSONL, warcfiles.Name}
		set.OptOuts = []optout.Entry{{Scope: optout.ScopeHost, Value: "out.test", At: time.Now()}}
		set.Archive.Dir = t.TempDir()
		o = *set
	}, func(r *remoteRun) {
		l := r.lease(remote.Request{Fetcher: "farm-1", N: 1})[0]
		url = l.URL.String()
		css := func(text string, header http.Header) remote.Capture {
			return remote.Capture{URL: parse(t, text), Request: http.Header{"Accept": {"text/css"}}, Status: 200,
				Header: header, Body: []byte("body { color: red }")}
		}
		r.report(remote.Report{
			Fetcher: "farm-1", ID: l.ID, Status: 200, HasBody: true, Body: []byte("<title>A page</title>"),
			Header: http.Header{"Content-Type": {"text/html"}, "Content-Encoding": {"br"}, "Content-Length": {"7"}},
			Captures: []remote.Capture{
				{URL: l.URL, Request: http.Header{"User-Agent": {"x"}, "Cookie": {"secret"}}, OfReport: true},
				css("http://static.test/a.css", http.Header{"Content-Type": {"text/css"}, "Bad": {"a\r\nInjected: b"}}),
				css("http://out.test/a.css", nil),
				css("http://static.test/private.css", http.Header{"X-Robots-Tag": {"noarchive"}}),
			},
		}, remote.Accepted)
	})
	assert.Equal(t, len(written), 1, "lines of the page")
	captures := slices.Sorted(maps.Keys(archived(t, o.Archive.Dir)))
	captures = slices.DeleteFunc(captures, func(u string) bool { return strings.HasSuffix(u, "/robots.txt") })
	assert.Slice(t, captures, []string{url, "http://static.test/a.css"}, "archived")
	head, body, _ := page(t, o.Archive.Dir, url)
	request := requestOf(t, o.Archive.Dir, url)
	assert.True(t, strings.HasPrefix(request, "GET / HTTP/1.1\r\nHost: ") &&
		strings.Contains(request, "User-Agent: x\r\n") && !strings.Contains(request, "secret"), "the request is %q",
		request)
	if body != "<title>A page</title>" || !strings.Contains(head, "\r\nX-Archive-Orig-Content-Encoding: br\r\n") ||
		strings.Contains(head, "\r\nContent-Encoding") || !strings.Contains(head, "\r\nContent-Length: 21\r\n") {
		t.Errorf("the page is %q with the header %q", body, head)
	}
	head, body, _ = page(t, o.Archive.Dir, "http://static.test/a.css")
	assert.True(t, body == "body { color: red }" && !strings.Contains(head, "Injected"),
		"the style sheet is %q with the header %q", body, head)
	facts := metadata(t, o.Archive.Dir)
	if of := facts[url]; !strings.Contains(of, "fetcher: farm-1\r\n") || !strings.Contains(of, "robots: allowed") {
		t.Errorf("the facts of the page are %q", of)
	}
	assert.Equal(t, facts["http://static.test/a.css"], "captured-with: "+url+"\r\nfetcher: farm-1\r\n",
		"the facts of the style sheet")
}

// TestRequisitesOfFetchers: a fetcher gets the requisites of its page, with the Referer that amble itself would send.
func TestRequisitesOfFetchers(t *testing.T) {
	t.Parallel()
	var referer, want string
	withFetcher(t, func(o *Options) {
		o.Archive.Formats = []string{archive.FormatJSONL, warcfiles.Name}
		o.Requisites.Fetch = true
	}, func(r *remoteRun) {
		l := r.lease(remote.Request{Fetcher: "farm-1", N: 1})[0]
		want = l.URL.String()
		assert.Equal(t, l.Header.Get("Referer"), "", "the page has the Referer")
		r.report(remote.Report{
			Fetcher: "farm-1", ID: l.ID, Status: 200, HasBody: true, Body: []byte("<img src=/i.png>"),
			Header:   http.Header{"Content-Type": {"text/html"}},
			Captures: []remote.Capture{{URL: l.URL, OfReport: true}},
		}, remote.Accepted)
		for _, l := range r.lease(remote.Request{Fetcher: "farm-1", N: 1, Wait: time.Hour}) {
			referer = l.Header.Get("Referer")
		}
	})
	assert.Equal(t, referer, want, "the image is leased with the Referer")
}

// TestCapturesOutOfBounds: a report with a capture that cannot have been is refused, and the lease is still out.
func TestCapturesOutOfBounds(t *testing.T) {
	t.Parallel()
	withFetcher(t, func(*Options) {}, func(r *remoteRun) {
		l := r.lease(remote.Request{Fetcher: "x", N: 1})[0]
		for name, captures := range map[string][]remote.Capture{
			"no URL":        {{Status: 200}},
			"no status":     {{URL: l.URL}},
			"a long header": {{URL: l.URL, Status: 200, Header: http.Header{"A": {strings.Repeat("a", 1<<17)}}}},
			"a long request": {{URL: l.URL, OfReport: true,
				Request: http.Header{"A": {strings.Repeat("a", 1<<17)}}}},
			"too many": make([]remote.Capture, remote.MaxCaptures+1),
		} {
			t.Log(name)
			r.report(remote.Report{Fetcher: "x", ID: l.ID, Status: 200, HasBody: true, Captures: captures},
				remote.Invalid)
		}
		r.report(remote.Report{Fetcher: "x", ID: l.ID, Status: 200, HasBody: true}, remote.Accepted)
	})
}

// requestOf returns the request record of a URL.
func requestOf(t testing.TB, dir, url string) (request string) {
	t.Helper()
	eachRecord(t, dir, func(rec *warc.Record) {
		if rec.Type() != warc.TypeRequest || rec.Header.Get(warc.FieldTargetURI) != url {
			return
		}
		b := must.Get(io.ReadAll(rec.Block))(t)
		request = string(b)
	})
	return request
}
