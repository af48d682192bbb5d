package crawl

import (
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

func patternList(texts ...string) (list []*regexp.Regexp) {
	for _, text := range texts {
		list = append(list, regexp.MustCompile(text))
	}
	return list
}

// TestSettingsOfferAgain: what a run could not reach is fetched by the next, once a setting allows
// it, and nothing is fetched twice.
func TestSettingsOfferAgain(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 5), nil))
		o := testOptions(t, web)
		o.Fetch.AllowPrivate = false
		sum := crawl(t, o, web.URL("a.test", "/"))
		must.True(t, sum.Status.URLs["failed"] == 1 && len(web.Requests()) == 0, "URLs: %v, %d requests",
			sum.Status.URLs, len(web.Requests()))
		sum = crawl(t, o, web.URL("a.test", "/"))
		must.True(t, len(web.Requests()) <= 0 && !sum.Fresh, "with the same settings: %+v", sum)
		o.Fetch.AllowPrivate = true
		sum = crawl(t, o, web.URL("a.test", "/"))
		must.True(t, sum.Status.URLs["fetched"] == 6, "URLs: %v", sum.Status.URLs)
		crawl(t, o, web.URL("a.test", "/"))
		o.Fetch.AllowPrivate = false
		crawl(t, o, web.URL("a.test", "/"))
		for path, n := range pagesOf(web, "a.test") {
			assert.Equal(t, n, 1, path, "was requested times")
		}
		checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
		checkNoMarks(t, o)
	})
}

// TestSettingsForgiveRobots: an origin whose robots.txt could not be had because of a port that was
// not allowed is requested as soon as it is, and not when the file would be requested again.
func TestSettingsForgiveRobots(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 3), nil))
		o := testOptions(t, web)
		o.Fetch.Ports = []uint16{1}
		o.GiveUpAfter = time.Second
		sum := crawl(t, o, web.URL("a.test", "/"))
		must.True(t, sum.Seeds.Failed && sum.Seeds.First[0].Reason == "robots.txt, blocked address" &&
			len(web.Requests()) <= 0, "%+v", sum.Seeds)
		if crawl(t, o, web.URL("a.test", "/")); len(web.Requests()) > 0 {
			t.Fatal("the same settings reach it")
		}
		o.Fetch.Ports = nil
		assert.Equal(t, crawl(t, o, web.URL("a.test", "/")).Status.URLs["fetched"], 4)
		checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
	})
}

// TestScopeOffersAgainLive: a scope that becomes wider while the crawl runs puts back what it had
// excluded.
func TestScopeOffersAgainLive(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(
			site("a.test", "", []string{"/in", "/out/1", "/out/2"}, testweb.Routes{"/": testweb.Page("root", "/in")}))
		o := testOptions(t, web)
		e, stop := daemon(t, o, web.URL("a.test", "/"))
		ctx, narrow := t.Context(), e.o.Live()
		narrow.Exclude = patternList("/out/")
		must.Do(t, e.Pause(ctx))
		sum, err := e.Add(ctx, additions(t, web.URL("a.test", "/out/1"), web.URL("a.test", "/out/2")))
		must.True(t, err == nil && sum.Added == 2, "%v %v", sum, err)
		must.Do(t, errors.Join(e.Change(ctx, narrow), e.Resume(ctx)))
		testkit.Until(t, "they are excluded", func() bool { return e.store.Counters().Of(storage.Excluded) == 2 })
		must.Do(t, e.Change(ctx, e.o.Live()))
		testkit.Until(t, "they are fetched", func() bool { return e.store.Counters().Of(storage.Fetched) == 4 })
		stop()
		for path, n := range pagesOf(web, "a.test") {
			assert.Equal(t, n, 1, path, "was requested times")
		}
		checkNoMarks(t, o)
	})
}
