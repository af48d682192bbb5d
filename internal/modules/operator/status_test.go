package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

var someTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func someStatus() crawl.Status {
	return crawl.Status{
		State: "running", Started: someTime.Add(-75 * time.Second),
		URLs:       map[string]int{"queued": 1200, "retrying": 34, "denied": 5, "fetched": 99},
		HostStates: map[string]int{"busy": 3, "waiting": 3, "failing": 4, "idle": 100},
		InFlight:   2, Run: crawl.Rates{Pages: 1234, Bytes: 3 << 20, Errors: 6},
		Errors: map[string]uint64{"refused": 2, "status_5xx": 3, "dns_not_found": 1, "status_4xx": 9,
			"canceled": 4},
		PagesPerSec: 12.34, BytesPerSec: 2048, Finish: 125,
		Slowest: []crawl.SlowHost{{Host: "slow.example", URLs: 7, Finish: 125}},
	}
}

func TestStatusNamesLimits(t *testing.T) {
	for want, l := range map[string]crawl.Limits{
		"2.5 requests/s (hosts that were due waited 2m 5s); 2.0 MiB/s; 10.0 KiB/s a host": {
			MaxRate: 2.5, RateWait: 125, Bandwidth: 2 << 20, HostBandwidth: 10 << 10,
		},
		"10.0 KiB/s a host": {HostBandwidth: 10 << 10, Received: 5},
	} {
		s, b := someStatus(), new(strings.Builder)
		if s.Limits = l; printStatus(b, s) != nil || !strings.Contains(b.String(), "limits      "+want+"\n") {
			t.Errorf("the status has no %q:\n%s", want, b)
		}
	}
	b := new(strings.Builder)
	assert.True(t, printStatus(b, someStatus()) == nil && !strings.Contains(b.String(), "limits"),
		"limits that nobody has set:\n%s", b)
}

func TestStatusNamesSlowHosts(t *testing.T) {
	s := someStatus()
	s.Slowest = append(s.Slowest, crawl.SlowHost{Host: "next.example.org", URLs: 1, Finish: 60})
	var b strings.Builder
	must.Do(t, printStatus(&b, s))
	for _, want := range []string{
		"  6 errors in this run: 3 status_5xx, 2 refused, 1 dns_not_found\n",
		"left        about 2m 5s; slow.example has 7 URLs\n",
		"slowest     slow.example      about 2m 5s for 7 URLs\n            next.example.org  about 1m 0s for 1 URL\n",
	} {
		assert.Contains(t, b.String(), want, "the status has no")
	}
}

func TestStatusNamesTheStateOfAStalledCrawl(t *testing.T) {
	s := someStatus()
	s.State, s.Reason, s.Since = "stalled", "no space left", someTime.Add(-7*time.Second)
	assert.Contains(t, stateText(s), "stalled, since "+console.InstantText(s.Since, s.At))
}
