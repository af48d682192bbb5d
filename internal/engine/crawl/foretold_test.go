package crawl

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// TestForetoldVisits: when the next request of a host begins, as views of it foretell it at any moment to its operator,
// is right to the second in 95 % of cases, whatever sign decides.
func TestForetoldVisits(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		pages := paths("/", 25)
		sites := []testweb.Site{
			site("plain.test", "", pages, nil),
			site("asks.test", "User-agent: *\nCrawl-delay: 60\n", pages, nil),
			site("busy.test", "", pages, testweb.Routes{
				"/ac": testweb.Flaky(1, testweb.RetryAfter(429, "300"), testweb.Page("c")),
				"/ag": testweb.Flaky(2, testweb.RetryAfter(503, "40"), testweb.Page("g")),
			}),
			site("fails.test", "", pages, testweb.Routes{
				"/ad": testweb.Flaky(3, testweb.Status(http.StatusInternalServerError), testweb.Page("d")),
			}),
			site("slow.test", "", pages, testweb.Routes{"/ab": testweb.Slow(20*time.Second, testweb.Page("b"))}),
		}
		web := serve(sites...)
		o := testOptions(t, web)
		o.GiveUpAfter = 24 * time.Hour
		o.Frontier.Politeness.Delay = 10 * time.Second
		e := must.Get(Open(o, testLog(t)))(t)
		var seeds []Seed
		for _, s := range sites {
			seeds = append(seeds, seed(t, web.URL(s.Host, "/")))
		}
		ended := make(chan error, 1)
		go func() {
			_, err := e.Run(t.Context(), seeds)
			ended <- err
		}()
		told := foretell(t, e, sites, ended)
		assert.NoError(t, e.Close())
		right := 0
		log := web.Requests()
		var wrong []string
		for _, f := range told {
			next := log.Host(f.host).Filter(func(r testweb.Request) bool { return r.Start.After(f.at) })
			if len(next) == 0 {
				continue
			}
			if off := next[0].Start.Sub(f.next); off >= -10*time.Millisecond && off <= time.Second {
				right++
			} else {
				wrong = append(wrong, fmt.Sprintf("%s by %v (%s)", f.host, off, f.reason))
			}
		}
		t.Logf("%d of %d foretold visits were right; not so: %v", right, len(told), wrong)
		assert.True(t, len(told) >= 100 && !(float64(right) < 0.95*float64(len(told))),
			"%d of %d foretold visits were right; not so: %v", right, len(told), wrong)
	})
}

// foretold is what a view said of the next request.
type foretold struct {
	host, reason string
	at, next     time.Time
}

// foretell asks for each host again and again until the crawl ends.
func foretell(t *testing.T, e *Engine, sites []testweb.Site, ended <-chan error) (told []foretold) {
	t.Helper()
	for {
		select {
		case err := <-ended:
			assert.NoError(t, err)
			return told
		case <-time.After(7300 * time.Millisecond): // in virtual time: falls anywhere between the delays
		}
		for _, s := range sites {
			h, err := e.View().Host(context.Background(), s.Host)
			if err == nil && !h.Next.IsZero() {
				told = append(told, foretold{s.Host, h.Reason, time.Now(), h.Next})
			}
		}
	}
}
