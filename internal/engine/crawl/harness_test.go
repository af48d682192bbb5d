package crawl

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// TestMain lets the test binary be the crawler or the import that gets killed; see child_test.go
// and import_test.go.
func TestMain(m *testing.M) {
	testkit.BeChild(childDir, crawlAsChild)
	testkit.BeChild(floorChild, fetchAsChild)
	if dir := os.Getenv(importChild); dir != "" {
		os.Exit(runImportChild(dir))
	}
	flag.Parse()
	// The tests wait for crawlers that wait for their hosts: cores do not count.
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	log.SetOutput(io.Discard) // net/http prints what hostile servers send
	goleak.VerifyTestMain(m)
}

// testOptions are those of a crawl of a loopback web.
func testOptions(t testing.TB, web *testweb.Web) Options {
	o := DefaultOptions()
	o.DataDir = t.TempDir()
	o.Archive.Dir = t.TempDir()
	o.Fetch.UserAgent = "amble-test"
	o.Fetch.AllowPrivate = true
	o.Fetch.Resolver = web.ResolverAddr()
	o.MinFree = 0
	o.GiveUpAfter = 2 * time.Second
	o.Frontier.Politeness.Delay = 20 * time.Millisecond
	o.Frontier.RetryDelay = 50 * time.Millisecond
	if web.Virtual() {
		o.Fetch.Dial = web.Dial
		o.Uptime = func() (time.Time, time.Duration) { return time.Now(), time.Since(time.Time{}.AddDate(1998, 0, 0)) }
		o.Storage.NoSync = true // a commit takes no virtual time, so there is one for each page
	}
	return o
}

func testLog(t testing.TB) *slog.Logger {
	level := slog.LevelWarn
	if os.Getenv("AMBLE_TEST_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level}))
}

// parse is a URL by its text.
func parse(t testing.TB, text string) weburl.URL {
	t.Helper()
	return seed(t, text).URL
}

func seed(t testing.TB, text string) Seed {
	t.Helper()
	u := must.Get(weburl.Parse(text))(t)
	return Seed{URL: u, Source: "test"}
}

// seedList are seeds by their texts.
func seedList(t testing.TB, texts ...string) (list []Seed) {
	t.Helper()
	for _, text := range texts {
		list = append(list, seed(t, text))
	}
	return list
}

// startWeb serves sites until the test ends.
func startWeb(t testing.TB, sites ...testweb.Site) *testweb.Web {
	t.Helper()
	return testweb.Serve(t, testweb.Config{Sites: sites})
}

// site is a host whose root links to all its other pages. Routes that are given
// replace pages of the same path, or are added.
func site(host, robots string, pages []string, routes testweb.Routes) testweb.Site {
	all := testweb.Routes{"/robots.txt": testweb.Robots(robots), "/": testweb.Page(host, pages...)}
	for _, path := range pages {
		all[path] = testweb.Page(path)
	}
	maps.Copy(all, routes)
	return testweb.Site{Host: host, Handler: all}
}

// paths are the numbered paths under a folder.
func paths(folder string, n int) (all []string) {
	for i := range n {
		all = append(all, folder+string(rune('a'+i/26))+string(rune('a'+i%26)))
	}
	return all
}

// patience is how long a test waits for what has to come.
const patience = testkit.Patience

// crawlFor runs a crawl in o.DataDir until it is done, or stops it after a while.
func crawlFor(t testing.TB, o Options, limit time.Duration, seeds ...string) (Summary, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	e := must.Get(Open(o, testLog(t)))(t)
	list := seedList(t, seeds...)
	sum, err := e.Run(ctx, list)
	assert.NoError(t, e.Close())
	return sum, err
}

// crawl runs a crawl until it is done.
func crawl(t testing.TB, o Options, seeds ...string) Summary {
	t.Helper()
	limit := patience
	if o.Fetch.Dial != nil { // a network in memory: the time is virtual
		limit = 365 * 24 * time.Hour // which passes in seconds
	}
	sum := must.Get(crawlFor(t, o, limit, seeds...))(t)
	must.True(t, !sum.Stopped(), "the crawl does not end: %+v", sum)
	return sum
}

// stored reads what the store says of every URL.
func stored(t testing.TB, dir string) map[string]storage.Outcome {
	t.Helper()
	s := must.Get(storage.Open(dir, storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	all := make(map[string]storage.Outcome)
	must.Do(t, s.Hosts(func(h *storage.Host) error {
		next, err := s.URLs(h.ID, 0, 1<<30, func(head storage.Head) {
			all[h.Queues[head.Origin].Origin.URL(head.RequestURI).String()] = head.Last
		})
		assert.Equal(t, next, h.Tail, h.Name, "URLs can be read, there")
		return err
	}))
	return all
}

// commitTo commits to the store of a crawl that does not run what fill puts into the batch.
func commitTo(t testing.TB, o Options, fill func(*storage.Store, *storage.Batch)) {
	t.Helper()
	s, err := storage.Open(o.DataDir, storage.Options{})
	must.Do(t, err)
	var b storage.Batch
	fill(s, &b)
	_, err = s.Commit(&b)
	must.Do(t, errors.Join(err, s.Close()))
}

// readHost reads a host from the store in a directory.
func readHost(t testing.TB, dir, name string, read func(*storage.Store, *storage.Host) error) {
	t.Helper()
	s := must.Get(storage.Open(dir, storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	h, err := s.HostByName(name)
	if err == nil {
		err = read(s, &h)
	}
	must.Do(t, err)
}

// line is what the tests look at in a line of output.
type line struct {
	URL              string   `json:"url"`
	Status           int      `json:"status"`
	Reason           string   `json:"reason"`
	Note             string   `json:"note"`
	Redirect         string   `json:"redirect"`
	Tags             []string `json:"tags"`
	Attempts         int      `json:"attempts"`
	Truncated        bool     `json:"truncated"`
	Extracted        string   `json:"extracted"`
	Kind             string   `json:"kind"`
	Canonical        string   `json:"canonical"`
	Robots           []string `json:"robots"`
	NoIndex          bool     `json:"noindex"`
	UnavailableAfter string   `json:"unavailable_after"`
	Preferences      []string `json:"preferences"`

	Usage    map[string]archive.Usage `json:"usage"`
	Licenses []string                 `json:"licenses"`

	Digest       string `json:"digest"`
	Changed      *bool  `json:"changed"`
	DigestBefore string `json:"digest_before"`

	Fields map[string]any `json:"fields"`
}

// outputLines reads the output files by URL.
func outputLines(t testing.TB, dir string) map[string][]line {
	t.Helper()
	files := must.Get(filepath.Glob(filepath.Join(dir, "pages-*")))(t)
	all := make(map[string][]line)
	for _, name := range files {
		if strings.HasSuffix(name, ".unmarked") {
			continue // set aside: no commit knows of it
		}
		f := must.Get(os.Open(name))(t)
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var l line
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				t.Errorf("%s: %q: %v", name, lines.Bytes(), err)
			}
			all[l.URL] = append(all[l.URL], l)
		}
		must.Do(t, errors.Join(lines.Err(), f.Close()))
	}
	return all
}

// requested reports whether an outcome is final and that of a request.
func requested(o storage.Outcome) bool {
	switch o.State {
	case storage.Fetched, storage.Redirected:
		return true
	case storage.Failed:
		return o.Reason != reasonFor(fetch.KindDNSNotFound) && o.Reason != reasonFor(fetch.KindBlockedAddress)
	}
	return false
}

// checkOutput holds the output against the store: a URL that was answered, or
// given up after requests, has one line, and any other has none.
func checkOutput(t testing.TB, o Options) {
	t.Helper()
	lines := outputLines(t, o.Archive.Dir)
	for u, outcome := range stored(t, o.DataDir) {
		want := 0
		if requested(outcome) {
			want = 1
		}
		got := lines[u]
		delete(lines, u)
		if len(got) != want {
			t.Errorf("%s is %s and has %d lines of output, want %d", u, outcome.State, len(got), want)
		} else if want == 1 && got[0].Status != int(outcome.Status) {
			t.Errorf("%s: the output says status %d, the store %d", u, got[0].Status, outcome.Status)
		}
	}
	if len(lines) > 0 {
		t.Errorf("in the output and not in the store: %v", slices.Collect(maps.Keys(lines)))
	}
	if o.Archive.Has(warcfiles.Name) {
		checkArchive(t, o)
	}
}

// checkStates compares the states of all URLs with those that are expected,
// by host and path.
func checkStates(t testing.TB, o Options, want map[string]storage.State) {
	t.Helper()
	got := make(map[string]storage.State)
	for text, outcome := range stored(t, o.DataDir) {
		u := must.Get(weburl.Parse(text))(t)
		got[u.Host()+u.RequestURI()] = outcome.State
	}
	for key, state := range want {
		s, known := got[key]
		assert.True(t, known && s == state, "%s is %s (known: %t), want %s", key, s, known, state)
		delete(got, key)
	}
	assert.AtMost(t, len(got), 0, "not", got)
}

// checkPolite reports gaps at the server that are shorter than least, and pages
// that were requested before the robots.txt of their host. When a client went
// away the server knows a little late; there the start of the request counts.
func checkPolite(t testing.TB, log testweb.Log, least time.Duration) {
	t.Helper()
	for _, host := range log.Hosts() {
		for _, g := range log.Host(host).ShortGaps(least) {
			if g.Before.Aborted && g.After.Start.Sub(g.Before.Start) >= least {
				continue
			}
			t.Errorf("%s: %v between %s and %s, want %v", host, g.Length, g.Before.Path, g.After.Path, least)
		}
	}
	for _, q := range log.BeforeRobots() {
		t.Errorf("%s%s was requested before the robots.txt", q.Host, q.Path)
	}
}

// answered waits until the web is done with all requests, also with those that the crawler broke off
// and the web has not read yet.
func answered(t *testing.T, web *testweb.Web) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must.Do(t, web.Settle(ctx))
}

// reasonFor returns the name that the store has for a kind of failure.
func reasonFor(k fetch.Kind) storage.Reason { return storage.ReasonFetch + storage.Reason(k) }
