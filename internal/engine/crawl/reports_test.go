package crawl

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/recovery"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// withFetcher runs a test with a crawl of one page that only fetchers fetch, in virtual time. It
// returns what the crawl and its output have of the page at the end.
func withFetcher(t *testing.T, set func(*Options), test func(r *remoteRun)) (o storage.Outcome, lines []line) {
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", nil, nil)}})
		options := testOptions(t, web)
		options.Workers, options.ExitWhenDone = 0, false
		set(&options)
		r := startRemote(t, options, web.URL("a.test", "/"))
		test(r)
		r.end()
		o, lines = stored(t, options.DataDir)[web.URL("a.test", "/")],
			outputLines(t, options.Archive.Dir)[web.URL("a.test", "/")]
	})
	return o, lines
}

// TestLeaseRunsOutAgainAndAgain: a URL whose leases run out is leased again, as often as a URL that
// fails is fetched, and fails then.
func TestLeaseRunsOutAgainAndAgain(t *testing.T) {
	t.Parallel()
	got, lines := withFetcher(t, func(o *Options) { o.Frontier.MaxAttempts = 3 }, func(r *remoteRun) {
		for i := range 3 {
			began := time.Now()
			leases := r.lease(remote.Request{Fetcher: "x", N: 1, Wait: time.Minute, Visibility: 10 * time.Second})
			assert.True(t, len(leases) == 1 && time.Since(began) <= 12*time.Second, "lease %d: %v after %v", i, leases,
				time.Since(began))
		}
		assert.AtMost(t, len(r.lease(remote.Request{Fetcher: "x", N: 1, Wait: time.Hour})), 0,
			"was leased after 3 attempts")
	})
	assert.True(t, got.State == storage.Failed && got.Reason == storage.ReasonLeaseLost && got.Attempts == 3 &&
		got.Note == "x", "its outcome is %+v", got)
	assert.True(t, len(lines) == 1 && lines[0].Reason == "lease_lost" && lines[0].Note == "x" && lines[0].Attempts == 3,
		"the output is %+v, want one line with the reason and the fetcher", lines)
}

// TestReportTypes: a reported page of a type that fetch.content_types leaves out ends as if amble had
// fetched it.
func TestReportTypes(t *testing.T) {
	t.Parallel()
	for contentType, want := range map[string]storage.State{
		"text/html": storage.Fetched, "": storage.Fetched, "video/mp4": storage.Failed,
		"Video/MP4; codecs=x": storage.Failed,
	} {
		got, _ := withFetcher(t, func(o *Options) { o.Fetch.ContentTypes = []string{"text/*"} }, func(r *remoteRun) {
			l := r.lease(remote.Request{Fetcher: "x", N: 1})[0]
			r.report(remote.Report{
				Fetcher: "x", ID: l.ID, Status: 200, Header: http.Header{"Content-Type": {contentType}}, HasBody: true,
				Body: []byte("x"),
			}, remote.Accepted)
		})
		if got.State != want || want == storage.Failed && got.Reason != reasonFor(fetch.KindTypeNotWanted) {
			t.Errorf("%q: %+v, want %s", contentType, got, want)
		}
	}
}

// TestDeathsByReports: a page is set aside after the third death during the work on a report of it.
func TestDeathsByReports(t *testing.T) {
	t.Parallel()
	const u = "http://a.test/x"
	o := known(t, u)
	out := func(kind string) starts.Start {
		start := pageOut(t, u)
		start.Note = fmt.Sprintf("%s,1,,ID/farm/%d,%s", kind, time.Now().Add(time.Hour).UnixMilli(), u)
		return start
	}
	for i := range recovery.FatalDeaths {
		s := stored(t, o.DataDir)[u].State
		must.True(t, s != storage.Failed, "it is %s after %d deaths", s, i)
		die(t, o.DataDir, boot.ID(), false, out(remote.NoteLease), out(remote.NoteReport))
		reopen(t, o)
	}
	got := stored(t, o.DataDir)[u]
	assert.True(t, got.State == storage.Failed && got.Reason == storage.ReasonCrash, "its outcome is %+v", got)
}

// TestDeathsDuringLeases: a page that is only leased at a death had no part in it.
func TestDeathsDuringLeases(t *testing.T) {
	t.Parallel()
	const u = "http://a.test/x"
	o := known(t, u)
	for range recovery.FatalDeaths + 1 {
		start := pageOut(t, u)
		start.Note = fmt.Sprintf("%s,1,,ID/farm/%d,%s", remote.NoteLease, time.Now().Add(time.Hour).UnixMilli(), u)
		die(t, o.DataDir, boot.ID(), false, start)
		reopen(t, o)
	}
	assert.Equal(t, stored(t, o.DataDir)[u].State, storage.Queued, "its outcome")
}

// falseReports are those of fetchers that lie, and what becomes of them.
func falseReports() map[string]struct {
	change func(*remote.Report)
	want   remote.Result
} {
	type lie = struct {
		change func(*remote.Report)
		want   remote.Result
	}
	header := func(name string, values ...string) func(*remote.Report) {
		return func(r *remote.Report) { r.Header[name] = values }
	}
	many := func(n int, text string) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = text
		}
		return list
	}
	next := func(at time.Time) func(*remote.Report) { return func(r *remote.Report) { r.Next = &at } }
	return map[string]lie{
		"a time before the request": {func(r *remote.Report) { r.Took = math.MinInt64 }, remote.Accepted},
		"a time without end":        {func(r *remote.Report) { r.Took = math.MaxInt64 }, remote.Accepted},
		"no status":                 {func(r *remote.Report) { r.Status = 0 }, remote.Accepted}, // of no known kind
		"status 103":                {func(r *remote.Report) { r.Status = 103 }, remote.Invalid},
		"status -200":               {func(r *remote.Report) { r.Status = -200 }, remote.Invalid},
		"status 600":                {func(r *remote.Report) { r.Status = 600 }, remote.Invalid},
		"not modified since never":  {func(r *remote.Report) { r.Status = 304 }, remote.Accepted},
		"an unknown failure":        {func(r *remote.Report) { r.Status, r.Failure = 0, 255 }, remote.Invalid},
		"a huge body":               {func(r *remote.Report) { r.Body = make([]byte, 64<<20+1) }, remote.Invalid},
		"a body beyond the page's":  {func(r *remote.Report) { r.Body = make([]byte, 1<<20) }, remote.Accepted},
		"a megabyte of fields":      {header("X-A", strings.Repeat("x", 1<<20)), remote.Invalid},
		"many fields":               {header("X-A", many(20_000, "")...), remote.Invalid},
		"no names of fields":        {header("\x00 a\r\nb:", "x\r\nSet-Cookie: a=b", "\x00"), remote.Accepted},
		"a length":                  {header("Content-Length", "-1"), remote.Accepted},
		"an encoding":               {header("Content-Encoding", "gzip"), remote.Accepted},
		"a page to wait for": {func(r *remote.Report) {
			r.Status, r.Header["Retry-After"] = 503,
				[]string{"-5", "99999999999999999999", "Thu, 01 Jan 1970 00:00:00 GMT"}
		}, remote.Accepted},
		"a redirect to a file": {func(r *remote.Report) {
			r.Status, r.Header["Location"] = 302, []string{"file:///etc/passwd", "http://127.0.0.1/"}
		}, remote.Accepted},
		"too many links": {func(r *remote.Report) {
			r.HasBody, r.Body, r.Links = false, nil,
				many(remote.MaxReportLinks+1, "/0")
		}, remote.Invalid},
		"odd links": {func(r *remote.Report) {
			r.HasBody, r.Body = false, nil
			r.Links = []string{"javascript:alert(1)", "http://\x00/", "//", "http://other.test/",
				"http://u:p@a.test/0", "\xff",
				strings.Repeat("/x", 1<<19), "http://[::1", "http://169.254.169.254/", "http://a.test:99999/"}
		}, remote.Accepted},
		"a title of a megabyte": {func(r *remote.Report) {
			r.HasBody, r.Body, r.Title = false, nil,
				strings.Repeat("\xff\xc3", 1<<19)
		}, remote.Accepted},
		"due in the past":      {next(time.Unix(math.MinInt32, 0)), remote.Accepted},
		"due at no time":       {next(time.Unix(math.MaxInt64, 0)), remote.Accepted},
		"no name":              {func(r *remote.Report) { r.Fetcher = "../x" }, remote.Invalid},
		"another's name":       {func(r *remote.Report) { r.Fetcher = "y" }, remote.Foreign},
		"no lease":             {func(r *remote.Report) { r.ID = "../x" }, remote.Unknown},
		"a lease of no length": {func(r *remote.Report) { r.ID = remote.ID(make([]byte, 1<<20)) }, remote.Unknown},
		"a lease of nothing":   {func(r *remote.Report) { r.ID = "" }, remote.Invalid},
	}
}

// TestLies: whatever a report says costs its own URL at most. The delay of the host begins when the
// report comes, the URLs of other hosts stay out of scope, and what is refused leaves the lease out.
func TestLies(t *testing.T) {
	t.Parallel()
	const delay = 2 * time.Second
	all := falseReports()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", nil, nil)}})
		o := testOptions(t, web)
		o.Workers, o.ExitWhenDone, o.Frontier.Politeness.Delay, o.Fetch.MaxBody = 0, false, delay, 64<<10
		var seeds []string
		for i := range len(all) {
			seeds = append(seeds, web.URL("a.test", fmt.Sprintf("/%d", i)))
		}
		r := startRemote(t, o, seeds...)
		ended := time.Time{}
		for name, lie := range all {
			l := r.lease(remote.Request{Fetcher: "x", N: 1, Visibility: time.Hour})
			must.True(t, len(l) == 1 && time.Since(ended) >= delay, "before %s: %d leases %v after the last report",
				name, len(l), time.Since(ended))
			truth := func() remote.Report {
				return remote.Report{Fetcher: "x", ID: l[0].ID, Status: 200,
					Header:  http.Header{"Content-Type": {"text/html"}},
					HasBody: true, Body: []byte("<title>x</title>")}
			}
			report := truth()
			lie.change(&report)
			t.Log(name)
			if r.report(report, lie.want); lie.want != remote.Accepted {
				time.Sleep(delay * 2)
				assert.AtMost(t, len(r.lease(remote.Request{Fetcher: "x", N: 1, Wait: time.Second})), 0, name,
					"is leased, and a request is in flight")
				r.report(truth(), remote.Accepted)
			}
			ended = time.Now()
		}
		r.end()
		for u := range stored(t, o.DataDir) {
			assert.True(t, strings.HasPrefix(u, "http://a.test"), "%s is in the frontier", u)
		}
	})
}
