package outcome

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

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

func TestProgressBlock(t *testing.T) {
	wide := `amble: running for 1m 15s; Ctrl-C to stop
  pages       1,234  12.3/s             hosts       3 active, 7 waiting
  received    3.0 MiB  2.0 KiB/s        queue       1,234 URLs
  denied      5 by robots.txt           errors      6
  left        about 2m 5s; slow.example has 7 URLs`
	assert.Equal(t, texts(progressRows(someStatus(), someTime, 80)), wide, "80 columns")
	made := someStatus()
	made.Run.Requisites, made.Run.Recrawls, made.Run.Unchanged = 56, 7, 7
	more := `
  requisites  56                        recrawls    7, 100.0 % unchanged (0 B received)
`
	assert.Contains(t, texts(progressRows(made, someTime, 80)), more, "with requisites and recrawls")
	narrow := `amble: running for 1m 15s; Ctrl-C to stop
  pages       1,234  12.3/s
  hosts       3 active, 7 waiting
  received    3.0 MiB  2.0 KiB/s
  queue       1,234 URLs
  denied      5 by robots.txt
  errors      6
  left        about 2m 5s; slow.example has 7 URLs`
	assert.Equal(t, texts(progressRows(someStatus(), someTime, 60)), narrow, "60 columns")
	for _, r := range progressRows(someStatus(), someTime, 80) {
		assert.True(t, len(r.Text) < 80, "too wide: %s", r.Text)
	}
}

func TestProgressTitles(t *testing.T) {
	s := someStatus()
	s.State = "stopping"
	assert.Equal(t, progressRows(s, someTime, 80)[0].Text,
		"amble: stopping, 2 requests in flight; Ctrl-C again to stop at once")
	s.State, s.Reason, s.Since = "stalled", "no space left", someTime.Add(-7*time.Second)
	assert.Equal(t, progressRows(s, someTime, 80)[0].Text, "amble: stalled for 7s; Ctrl-C to stop")
	got := progressRows(s, someTime, 80)[1]
	assert.True(t, got.Style == console.StyleDanger &&
		strings.Contains(got.Text, "until the disk has room again: no space left"), "%v", got)
	assert.Equal(t, progressRows(crawl.Status{State: "opened"}, someTime, 80)[0].Text, "amble: reading the database")
}

// Without a screen there is one line of the log every ten seconds, and none after the end.
func TestProgressInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log, _ := console.NewLogger(&b, config.Log{Level: "info", Format: "text"})
		stop := console.Watch(Progress(someStatus, time.Now, log), nil)
		time.Sleep(35 * time.Second)
		stop()
		time.Sleep(time.Minute)
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		must.True(t, len(lines) == 3, "%d lines in 35 s:\n%s", len(lines), b.String())
		for _, want := range []string{"level=INFO", "msg=running", "pages=1234", "pages_per_second=12.3",
			"hosts_active=3", "hosts_waiting=7", "queued=1234", "denied=5", "errors=6", `finish="2m 5s"`,
			"slowest_host=slow.example"} {
			assert.Contains(t, lines[0], want, "no")
		}
	})
}

func texts(rows []console.Row) string {
	var lines []string
	for _, r := range rows {
		lines = append(lines, r.Text)
	}
	return strings.Join(lines, "\n")
}
