package crawl

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/politeness"
)

// TestSignalsHoldTheHost: a Retry-After of any status, and what a response says about a quota, count
// at the server, for the page, its robots.txt and a response that breaks off.
func TestSignalsHoldTheHost(t *testing.T) {
	t.Parallel()
	page := testweb.Page("aa")
	for name, c := range map[string]struct {
		path   string
		answer http.Handler
		least  time.Duration
	}{
		"200":        {"/aa", withFields(page, "Retry-After", "120"), 2 * time.Minute},
		"404":        {"/aa", withFields(testweb.Status(404), "Retry-After", "120"), 2 * time.Minute},
		"403":        {"/aa", withFields(testweb.Status(403), "Retry-After", "119.5"), 2 * time.Minute},
		"500":        {"/aa", withFields(testweb.Status(500), "Retry-After", "120"), 2 * time.Minute},
		"robots.txt": {"/robots.txt", withFields(testweb.Robots(""), "Retry-After", "120"), 2 * time.Minute},
		"coding":     {"/aa", withFields(page, "Content-Encoding", "unknown", "Retry-After", "120"), 2 * time.Minute},
		"quota":      {"/aa", withFields(page, "RateLimit", `"default";r=0;t=7200`), 2 * time.Hour},
		"quota, old": {"/aa", withFields(page, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "90"),
			90 * time.Second},
		"policy": {"/aa", withFields(page, "RateLimit-Policy", `"default";q=2;w=60`), 30 * time.Second},
		"quick":  {"/aa", withFields(page, "RateLimit-Policy", `"default";q=200;w=60`), 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
				web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{
					site("a.test", "", paths("/", 4), testweb.Routes{c.path: testweb.Flaky(1, c.answer, page)}),
				}})
				o := testOptions(t, web)
				o.GiveUpAfter = 24 * time.Hour
				o.Frontier.Politeness.Delay = 10 * time.Second
				o.Frontier.MaxAttempts = 2
				crawl(t, o, web.URL("a.test", "/"))
				seen := false
				for _, g := range web.Requests().Gaps() {
					if g.Before.Path == c.path && !seen {
						seen = true
						assert.True(t, g.Length >= c.least && g.Length <= c.least+time.Second, "%v after %s, want %v",
							g.Length, c.path, c.least)
					}
				}
				assert.True(t, seen, "nothing came after %s", c.path)
				var demanded time.Duration
				for _, r := range logged(t, o.DataDir) {
					demanded = max(demanded, r.RetryAfter)
				}
				if wants := c.least > time.Minute; wants != (demanded > 0) || wants && demanded < c.least-time.Second {
					t.Errorf("the log says that a wait of %v is demanded", demanded)
				}
			})
		})
	}
}

// TestHeavyQuietHours: outside of its hours nothing reaches a host, robots.txt included, seen at the
// server and over a restart. Virtual time begins at midnight UTC, on a Saturday. The hours are 06:15
// to 06:30 and 07:15 to 07:30 UTC.
func TestHeavyQuietHours(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{
			site("a.test", "", paths("/", 20), nil), site("b.test", "", paths("/", 2), nil),
			site("c.test", "User-agent: *\nVisit-time: 0620-0625\n", paths("/", 2), nil),
		}})
		o := testOptions(t, web)
		o.GiveUpAfter = 24 * time.Hour
		o.Frontier.Politeness.Delay = time.Minute
		hours := must.Get(politeness.NewHours("Asia/Kolkata", []string{"sat 11:45-12:00", "sat 12:45-13:00"}, ""))(t)
		o.Frontier.Politeness.Hours = hours
		other := o.Frontier.Politeness
		other.Hours = nil
		o.Frontier.Overrides = []frontier.Override{{Hosts: []string{"b.test"}, Politeness: other}}
		seeds := []string{web.URL("a.test", "/"), web.URL("b.test", "/"), web.URL("c.test", "/")}
		must.Get(crawlFor(t, o, 6*time.Hour+45*time.Minute, seeds...))(t)
		first := len(web.Requests().Host("a.test"))
		crawl(t, o, seeds...)
		log := web.Requests()
		if n := len(log.Host("a.test")); first == 0 || first == n || n != 22 {
			t.Errorf("%d and then %d requests to a.test, want 22 in two times of the day", first, n)
		}
		for _, q := range log {
			at := q.Start.UTC()
			switch open := at.Minute() >= 15 && at.Minute() < 30 && (at.Hour() == 6 || at.Hour() == 7); {
			case q.Host == "b.test" && at.Hour() > 0:
				t.Errorf("b.test waits until %v", at)
			case q.Host == "a.test" && !open, q.Host == "c.test" && !open,
				q.Host == "c.test" && q.Path != "/robots.txt" &&
					(at.Hour() != 6 || at.Minute() < 20 || at.Minute() >= 25):
				t.Errorf("%s %s at %v", q.Host, q.Path, at)
			}
		}
	})
}

// groupSites are hosts with addresses of their own, half of them of a group by name and half by what
// their CNAME records lead to, and one that is in no group.
func groupSites(pages int) (sites []testweb.Site, group frontier.Group) {
	group = frontier.Group{Name: "shops", Hosts: []string{"*.shop.test"}, CNAMEs: []string{"*.cdn.test"}}
	for i := range 4 {
		s := site(fmt.Sprintf("h%d.shop.test", i), "", paths("/", pages), nil)
		if i%2 == 1 {
			s.Host, s.Alias = fmt.Sprintf("h%d.test", i), fmt.Sprintf("e%d.CDN.test", i)
		}
		sites = append(sites, s)
	}
	return append(sites, site("other.test", "", paths("/", pages), nil)), group
}

// ofGroup is the part of a log that is to hosts of the group.
func ofGroup(log testweb.Log) testweb.Log {
	return slices.DeleteFunc(slices.Clone(log), func(q testweb.Request) bool { return q.Host == "other.test" })
}

// TestGroupOfHosts: the requests to all hosts of a group keep its limits, seen at the servers and
// over a restart, and other hosts do not notice.
func TestGroupOfHosts(t *testing.T) {
	t.Parallel()
	const delay = 5 * time.Second
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		sites, group := groupSites(4)
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: sites})
		o := testOptions(t, web)
		o.GiveUpAfter = time.Hour
		o.Frontier.Politeness.Delay = time.Second
		group.Limit.Delay = delay
		o.Frontier.Groups = []frontier.Group{group}
		seeds := seedsOf(web, web.Sites())
		must.Get(crawlFor(t, o, 21*time.Second, seeds...))(t)
		other := len(web.Requests().Host("other.test"))
		crawl(t, o, seeds...)
		log := ofGroup(web.Requests())
		for _, g := range log.ShortGaps(delay) {
			t.Errorf("%v between %s%s and %s%s", g.Length, g.Before.Host, g.Before.Path, g.After.Host, g.After.Path)
		}
		if n := len(log.Pages()); n != 4*5 || other != 6 {
			t.Errorf("%d pages of the group, want 20; %d requests to another host meanwhile, want 6", n, other)
		}
	})
}

// TestKilledInGroup: the limits of a group hold over kill -9, seen at the servers. In real time:
// processes are killed.
func TestKilledInGroup(t *testing.T) {
	t.Parallel()
	const delay = 150 * time.Millisecond
	sites, group := groupSites(4)
	web := startWeb(t, sites...)
	group.Limit.Delay = delay
	dir, _ := prepareChild(t, childConfig{
		Resolver: web.ResolverAddr(), Delay: time.Millisecond, Seeds: seedsOf(web, web.Sites()),
		Formats: allFormats, Compress: archive.CompressNone, Groups: []frontier.Group{group},
	})
	for kills := 0; ; kills++ {
		before := len(ofGroup(web.Requests()).Pages())
		child, done := startChild(t, dir)
		if kills == 3 {
			must.Do(t, <-done)
			break
		}
		// robots.txt files were committed
		for deadline := time.Now().Add(patience); len(ofGroup(web.Requests()).Pages()) < before+3; {
			must.True(t, !time.Now().After(deadline), "no page is requested")
			time.Sleep(time.Millisecond)
		}
		must.Do(t, child.Process.Kill())
		<-done
		answered(t, web)
	}
	log := ofGroup(web.Requests())
	for _, g := range log.ShortGaps(delay) {
		t.Errorf("%v between %s%s and %s%s", g.Length, g.Before.Host, g.Before.Path, g.After.Host, g.After.Path)
	}
	assert.AtLeast(t, len(log.Pages()), 4*5, "pages of the group")
}

// TestFreshPagesAreLeftAlone: a page is not recrawled while its last response says that it can still
// be used.
func TestFreshPagesAreLeftAlone(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		page := testweb.Page("x")
		web := testweb.Serve(t,
			testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", []string{"/a", "/b", "/c"},
				testweb.Routes{
					"/a": withFields(page, "Cache-Control", "max-age=1800", "Age", "300"),
					"/b": withFields(page, "Cache-Control", "no-cache, max-age=1800"),
					"/c": withFields(testweb.Redirect(302, "/b"), "Expires", "Fri, 31 Dec 1999 23:00:00 GMT"),
				})}})
		o := recrawling(t, web)
		o.Recrawl.Policy = recrawl.StormCrawler
		o.Recrawl.Interval, o.Recrawl.Min, o.Recrawl.Max = time.Minute, time.Minute, time.Hour
		must.Get(crawlFor(t, o, 26*time.Minute, web.URL("a.test", "/")))(t)
		count := web.Requests().CountByPath()
		if a, b, c := count["a.test/a"], count["a.test/b"], count["a.test/c"]; a != 2 || b < 3 || c < 3 {
			t.Errorf("/a was requested %d times, /b %d times, /c %d times, want 2, 3 at least, 3 at least", a, b, c)
		}
	})
}
