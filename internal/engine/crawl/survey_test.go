package crawl

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// TestStatusNamesSlowHosts: the status of a running crawl says what each of the slowest hosts needs.
func TestStatusNamesSlowHosts(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{
			site("a.test", "User-agent: *\nCrawl-delay: 6\n", paths("/", 20), nil),
			site("b.test", "User-agent: *\nCrawl-delay: 3\n", paths("/", 20), nil),
			site("c.test", "", paths("/", 3), nil),
		}})
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = 10 * time.Millisecond
		e, stop := daemon(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"), web.URL("c.test", "/"))
		testkit.Until(t, "two hosts are left", func() bool {
			s := e.Status()
			return len(s.Slowest) == 2 && s.Slowest[0].Host == "a.test" && s.Slowest[1].Host == "b.test" &&
				s.Slowest[0].URLs >= 18 && s.Slowest[0].Finish >= 17*6 && s.Slowest[0].Finish <= 21*6 &&
				s.Slowest[1].Finish <= 21*3 && s.Finish == s.Slowest[0].Finish
		})
		story, err := e.View().Host(t.Context(), "a.test")
		if slow := e.Status().Slowest[0].Finish; err != nil || story.Finish < slow-9 || story.Finish > slow+9 {
			t.Errorf("the host's own story says %.1f s, the status %.1f s (%v)", story.Finish, slow, err)
		}
		stop()
	})
}
