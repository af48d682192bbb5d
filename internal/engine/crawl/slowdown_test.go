package crawl

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// slowing responds at once for a number of requests, and then takes its time.
type slowing struct {
	pages  http.Handler
	quick  int64
	served atomic.Int64
}

func (h *slowing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.served.Add(1) > h.quick {
		time.Sleep(800 * time.Millisecond)
	}
	h.pages.ServeHTTP(w, r)
}

// TestSlowdownIsReported: three hosts of one address that become slower together are in the status
// and in what is known of each, and their delays stay as they were.
func TestSlowdownIsReported(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: 20 * time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		var sites []testweb.Site
		var hosts []string
		for i := range 6 {
			s := site(fmt.Sprintf("h%d.test", i), "", paths("/", 80), nil)
			if i < 3 {
				s.Group, s.Handler = "shared", &slowing{pages: s.Handler, quick: 40}
			}
			sites, hosts = append(sites, s), append(hosts, s.Host)
		}
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: sites})
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay, o.GiveUpAfter = 2*time.Second, time.Hour
		e := must.Get(Open(o, testLog(t)))(t)
		var list []Seed
		for _, s := range seedsOf(web, hosts) {
			list = append(list, seed(t, s))
		}
		ended := make(chan error)
		go func() {
			_, err := e.Run(context.Background(), list)
			ended <- err
		}()
		time.Sleep(135 * time.Second)
		status := e.Status()
		story, err := e.View().Host(t.Context(), "h1.test")
		other, err2 := e.View().Host(t.Context(), "h5.test")
		must.True(t, err == nil && err2 == nil, "%v %v", err, err2)
		assert.True(t, len(status.Slowdowns) == 1 && status.Slowdowns[0].Slow == 3 && status.Slowdowns[0].Of == 3,
			"slowdowns %+v", status.Slowdowns)
		assert.True(t, strings.Contains(story.Slowdown, "3 of 3 hosts of ") && other.Slowdown == "",
			"one host: %q, another: %q", story.Slowdown, other.Slowdown)
		assert.Equal(t, story.Delay, 2, "the delay s")
		assert.NoError(t, <-ended)
		assert.NoError(t, e.Close())
	})
}
