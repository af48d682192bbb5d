package lookup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
)

const site = "site.test"

// fakeCrawl is a crawl that knows one host.
type fakeCrawl struct {
	delay   time.Duration // set by a command
	optOut  *optout.Entry
	visits  []Visit
	urls    map[string]inspect.URLStory
	fetched []string
	read    int // how often the log was read
	err     error
}

func (c *fakeCrawl) Host(_ context.Context, name string) (s inspect.HostStory, err error) {
	if name != site {
		return s, fmt.Errorf("host %s: %w", name, inspect.ErrUnknown)
	}
	s.Requests, s.Bytes = 12, 3456
	s.Politeness = inspect.Politeness{Text: "1s between requests", Delay: 1, DelayReason: "delay"}
	if c.delay > 0 {
		s.Politeness.Delay, s.Politeness.DelayReason = c.delay.Seconds(), politeness.ReasonSetDelay.String()
	}
	s.Origins = []inspect.Origin{{Origin: "https://" + site + ":8443"},
		{Origin: "https://" + site, Next: []string{"https://" + site + "/next"}}}
	if c.optOut != nil {
		s.OptOut = "by " + c.optOut.By
	}
	return s, c.err
}

func (c *fakeCrawl) URL(_ context.Context, u weburl.URL) (inspect.URLStory, error) {
	return c.urls[u.String()], c.err
}

func (c *fakeCrawl) Visits(_ context.Context, _ string, since time.Time, each func(*Visit) error) error {
	c.read++
	for i := range c.visits {
		if v := &c.visits[i]; !v.At.Before(since) {
			if err := each(v); err != nil {
				return err
			}
		}
	}
	return c.err
}

func (c *fakeCrawl) Fetch(_ context.Context, u weburl.URL) error {
	c.fetched = append(c.fetched, u.String())
	return c.err
}
func (c *fakeCrawl) OptOuts(context.Context) ([]crawl.OptOut, error) { return nil, c.err }
func (c *fakeCrawl) AddOptOut(_ context.Context, e optout.Entry) error {
	c.optOut = &e
	return c.err
}

func (c *fakeCrawl) RemoveOptOut(context.Context, optout.Scope, string) error {
	if c.optOut == nil {
		return inspect.ErrUnknown
	}
	c.optOut = nil
	return c.err
}

func (c *fakeCrawl) SetDelay(_ context.Context, _ string, d time.Duration) error {
	c.delay = d
	return c.err
}
func (c *fakeCrawl) Close() error { return nil }

// fakeNames has TXT records.
type fakeNames struct {
	records map[string][]string
	asked   int
}

func (n *fakeNames) LookupTXT(_ context.Context, name string) ([]string, error) {
	n.asked++
	return n.records[name], nil
}

// bench is a look-up with all that is around it.
type bench struct {
	t     *testing.T
	now   time.Time
	dir   string
	crawl *fakeCrawl
	names *fakeNames
	*Lookup
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, now: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC), dir: t.TempDir(),
		crawl: &fakeCrawl{urls: make(map[string]inspect.URLStory)},
		names: &fakeNames{records: make(map[string][]string)}}
	b.open()
	return b
}

// open makes the look-up, as a new process does.
func (b *bench) open() {
	var err error
	b.Lookup, err = New(Options{
		Product: "ambler", Path: "/host", Dir: b.dir, Days: 30, Names: b.names,
		Dial: func(context.Context) (Crawl, error) { return b.crawl, nil },
		Log:  slog.New(slog.DiscardHandler), Now: func() time.Time { return b.now },
	})
	must.Do(b.t, err)
}

// ask sends a request; values are pairs. The client is another one each time, so that none is refused for its number.
func (b *bench) ask(method string, values ...string) (status int, page string) {
	b.t.Helper()
	v := url.Values{}
	for i := 0; i < len(values); i += 2 {
		v.Set(values[i], values[i+1])
	}
	r := httptest.NewRequest(method, "/host?"+v.Encode(), nil)
	if method == http.MethodPost {
		r = httptest.NewRequest(method, "/host", strings.NewReader(v.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.RemoteAddr = fmt.Sprintf("192.0.2.%d:99", 1+rand.IntN(250))
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	assert.Equal(b.t, w.Header().Get("Cache-Control"), "no-store", "what a host may see can be cached")
	if _, err := html.Parse(strings.NewReader(w.Body.String())); err != nil {
		b.t.Error(err)
	}
	return w.Code, w.Body.String()
}

// prove returns a key that the DNS of the site proves.
func (b *bench) prove() (key string) {
	b.t.Helper()
	_, page := b.ask("GET", "host", site)
	key = regexp.MustCompile(`key=([A-Z2-7]{26})"`).FindStringSubmatch(page)[1]
	_, page = b.ask("GET", "host", site, "key", key)
	token := regexp.MustCompile(`value <code>([a-z2-7]{32})<`).FindStringSubmatch(page)[1]
	b.names.records["_crawler-proof."+site+"."] = []string{"v=spf1 -all", token}
	b.now = b.now.Add(retryDNS)
	return key
}

// TestOnlyTheSiteSees: without a proof only counts can be seen and nothing can be done, and the key of one visitor is
// of no use with the token of another.
func TestOnlyTheSiteSees(t *testing.T) {
	b := newBench(t)
	b.crawl.visits = []Visit{{At: b.now, Method: "GET", URL: "https://site.test/secret", Kind: "page", Status: 200}}
	hidden := func(what string, page string) {
		t.Helper()
		assert.True(t, !strings.Contains(page, "/secret") && !strings.Contains(page, "/next") &&
			!strings.Contains(page, "Slow down"), "%s shows what only the site may see:\n%s", what, page)
	}
	_, page := b.ask("GET", "host", site)
	hidden("a visitor", page)
	assert.Contains(t, page, "12 requests and 3456 bytes", "no counts")
	mine, other := newKey(), newKey()
	_, page = b.ask("GET", "host", site, "key", mine)
	hidden("a key without a token", page)
	b.names.records["_crawler-proof."+site+"."] = []string{tokenOf(site, other)}
	b.now = b.now.Add(retryDNS)
	_, page = b.ask("GET", "host", site, "key", mine)
	hidden("another visitor's token", page)
	for _, action := range []string{"slow", "stop", "erase", "resume", "usual"} {
		status, page := b.ask("POST", "host", site, "key", mine, "action", action, "seconds", "60")
		assert.Equal(t, status, 403, action, "without a proof: status", page)
	}
	assert.True(t, b.crawl.delay == 0 && b.crawl.optOut == nil && b.crawl.read == 0,
		"something was done without a proof: %+v", b.crawl)
	_, page = b.ask("GET", "host", site, "key", other)
	assert.True(t, strings.Contains(page, "/secret") && strings.Contains(page, "/next"),
		"the site does not see its requests:\n%s", page)
	delete(b.names.records, "_crawler-proof."+site+".")
	b.now = b.now.Add(proofLife)
	_, page = b.ask("GET", "host", site, "key", other)
	hidden("a token that is gone", page)
}

// TestProofByFile: the file is fetched at most once in ten minutes whoever asks, and proves by its content.
func TestProofByFile(t *testing.T) {
	b := newBench(t)
	key := newKey()
	token := tokenOf(site, key)
	file := "https://site.test/.well-known/crawler-proof-" + token[:8] + ".txt"
	b.ask("POST", "host", site, "key", key, "action", "check")
	b.ask("POST", "host", site, "key", newKey(), "action", "check")
	must.True(t, len(b.crawl.fetched) == 1 && b.crawl.fetched[0] == file, "fetched %v, want %s once", b.crawl.fetched,
		file)
	story := inspect.URLStory{Known: true}
	story.State, story.Status, story.LastFetched = "fetched", 200, b.now
	for _, c := range []struct {
		digest string
		proven bool
	}{{"", false}, {"sha256:0000000000000000", false}, {digestsOf(tokenOf("other.test", key))[0], false},
		{digestsOf(token)[0], true}, {digestsOf(token)[1], true}, {digestsOf(token)[2], true}} {
		story.Digest = c.digest
		b.crawl.urls[file] = story
		if _, page := b.ask("GET", "host", site, "key", key); strings.Contains(page, "Proven by file") != c.proven {
			t.Errorf("digest %q: want proven %v\n%s", c.digest, c.proven, page)
		}
	}
	for name := range b.crawl.urls { // the same at another port
		b.crawl.urls = map[string]inspect.URLStory{strings.Replace(name, site, site+":8443", 1): story}
	}
	_, page := b.ask("GET", "host", site, "key", key)
	assert.True(t, !strings.Contains(page, "Proven"), "a file at another port proves")
	b.crawl.urls = map[string]inspect.URLStory{file: story}
	b.now = b.now.Add(fileLife)
	if _, page := b.ask("GET", "host", site, "key", key); strings.Contains(page, "Proven") {
		t.Error("a file proves for ever")
	}
	b.ask("POST", "host", site, "key", key, "action", "check")
	assert.Equal(t, len(b.crawl.fetched), 2, "a day later the file is not fetched again", b.crawl.fetched)
}

// TestHostileVisitors: whatever is asked costs an answer, and no look-up of a name that visitors make up.
func TestHostileVisitors(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("a", 300)
	for _, name := range []string{"a/b", "a?b", "a@b", "a:80", "[::1", "..", "%00", "\x00", long, "a b", "<script>",
		"http://x"} {
		status, page := b.ask("GET", "host", name)
		assert.True(t, status == 422 && !strings.Contains(page, "<script>"), "host %q: status %d", name, status)
	}
	for range 5 {
		b.ask("GET", "host", "victim.example", "key", newKey())
		b.ask("POST", "host", "victim.example", "key", newKey(), "action", "check")
	}
	assert.True(t, b.names.asked == 0 && len(b.crawl.fetched) == 0,
		"for hosts that the crawl does not know: %d names looked up, %v fetched", b.names.asked, b.crawl.fetched)
	status, _ := b.ask("GET", "host", site, "key", "x")
	assert.True(t, status == 422, "a key that is none: status %d", status)
	if status, _ := b.ask("POST", "host", site, "pad", strings.Repeat("x", 2*maxForm)); status != 400 {
		t.Errorf("a large form: status %d", status)
	}
	if status, _ := b.ask("DELETE", "host", site); status != 405 {
		t.Errorf("DELETE: status %d", status)
	}
	b.crawl.err = errors.New("a secret of the machine")
	if status, page := b.ask("GET", "host", site); status != 503 || strings.Contains(page, "secret") {
		t.Errorf("a crawl that fails: status %d\n%s", status, page)
	}
	client := func() int { // one client
		r := httptest.NewRequest("POST", "/host", strings.NewReader("host=site.test"))
		r.RemoteAddr = "198.51.100.7:1"
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		return w.Code
	}
	last := 0
	for range changeBurst + 1 {
		last = client()
	}
	assert.Equal(t, last, http.StatusTooManyRequests, "a client that asks for much: status")
}

// TestWishes: whatever a site asks for in any order, also across restarts and lines that a crash cut off, the crawl
// does what was asked for last, never requests more often than before, and has what its operator had set when all is
// taken back.
func TestWishes(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		b := newBench(t)
		own := time.Duration(random.IntN(3)) * 20 * time.Second // of the crawl's operator
		b.crawl.delay = own
		closed := random.IntN(3) == 0
		if closed {
			b.crawl.optOut = &optout.Entry{By: "the operator"}
		}
		key := b.prove()
		slow, stopped := time.Duration(0), false
		for range 12 {
			least := max(own, slow, time.Second)
			switch random.IntN(7) {
			case 0:
				slow = least + time.Duration(1+random.IntN(50))*time.Second
				b.ask("POST", "host", site, "key", key, "action", "slow", "seconds",
					strconv.FormatFloat(slow.Seconds(), 'f', -1, 64))
			case 1:
				for _, text := range []string{fmt.Sprint(least.Seconds()), "0", "-1", "NaN", "Inf", "1e99", "x", ""} {
					status, _ := b.ask("POST", "host", site, "key", key, "action", "slow", "seconds", text)
					assert.Equal(t, status, 422, "a delay of", text, "beside", least, "status")
				}
			case 2:
				slow = 0
				b.ask("POST", "host", site, "key", key, "action", "usual")
			case 3, 4:
				stopped = true
				b.ask("POST", "host", site, "key", key, "action", []string{"stop", "erase"}[random.IntN(2)])
			case 5:
				stopped = false
				b.ask("POST", "host", site, "key", key, "action", "resume")
			case 6:
				b.restart(random)
			}
			want := max(own, slow)
			must.True(t, b.crawl.delay == want, "seed %d: the delay is %v, want %v", seed, b.crawl.delay, want)
			if (b.crawl.optOut != nil) != (stopped || closed) || closed && b.crawl.optOut.By != "the operator" {
				t.Fatalf("seed %d: opt-out %+v, want stopped %v, by the operator %v", seed, b.crawl.optOut, stopped,
					closed)
			}
		}
	}
}

// restart opens the look-up again, maybe behind a line that a crash cut off.
func (b *bench) restart(random *rand.Rand) {
	b.t.Helper()
	if path := filepath.Join(b.dir, FileName); random.IntN(2) == 0 {
		f := must.Get(os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))(b.t)
		must.Get(io.WriteString(f, `{"at":"2026-11-28T`))(b.t)
		must.Do(b.t, f.Close())
	}
	b.open()
}

// TestReport: the newest requests with their gaps and causes; the log is not read again at once.
func TestReport(t *testing.T) {
	b := newBench(t)
	for i := range 500 {
		gap := 2 + float64(i%7)
		b.crawl.visits = append(b.crawl.visits, Visit{
			At: b.now.Add(time.Duration(i-500) * time.Minute), Method: "GET",
			URL: fmt.Sprintf("https://site.test/%d", i%300), Kind: "page", Status: 200, Bytes: 10, Gap: &gap, Delay: 2,
			Reason: "crawl-delay", DelayText: "Crawl-delay: 2", Rule: "Allow: /<b>", RuleLine: 3,
		})
	}
	b.crawl.urls["https://site.test/199"] = inspect.URLStory{URL: inspect.URL{Via: "https://site.test/list"}}
	key := b.prove()
	_, page := b.ask("GET", "host", site, "key", key)
	for _, want := range []string{
		"<dd>500 since 2026-11-28 03:40:00 UTC", "5000 bytes", "2.000 s, when the delay in force was 2 s",
		"The newest 200", "2 s, crawl-delay: Crawl-delay: 2", "line 3: Allow: /&lt;b&gt;",
		"<td>found on https://site.test/list; requested again</td>"} {
		assert.Contains(t, page, want, "the page lacks")
	}
	n := strings.Count(page, "<td>GET ")
	assert.True(t, n == 200 && strings.Contains(page, "/199<") && !strings.Contains(page, "<b>"), "%d rows", n)
	b.ask("GET", "host", site, "key", key)
	assert.Equal(t, b.crawl.read, 1, "the log was read times")
	_, page = b.ask("GET", "host", site, "key", key, "find", "test/299")
	if n := strings.Count(page, "<td>GET "); n != 1 || !strings.Contains(page, "/299<") {
		t.Errorf("%d rows for a URL that is not among the newest", n)
	}
	status, lines := b.ask("GET", "host", site, "key", key, "as", "lines")
	if n := strings.Count(lines, "\n"); status != 200 || n != 500 ||
		!strings.HasPrefix(lines, `{"at":"2026-11-28T03:40:00Z`) {
		t.Errorf("status %d, %d lines: %.200s", status, n, lines)
	}
	for range 2 * readBurst {
		status, _ = b.ask("GET", "host", site, "key", key, "as", "lines")
	}
	assert.True(t, status == 503 && b.crawl.read <= readBurst,
		"status %d, and the log was read %d times for one host at once", status, b.crawl.read)
	if status, lines := b.ask("GET", "host", site, "as", "lines"); status != 403 || strings.Contains(lines, "/299") {
		t.Errorf("without a proof: status %d\n%s", status, lines)
	}
}
