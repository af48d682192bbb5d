package crawl

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/unicode"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// closePrivate is the robots.txt of most tests. Its second line decides.
const closePrivate = "User-agent: *\nDisallow: /private/\n"

// reach says how much of a robotsSite a polite crawler requests.
type reach uint8

const (
	reachesAll  reach = iota // everything is allowed
	reachesOpen              // /private/ is denied
	reachesNone              // nothing but robots.txt may be requested
)

// pages are the pages of a robotsSite that are requested, sorted.
func (r reach) pages() []string {
	switch r {
	case reachesAll:
		return []string{"/", "/open/1", "/private/1"}
	case reachesOpen:
		return []string{"/", "/open/1"}
	}
	return nil
}

// robotsSite is a site of three pages with a robots.txt.
func robotsSite(host string, robots http.Handler) testweb.Site {
	return testweb.Site{Host: host, Handler: robotsRoutes(robots)}
}

func robotsRoutes(robots http.Handler) testweb.Routes {
	return testweb.Routes{
		"/robots.txt": robots,
		"/":           testweb.Page("root", "/private/1", "/open/1"),
		"/open/1":     testweb.Page("open"),
		"/private/1":  testweb.Page("private"),
	}
}

// crawlOnce runs a crawl to its end, as a process of its own would.
func crawlOnce(t testing.TB, o Options, seeds ...Seed) Summary {
	t.Helper()
	e := must.Get(Open(o, testLog(t)))(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sum, err := e.Run(ctx, seeds)
	assert.NoError(t, err)
	assert.True(t, !sum.Stopped(), "the crawl did not end by itself")
	assert.NoError(t, e.Close())
	return sum
}

// rootSeeds are the roots of all sites.
func rootSeeds(t testing.TB, web *testweb.Web) []Seed {
	var seeds []Seed
	for _, host := range web.Sites() {
		seeds = append(seeds, seed(t, web.URL(host, "/")))
	}
	return seeds
}

// requestedPages are the distinct pages of a log, sorted.
func requestedPages(log testweb.Log) []string {
	var paths []string
	for _, q := range log.Pages() {
		paths = append(paths, q.Path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// robotsRequests is how often the log requests /robots.txt.
func robotsRequests(log testweb.Log) int { return len(log.Path("/robots.txt")) }

// checkReach compares what a host saw with what it should have seen.
func checkReach(t *testing.T, web *testweb.Web, host string, want reach) {
	t.Helper()
	log := web.Requests().Host(host)
	assert.Slice(t, requestedPages(log), want.pages(), host, "saw requests for")
	assert.AtMost(t, len(log.BeforeRobots()), 0, host, "was requested before its robots.txt was read")
}

// checkPostponed expects a host among those that could not be requested, with the
// reason given.
func checkPostponed(t *testing.T, sum Summary, host, reason string) {
	t.Helper()
	i := slices.IndexFunc(sum.Postponed, func(p Postponed) bool { return p.Host == host })
	if i < 0 {
		t.Errorf("%s is not among the postponed hosts", host)
	} else if p := sum.Postponed[i]; p.Reason != reason || p.URLs == 0 {
		t.Errorf("%s is postponed with %d URLs because of %q, want %q", host, p.URLs, p.Reason, reason)
	}
}

// robotsOutcomes reads from a closed data directory what became of URLs.
func robotsOutcomes(t *testing.T, dir string, urls ...string) []storage.Outcome {
	t.Helper()
	s := must.Get(storage.Open(dir, storage.Options{ReadOnly: true}))(t)
	defer func() { _ = s.Close() }()
	all := make([]storage.Outcome, len(urls))
	for i, text := range urls {
		u := must.Get(weburl.Parse(text))(t)
		head, _, err := s.Lookup(u)
		must.Do(t, err)
		all[i] = head.Last
	}
	return all
}

func gzipped(pieces ...[]byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	for _, p := range pieces {
		_, _ = z.Write(p)
	}
	_ = z.Close()
	return b.Bytes()
}

// encodedRobots is a robots.txt under a content encoding.
func encodedRobots(encoding string, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", encoding)
		_, _ = w.Write(body)
	})
}

// utf16Robots is a robots.txt in UTF-16 with a byte order mark.
func utf16Robots(t testing.TB, order unicode.Endianness, text string) http.Handler {
	body := must.Get(unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(text))(t)
	return testweb.Robots(body)
}

// longRobots is longer than what is read of a robots.txt. The limit falls into
// the line that closes /private/, which is read to its end, and lines that are
// not read follow. The rule that decides stands in the line returned.
func longRobots() (text string, line int) {
	const last, cut = "Disallow: /private/\n", "Disallow: /open/\n"
	end := 500<<10 - len("Disallow: /")
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for b.Len() < end-200 {
		b.WriteString("# " + strings.Repeat("-", 97) + "\n")
	}
	b.WriteString("#" + strings.Repeat("-", end-b.Len()-2) + "\n")
	b.WriteString(last)
	line = strings.Count(b.String(), "\n")
	return b.String() + strings.Repeat(cut, 5000), line
}

// TestRobotsAnswers crawls a site for each kind of answer to /robots.txt that
// settles what is allowed. Each must have been requested it exactly once.
func TestRobotsAnswers(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		text := testweb.Robots
		long, longLine := longRobots()
		cases := []struct {
			host   string
			robots http.Handler
			want   reach
			line   int // that denies /private/1
		}{
			{"rules", text(closePrivate), reachesOpen, 2},
			{"later-line", text("# a comment\n\nUser-agent: *\nAllow: /open/\nDisallow: /p\nDisallow: /private/\n"),
				reachesOpen, 6},
			{"empty", text(""), reachesAll, 0},
			{"no-content", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }),
				reachesAll, 0},
			{"status-400", testweb.Status(400), reachesAll, 0},
			{"status-401", testweb.Status(401), reachesAll, 0},
			{"status-403", testweb.Status(403), reachesAll, 0},
			{"status-404", testweb.Status(404), reachesAll, 0},
			{"status-410", testweb.Status(410), reachesAll, 0},
			{"soft-404", testweb.Page("Sorry, nothing here", "/private/1"), reachesAll, 0},
			{"json", testweb.Content("application/json", []byte(`{"error": "not found"}`)), reachesAll, 0},
			{"rules-as-html", testweb.Content("text/html", []byte(closePrivate)), reachesOpen, 2},

			{"byte-order-mark", text("\xEF\xBB\xBF" + closePrivate), reachesOpen, 2},
			{"utf16-little", utf16Robots(t, unicode.LittleEndian, closePrivate), reachesOpen, 2},
			{"utf16-big", utf16Robots(t, unicode.BigEndian, "# žluť\n"+closePrivate), reachesOpen, 3},
			{"cr-only", text("User-agent: *\rDisallow: /x\rDisallow: /private/\r"), reachesOpen, 3},
			{"crlf", text("User-agent: *\r\n\r\nDisallow: /private/\r\n"), reachesOpen, 3},
			{"no-last-newline", text("User-agent: *\nDisallow: /private/"), reachesOpen, 2},
			{"gzip", encodedRobots("gzip", gzipped([]byte(closePrivate))), reachesOpen, 2},
			{"long", text(long), reachesOpen, longLine},
			{"long-gzip", encodedRobots("gzip", gzipped([]byte(long))), reachesOpen, longLine},

			{"token-first",
				text(
					"User-agent: *\nDisallow: /\n\nUser-agent: amble\nDisallow: /open/\n\nUser-agent: " +
						"Amble-News\nDisallow: /private/\n"), reachesOpen, 8},
			{"token-second", text("User-agent: *\nDisallow: /\n\nUser-agent: AMBLE\nDisallow: /private/\n"),
				reachesOpen, 5},
			{"token-any", text("User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /private/\n"),
				reachesOpen, 5},
			{"token-none", text("User-agent: other\nDisallow: /\n\nUser-agent: amble-newsletter\nDisallow: /\n"),
				reachesAll, 0},
			{"token-merged",
				text(
					"User-agent: amble\nDisallow: /x\n\nUser-agent: *\nDisallow: /open/\n\nUser-agent: " +
						"amble\nDisallow: /private/\n"), reachesOpen, 8},
			{"token-shield",
				text("User-agent: *\nDisallow: /\n\nUser-agent: amble\n\nUser-agent: amble-news\nDisallow:\n"),
				reachesAll, 0},
		}
		var sites []testweb.Site
		for _, c := range cases {
			sites = append(sites, robotsSite(c.host+".test", c.robots))
		}
		web := serve(sites...)
		o := testOptions(t, web)
		o.Frontier.Tokens = []string{"amble-news", "amble"}
		sum := crawlOnce(t, o, rootSeeds(t, web)...)
		assert.AtMost(t, len(sum.Postponed), 0, "postponed", sum.Postponed)
		for _, c := range cases {
			host := c.host + ".test"
			checkReach(t, web, host, c.want)
			assert.Equal(t, robotsRequests(web.Requests().Host(host)), 1, host, "was requested robots.txt times")
			got := robotsOutcomes(t, o.DataDir, web.URL(host, "/open/1"), web.URL(host, "/private/1"))
			assert.Equal(t, got[0].State, storage.Fetched, host, "the open page")
			want := storage.Outcome{State: storage.Fetched}
			if c.want == reachesOpen {
				want = storage.Outcome{State: storage.Denied, Reason: storage.ReasonRobots, Line: uint32(c.line)}
			}
			if g := got[1]; g.State != want.State || g.Reason != want.Reason || g.Line != want.Line {
				t.Errorf("%s: the private page is %s, reason %d, line %d; want %s, %d, %d",
					host, g.State, g.Reason, g.Line, want.State, want.Reason, want.Line)
			}
		}
	})
}

// TestRobotsForbidden turns 401 and 403 into a complete disallow.
func TestRobotsForbidden(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(
			robotsSite("status-401.test", testweb.Status(401)),
			robotsSite("status-403.test", testweb.Status(403)),
			robotsSite("status-404.test", testweb.Status(404)))
		o := testOptions(t, web)
		o.Frontier.Robots.ForbiddenDenies = true
		sum := crawlOnce(t, o, rootSeeds(t, web)...)
		for _, host := range []string{"status-401.test", "status-403.test"} {
			checkReach(t, web, host, reachesNone)
			checkPostponed(t, sum, host, "robots.txt: forbidden")
			assert.Equal(t, robotsRequests(web.Requests().Host(host)), 1, host, "was requested robots.txt times")
		}
		checkReach(t, web, "status-404.test", reachesAll)
	})
}

func deflated(b []byte) []byte {
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, _ = w.Write(b) // into memory
	_ = w.Close()
	return packed.Bytes()
}

// TestHeavyRobotsBomb serves a robots.txt of a few hundred kilobytes that grows to
// 64 MB. What stands in front of the limit counts, and the rest never comes
// to memory. It does not run next to other tests, because it counts allocations, and in real time,
// because a network in memory allocates too.
func TestHeavyRobotsBomb(t *testing.T) {
	line := []byte("Disallow: /open/" + strings.Repeat("x", 1<<20-17) + "\n")
	pieces := [][]byte{[]byte(closePrivate)}
	for range 32 {
		pieces = append(pieces, line)
	}
	hollow := append(gzipped([]byte(closePrivate)), bytes.Repeat(gzipped(nil), 100_000)...) // it brings nothing more
	web := startWeb(t,
		robotsSite("bomb.test", encodedRobots("gzip", gzipped(pieces...))),
		robotsSite("hollow.test", encodedRobots("gzip", hollow)),
		robotsSite("nested.test", encodedRobots("gzip, deflate", deflated(gzipped(pieces...)))))
	o := testOptions(t, web)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	crawlOnce(t, o, rootSeeds(t, web)...)
	runtime.ReadMemStats(&after)
	const most = 16 << 20
	n := after.TotalAlloc - before.TotalAlloc
	assert.True(t, n <= most, "the crawl allocated %d MB, want at most %d", n>>20, most>>20)
	for _, host := range web.Sites() {
		checkReach(t, web, host, reachesOpen)
		got := robotsOutcomes(t, o.DataDir, web.URL(host, "/private/1"))[0]
		assert.True(t, got.State == storage.Denied && got.Line == 2, "%s: the private page is %s by line %d", host,
			got.State, got.Line)
	}
}

// TestRobotsOneFlight gives a crawler that may have many requests in flight to
// a host a hundred URLs of each of three hosts, whose robots.txt take their
// time. One request for robots.txt must be made, and no page requested before it ends.
func TestRobotsOneFlight(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const urls = 100
		var sites []testweb.Site
		for i := range 3 {
			routes := testweb.Routes{"/robots.txt": testweb.Slow(200*time.Millisecond, testweb.Robots(closePrivate))}
			for j := range urls {
				routes[fmt.Sprintf("/open/%d", j)] = testweb.Slow(20*time.Millisecond, testweb.Page("open"))
				routes[fmt.Sprintf("/private/%d", j)] = testweb.Page("private")
			}
			sites = append(sites, testweb.Site{Host: fmt.Sprintf("flight-%d.test", i), Handler: routes})
		}
		web := serve(sites...)
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = 0
		o.Frontier.Politeness.PerHost = 16
		o.Frontier.Politeness.PerIP = 16
		var seeds []Seed
		for j := range urls {
			for _, host := range web.Sites() {
				seeds = append(seeds, seed(t, web.URL(host, fmt.Sprintf("/open/%d", j))),
					seed(t, web.URL(host, fmt.Sprintf("/private/%d", j))))
			}
		}
		crawlOnce(t, o, seeds...)
		for _, host := range web.Sites() {
			log := web.Requests().Host(host)
			assert.Equal(t, robotsRequests(log), 1, host, "was requested robots.txt times")
			assert.AtMost(t, len(log.BeforeRobots()), 0, "pages of", host,
				"were requested before its robots.txt was read")
			pages := requestedPages(log)
			private := slices.ContainsFunc(pages, func(p string) bool { return strings.HasPrefix(p, "/private/") })
			assert.True(t, len(pages) == urls && !private && len(log.Repeats()) == 0,
				"%s saw %d pages (private ones: %t, repeated: %v), want %d", host, len(pages), private, log.Repeats(),
				urls)
			assert.AtLeast(t, log.Pages().MaxInFlight(), 2, host,
				"never had two requests in flight: the test proves nothing")
		}
	})
}
