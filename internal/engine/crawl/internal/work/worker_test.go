package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/crashes"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/tally"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/hostsort"
	"github.com/amble-crawler/amble/internal/rules/consent"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// TestUsageCost: a page that states nothing costs no allocation.
func TestUsageCost(t *testing.T) {
	w := new(Worker)
	w.o, w.directives = &Options{}, consent.KnownDirectives()
	file := robots.Compile([]byte("User-agent: *\nDisallow: /a\n"), "amble")
	res := &Result{Lease: frontier.Lease{Rules: file}}
	header, d := http.Header{"Content-Type": {"text/html"}}, extract.Directives{}
	w.consent = func() consent.Policy { return consent.Policy{} }
	note := func() { w.noteUsage(res, header, &archive.Page{}, &d, weburl.URL{}) }
	if n := testing.AllocsPerRun(100, note); n > 0 || res.keptUsage != "" {
		t.Errorf("%g allocations", n)
	}
	text := strings.Repeat("a", 2*maxStatement)
	assert.True(t, len(longUsage(text)) <= maxStatement+3, "a long statement is not cut")
}

func longUsage(text string) string {
	usage, _ := usageOf([]consent.Statement{{Preferences: consent.ParseReservation("1"), Text: text}})
	return usage["tdm"].From
}

// TestLookupThatPanics: it fails for its host, which is kept with the panic.
func TestLookupThatPanics(t *testing.T) {
	w := new(Worker)
	w.o, w.log, w.tally = &Options{Now: time.Now}, slog.New(slog.DiscardHandler), new(tally.Tally)
	w.crashes = &crashes.Files{Dir: filepath.Join(t.TempDir(), "crashes")}
	report := w.Resolve(t.Context(), "bomb.test", false) // there is no client
	assert.True(t, report.Reason == storage.ReasonCrash && !report.End.IsZero(), "report %+v", report)
	files, err := os.ReadDir(w.crashes.Dir)
	must.True(t, err == nil && len(files) == 1, "%v, %v", files, err)
	text, err := os.ReadFile(filepath.Join(w.crashes.Dir, files[0].Name()))
	assert.True(t, err == nil && strings.Contains(string(text), "host: bomb.test\n"), "%v:\n%s", err, text)
}

// TestParsersAreNotWaitedForAtTheEnd: who waits for his turn to parse when the crawl has to end
// gives up.
func TestParsersAreNotWaitedForAtTheEnd(t *testing.T) {
	w := new(Worker)
	w.o, w.parsers = new(Options), make(Parsers) // all are taken
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	page := testkit.Parse(t, "http://a.test/")
	_, err := w.html(ctx, &fetch.Response{Body: spool.Of([]byte("<p>"))}, page, extract.Options{})
	assert.Is(t, err, context.Canceled)
	in := &checkedReader{ctx: ctx, r: strings.NewReader("<urlset>")}
	if n, err := in.Read(make([]byte, 10)); n > 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("a list is read on: %d bytes, %v", n, err)
	}
}

// noFingerprints is a store whose fingerprints nobody compares.
type noFingerprints struct{}

func (noFingerprints) Fingerprint(weburl.URL) uint64 { return 0 }

// TestSitemapOfLongURLs: the URLs of a list go to those sorted by host at a bounded number of bytes
// too, and these are committed when their memory is used up.
func TestSitemapOfLongURLs(t *testing.T) {
	t.Parallel()
	const memory = 4 << 20
	room := hostsort.NewWorkspace(nil, hostsort.Options{Memory: memory})
	commits, committed := 0, 0
	commit := func(_ context.Context, rows lists.Rows) (lists.Added, error) {
		commits, committed = commits+1, committed+len(rows.Found)
		return lists.Added{Results: make([]storage.InsertResult, len(rows.Found))}, nil
	}
	res := &Result{findings: findings{Found: make([]storage.Found, 1)}}
	res.Lease.Head.Sitemap, res.Lease.Head.Depth = true, maxNesting // take adds nothing to found
	taker := listTaker{
		reading: new(reading), res: res,
		order: lists.Committer{Store: noFingerprints{}, Sorter: room.NewSorter(true), Commit: commit},
	}
	u := testkit.Parse(t, "http://maps.test/"+strings.Repeat("x", 2000))
	const items = 3 * listBatch
	for range items {
		res.Found = append(res.Found, storage.Found{URL: u})
		must.Do(t, taker.take(t.Context(), &extract.Item{URL: u, Role: extract.RoleSitemap}))
		if held, _ := room.Held(); held > memory || len(res.Found) > 1+listBytes/len(u.String()) {
			t.Fatalf("%d bytes are held, and %d URLs wait for the outcome", held, len(res.Found))
		}
	}
	must.Do(t, taker.commit(t.Context()))
	if n := committed + len(res.Found); n != items+1 || commits < items*2000/memory/2 {
		t.Errorf("%d URLs in %d commits, want %d URLs", n, commits, items+1)
	}
	held, _ := room.Held()
	assert.True(t, held == 0, "%d bytes are held", held)
}

// TestRefusedRobots: a refusal in place of a good robots.txt counts as that of the wall which the host is
// behind, although nothing in it says so, and not as the end of the file, however often it comes.
func TestRefusedRobots(t *testing.T) {
	t.Parallel()
	var known wall.State
	for i := uint16(1); known.Verdict().Stand != wall.Walled && i < 100; i++ {
		known.Observe(time.Unix(int64(i), 0), wall.Answer{Status: 403, Section: i, Top: i})
	}
	const file = "User-agent: *\nDisallow: /"
	for _, test := range []struct {
		wall     *wall.State
		previous robots.Class
		status   int
		body     string
		want     robots.Failure
	}{
		{&known, robots.ClassFound, 403, "no", robots.FailureWall},
		{&known, robots.ClassFound, 429, file, robots.FailureWall},
		{&known, robots.ClassFound, 200, file, robots.FailureNone},
		{&known, robots.ClassFound, 404, "no", robots.FailureNone},
		{&known, robots.ClassUnavailable, 403, "no", robots.FailureNone},
		{nil, robots.ClassFound, 403, "no", robots.FailureNone},
	} {
		job := frontier.RobotsJob{Previous: robots.Record{Copy: test.previous}}
		u := testkit.Parse(t, "http://a.test/robots.txt")
		res := Result{Lease: frontier.Lease{URL: u, Wall: test.wall, Robots: &job}}
		j := judging{marks: wall.NewMarks()}
		out := j.robotsOutcome(&res, &fetch.Response{Status: test.status, Body: spool.Of([]byte(test.body))}, nil)
		assert.Equal(t, out.Failure, test.want, test, "failure")
	}
}

// TestTDMCache: what is kept in memory of any number of files is bounded.
func TestTDMCache(t *testing.T) {
	big := must.Get(consent.ParseTDMFile(
		[]byte(`[{"location": "/` + strings.Repeat("a", 4000) + `", "tdm-reservation": 1}]`)))(t)
	var f declaredFiles[weburl.Origin, consent.TDMFile]
	for i := range 3 * maxDeclared {
		of := testkit.Parse(t, fmt.Sprintf("http://h%d.test/", i)).Origin()
		f.put(of, big)
		got, known := f.find(of)
		must.True(t, known && got.Size() == big.Size(), "a file is not found that was put")
		if sum := len(f.files) * big.Size(); len(f.files) > maxDeclared || f.bytes != sum || sum > maxDeclaredBytes {
			t.Fatalf("%d files of %d bytes, counted as %d", len(f.files), sum, f.bytes)
		}
	}
}

// TestRefusalNote: the price of a 402 and the blocked-by links of a 451 are noted, within bounds.
func TestRefusalNote(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\u00e9", 400)
	for _, test := range []struct {
		status int
		header http.Header
		want   string
	}{
		{402, http.Header{"Crawler-Price": {"USD 0.01"}}, "crawler-price: USD 0.01"},
		{402, http.Header{"Crawler-Max-Price": {"USD 1"}, "Crawler-Error": {"no such plan"}},
			"crawler-max-price: USD 1; crawler-error: no such plan"},
		{402, http.Header{"Crawler-Price": {long}}, "crawler-price: " + long[:240]},
		{403, http.Header{"Crawler-Price": {"USD 0.01"}}, ""},
		{451, http.Header{"Link": {`<https://a.test/>; rel="blocked-by"`}}, "blocked-by: https://a.test/"},
		{451,
			http.Header{"Link": {`<https://b.test/>; rel=next, <https://a.test/x,y>; title="<"; rel="up Blocked-By"`}},
			"blocked-by: https://a.test/x,y"},
		{451, http.Header{"Link": {`<https://a.test/>; rel="not-blocked-by", <<<>>>; rel`, "", "<"}}, ""},
		{451, http.Header{"Link": {strings.Repeat("<>;rel=blocked-by,", 10_000)}},
			strings.TrimSuffix(strings.Repeat("blocked-by: ; ", 8), "; ")},
		{200, nil, ""},
	} {
		assert.Equal(t, refusalNote(&fetch.Response{Status: test.status, Header: test.header}), test.want, test.status,
			test.header)
	}
}
