package crawl

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/amble-crawler/amble/internal/testweb"
)

// clock is that of a machine whose wall clock can be set while a process runs.
type clock struct{ ahead atomic.Int64 } // seconds

// set moves the wall clock by whole seconds; the monotonic one goes on as it did.
func (c *clock) set(by time.Duration) { c.ahead.Add(int64(by / time.Second)) }

// now reads both clocks. The time package has no way to move one of them: this relies on its layout.
func (c *clock) now() time.Time {
	t := time.Now()
	reading := (*struct {
		wall uint64 // a flag, 33 bits of seconds, 30 bits of nanoseconds
		ext  int64  // monotonic reading
		loc  *time.Location
	})(unsafe.Pointer(&t))
	reading.wall += uint64(c.ahead.Load()) << 30
	return t
}

// TestClock: the clock of the tests does what it says.
func TestClock(t *testing.T) {
	for _, by := range []time.Duration{0, -time.Hour, 24 * time.Hour} {
		var c clock
		before := c.now()
		c.set(by)
		after := c.now()
		if passed := after.Sub(before); passed < 0 || passed > time.Minute {
			t.Errorf("set by %v: %v passed by the monotonic clock", by, passed)
		}
		if off := after.Round(0).Sub(before.Round(0)) - by; off < 0 || off > time.Minute {
			t.Errorf("set by %v: the wall clock is off by %v", by, off)
		}
	}
}

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
		{"suspended for an hour", time.Hour, false, 12},              // the monotonic clock of Linux stands still meanwhile
		{"set back by an hour, and a restart", -time.Hour, true, 11}, // the second time is by the wall clock, an hour later
		{"set forward by a day, and a restart", 24 * time.Hour, true, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const robots = "User-agent: *\nCrawl-delay: 1\n"
			web := startWeb(t, site("steady.test", robots, paths("/", 7), nil), site("tired.test", robots, paths("/", 2), testweb.Routes{
				"/aa": testweb.Flaky(1, testweb.RetryAfter(429, "4"), testweb.Page("aa")),
			}))
			var clock clock
			o := testOptions(t, web)
			o.Now = clock.now
			seeds := []string{web.URL("steady.test", "/"), web.URL("tired.test", "/")}
			e, stop := daemon(t, o, seeds...)
			eventually(t, "tired.test has had enough", func() bool { return len(web.Requests().Path("/aa")) > 0 })
			beats(t, e, 1) // most likely the crawler knows by now; it does not matter if not
			clock.set(c.step)
			if c.restart {
				n := len(web.Requests().Host("steady.test"))
				eventually(t, "steady.test is requested by the new time", func() bool { return len(web.Requests().Host("steady.test")) >= n+2 })
				stop()
				_, stop = daemon(t, o, seeds...)
			}
			eventually(t, "all that is due is requested", func() bool { return len(web.Requests().Pages()) >= c.requested })
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
					if g.Length < least {
						t.Errorf("%s: %v between %s (%d) and %s, want at least %v", host, g.Length, g.Before.Path, g.Before.Status, g.After.Path, least)
					}
				}
			}
			if n := len(log.Pages()); n != c.requested {
				t.Errorf("pages were requested %d times, want %d", n, c.requested)
			}
		})
	}
}
