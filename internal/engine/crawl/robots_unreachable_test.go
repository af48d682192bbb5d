package crawl

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// trickle answers with a robots.txt that allows everything and never ends, a
// line at a time.
func trickle(pause time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte("User-agent: *\nAllow: /\n"))
		drip(r, pause, func() error {
			_, _ = w.Write([]byte("# wait\n"))
			return http.NewResponseController(w).Flush()
		})
	})
}

// trickleHeader answers with a header that never ends, a field at a time.
func trickleHeader(pause time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer func() { _ = c.Close() }()
		writeTo(buffer.Writer, "HTTP/1.1 200 OK\r\n")
		drip(r, pause, func() error { return writeTo(buffer.Writer, "X-Wait: yes\r\n") })
	})
}

func writeTo(w *bufio.Writer, text string) error {
	_, _ = w.WriteString(text)
	return w.Flush()
}

// drip writes a drop every now and then until the client or the web is gone.
func drip(r *http.Request, pause time.Duration, drop func() error) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for drop() == nil {
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// cutChunked breaks off an answer without a Content-Length.
func cutChunked(body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte(body))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
}

// bareStatus answers with a status and a body that would be a robots.txt.
func bareStatus(status int, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
}

// TestRobotsUnreachable crawls sites whose robots.txt cannot be read, though
// each would allow everything. Nothing but that file may be requested of them, and
// that once, for it is not to be tried again for a minute. What else there is
// to crawl goes on.
func TestRobotsUnreachable(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		const allow = "User-agent: *\nAllow: /\n"
		broken := gzipped([]byte(strings.Repeat(allow, 100)))
		broken[len(broken)-6] ^= 1 // the checksum
		sites := []testweb.Site{
			robotsSite("silent.test", testweb.Slow(time.Hour, testweb.Robots(allow))),
			robotsSite("trickled-header.test", trickleHeader(50*time.Millisecond)),
			robotsSite("trickled-body.test", trickle(50*time.Millisecond)),
			robotsSite("stalled-body.test", trickle(time.Hour)),
			robotsSite("cut.test", testweb.Cut("text/plain", []byte(allow))),
			robotsSite("cut-chunked.test", cutChunked(allow)),
			robotsSite("reset.test", testweb.Reset()),
			robotsSite("bad-gzip.test", encodedRobots("gzip", broken)),
			robotsSite("cut-gzip.test", encodedRobots("gzip", broken[:len(broken)/2])),
			robotsSite("no-gzip.test", encodedRobots("gzip", []byte(allow))),
			robotsSite("unknown-encoding.test", encodedRobots("sprinkled", []byte(allow))),
			robotsSite("status-206.test", bareStatus(206, allow)),
			robotsSite("status-304.test", testweb.Status(304)),
			robotsSite("status-500.test", bareStatus(500, allow)),
			robotsSite("status-502.test", bareStatus(502, allow)),
			robotsSite("status-999.test", bareStatus(999, allow)),
			robotsSite("well.test", testweb.Robots(allow)),
		}
		web := serve(sites...)
		o := testOptions(t, web)
		o.GiveUpAfter = 200 * time.Millisecond
		o.Fetch.Timeout = 1600 * time.Millisecond
		o.Fetch.HeaderTimeout = 1200 * time.Millisecond
		o.Fetch.BodyIdleTimeout = 1200 * time.Millisecond
		sum := crawlOnce(t, o, rootSeeds(t, web)...)
		for _, host := range web.Sites() {
			if host == "well.test" {
				checkReach(t, web, host, reachesAll)
				continue
			}
			checkReach(t, web, host, reachesNone)
			checkPostponed(t, sum, host, "robots.txt: unreachable")
			assert.Equal(t, robotsRequests(web.Requests().Host(host)), 1, host, "was requested robots.txt times")
		}
		assert.Equal(t, len(sum.Postponed), len(sites)-1, "hosts are postponed")
	})
}

// TestRobotsRecovers crawls sites whose robots.txt cannot be read at first.
// They must be left alone for as long as they demand, or as the crawler waits of
// its own, and then be crawled whole.
func TestRobotsRecovers(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		good := testweb.Robots(closePrivate)
		var date time.Time // that the site until.test names; only read when the crawl is over
		until := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			date = time.Now().Add(2 * time.Second).Truncate(time.Second)
			testweb.RetryAfter(429, date.UTC().Format(http.TimeFormat)).ServeHTTP(w, r)
		})
		cases := []struct {
			host string
			bad  http.Handler
			wait time.Duration
		}{
			{"after-429.test", testweb.RetryAfter(429, "1"), time.Second},
			{"until-429.test", until, 0},
			{"after-503.test", testweb.RetryAfter(503, "1"), time.Second},
			{"status-500.test", testweb.Status(500), 300 * time.Millisecond},
			{"cut.test", testweb.Cut("text/plain", []byte("User-agent: *\nAllow: /\n")), 300 * time.Millisecond},
		}
		var sites []testweb.Site
		for _, c := range cases {
			sites = append(sites, robotsSite(c.host, testweb.Flaky(1, c.bad, good)))
		}
		web := serve(sites...)
		o := testOptions(t, web)
		o.GiveUpAfter = 20 * time.Second
		o.Frontier.Robots.MinRetry = 300 * time.Millisecond
		sum := crawlOnce(t, o, rootSeeds(t, web)...)
		assert.AtMost(t, len(sum.Postponed), 0, "postponed", sum.Postponed)
		for _, c := range cases {
			log := web.Requests().Host(c.host)
			robots := log.Path("/robots.txt")
			if len(robots) != 2 {
				t.Errorf("%s was requested robots.txt %d times, want twice", c.host, len(robots))
				continue
			}
			checkReach(t, web, c.host, reachesOpen)
			assert.Equal(t, log[1].Path, "/robots.txt", c.host, "was requested before its robots.txt could be read")
			assert.AtMost(t, len(log[:2].ShortGaps(c.wait)), 0, c.host, "was requested again after", c.wait, "at least")
		}
		for _, q := range web.Requests().Host("until-429.test")[1:] {
			assert.True(t, !q.Start.Before(date), "until-429.test was requested again at %v, not before %v was wanted",
				q.Start, date)
		}
	})
}

// TestRobotsThrottled crawls sites that say that there is too much traffic and
// not for how long. They are left alone for a minute at least; then, in a
// later process, they are crawled.
func TestRobotsThrottled(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		good := testweb.Robots(closePrivate)
		web := serve(robotsSite("status-429.test", testweb.Flaky(1, testweb.Status(429), good)),
			robotsSite("status-503.test", testweb.Flaky(1, testweb.Status(503), good)))
		o := testOptions(t, web)
		o.Frontier.Jitter = func() float64 { return 0.5 }
		seeds := rootSeeds(t, web)
		started := time.Now()
		for range 2 { // the second finds all in place, and has to wait like the first
			sum := crawlOnce(t, o, seeds...)
			for _, host := range web.Sites() {
				checkReach(t, web, host, reachesNone)
				i := slices.IndexFunc(sum.Postponed, func(p Postponed) bool { return p.Host == host })
				assert.True(t, i >= 0 && !sum.Postponed[i].Until.Before(started.Add(time.Minute)),
					"%s should wait for a minute: %+v", host, sum.Postponed)
				assert.Equal(t, robotsRequests(web.Requests().Host(host)), 1, host, "was requested robots.txt times")
			}
		}
		time.Sleep(2 * time.Minute)
		crawlOnce(t, o, seeds...)
		for _, host := range web.Sites() {
			checkReach(t, web, host, reachesOpen)
			assert.Equal(t, robotsRequests(web.Requests().Host(host)), 2, host, "was requested robots.txt times")
		}
	})
}

// TestRobotsBrokenOff stops the crawler while it waits for a robots.txt. That
// says nothing about the site: the next process fetches it again at once.
func TestRobotsBrokenOff(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(robotsSite("site.test",
			testweb.Flaky(1, testweb.Slow(time.Hour, testweb.Robots("")), testweb.Robots(closePrivate))))
		o := testOptions(t, web)
		o.ShutdownGrace = 10 * time.Millisecond
		e := must.Get(Open(o, testLog(t)))(t)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			for len(web.Requests()) == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		_, err := e.Run(ctx, rootSeeds(t, web))
		assert.True(t, err == nil, "%v", err)
		assert.NoError(t, e.Close())
		checkReach(t, web, "site.test", reachesNone)
		crawlOnce(t, o, rootSeeds(t, web)...)
		checkReach(t, web, "site.test", reachesOpen)
		assert.Equal(t, robotsRequests(web.Requests()), 2, "robots.txt was requested times")
	})
}
