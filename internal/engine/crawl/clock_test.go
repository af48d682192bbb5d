package crawl

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// TestClockIsSet crawls two hosts, and one demands some seconds of rest, while the wall clock is
// set back by an hour or forward by a day, or runs on while the machine is suspended. As the server
// sees it no wait is shorter. None is longer by the step either, or the crawl would not come to its
// end. The time is real: virtual time has no monotonic clock.
func TestClockIsSet(t *testing.T) {
	t.Parallel()
	const delay, rest = time.Second, 4 * time.Second
	for _, c := range []struct {
		name      string
		step      time.Duration
		restart   bool
		requested int // requests for pages: 11 of them, one a second time
	}{
		{"set back by an hour", -time.Hour, false, 12},
		{"set forward by a day", 24 * time.Hour, false, 12},
		// the monotonic clock of Linux stands still meanwhile
		{"suspended for an hour", time.Hour, false, 12},
		// the second time is by the wall clock, an hour later
		{"set back by an hour, and a restart", -time.Hour, true, 11},
		{"set forward by a day, and a restart", 24 * time.Hour, true, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const robots = "User-agent: *\nCrawl-delay: 1\n"
			web := startWeb(t, site("steady.test", robots, paths("/", 7), nil),
				site("tired.test", robots, paths("/", 2), testweb.Routes{
					"/aa": testweb.Flaky(1, testweb.RetryAfter(429, "4"), testweb.Page("aa")),
				}))
			var clock testkit.Clock
			o := testOptions(t, web)
			o.Now = clock.Now
			seeds := []string{web.URL("steady.test", "/"), web.URL("tired.test", "/")}
			e, stop := daemon(t, o, seeds...)
			testkit.Until(t, "tired.test has had enough", func() bool { return len(web.Requests().Path("/aa")) > 0 })
			beats(t, e, 1) // most likely the crawler knows by now; it does not matter if not
			clock.Set(c.step)
			if c.restart {
				n := len(web.Requests().Host("steady.test"))
				testkit.Until(t, "steady.test is requested by the new time",
					func() bool { return len(web.Requests().Host("steady.test")) >= n+2 })
				stop()
				_, stop = daemon(t, o, seeds...)
			}
			testkit.Until(t, "all that is due is requested",
				func() bool { return len(web.Requests().Pages()) >= c.requested })
			stop()
			log := web.Requests()
			for _, host := range []string{"steady.test", "tired.test"} {
				if host == "tired.test" && c.restart && c.step > 0 {
					continue // no commit of it followed the step, which so counts as time that passed
				}
				for _, g := range log.Host(host).Gaps() {
					least := delay
					if g.Before.Status == 429 {
						least = rest
					}
					assert.AtLeast(t, g.Length, least, host, "between", g.Before.Path, g.Before.Status, g.After.Path)
				}
			}
			assert.Equal(t, len(log.Pages()), c.requested, "pages were requested times")
		})
	}
}
