package crawlcheck

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// The numbers of the stations of a restart.
const (
	killAfter  = 15 // requests to their hosts
	settled    = 3 * time.Second
	restarting = 30 // pages
)

// restartStations judge what a crawler knows after it was killed.
func restartStations() []Station {
	build := func(pages int, robots string) func(*host) {
		return func(h *host) {
			h.robots(robots)
			h.numbered(pages)
		}
	}
	return []Station{
		{
			Name: "restart-pace", Level: Should, Source: "courtesy; Bing and Yandex, Crawl-delay", needs: kill,
			Rule:  "The Crawl-delay of a host is kept across a kill of the crawler.",
			Mend:  "Write the time of a request to disk before it is sent, and read it at the start.",
			build: build(restarting/3, "User-agent: *\nCrawl-delay: 3\nDisallow:\n"),
			judge: func(e *evidence) {
				again := e.starts[len(e.starts)-1]
				for _, g := range e.log.ShortGaps(crawlDelay) {
					if g.Before.Start.Before(again) && !g.After.Start.Before(again) {
						e.broken(fmt.Sprintf("after the kill it came back %s after the last request",
							g.Length.Round(time.Millisecond)), g.Before, g.After)
					}
				}
				e.restarted(again)
			},
		}, {
			Name: "restart-lost", Level: Courtesy, Source: "courtesy", needs: kill,
			Rule:  "No page that was found before the kill is lost.",
			Mend:  "Keep the URLs that wait on disk, and remove one only when its result is there too.",
			build: build(restarting, "User-agent: *\nDisallow:\n"),
			judge: func(e *evidence) {
				again := e.starts[len(e.starts)-1]
				if len(after(e.log, again)) == len(e.log) || len(after(e.all, again)) == 0 {
					e.missing("it made no requests both before and after the kill")
				} else if e.hasStopped(e.log) {
					for _, p := range e.host().opened {
						if len(e.page(e.host(), p)) == 0 {
							e.broken("it never requested " + e.host().own(p))
						}
					}
				}
				judgePages(e)
			},
		}, {
			Name: "restart-again", Level: Courtesy, Source: "courtesy", needs: kill,
			Rule:  "Pages whose response was complete three seconds before the kill are not requested again.",
			Mend:  "Write results to disk at least every few seconds.",
			build: build(restarting, "User-agent: *\nDisallow:\n"),
			judge: func(e *evidence) {
				again := e.starts[len(e.starts)-1]
				done := make(map[string]testweb.Request)
				for _, q := range e.log.Pages() {
					if q.End.Before(again.Add(-settled)) {
						done[q.Path] = q
					} else if before, was := done[q.Path]; was && !q.Start.Before(again) {
						e.broken("it requested "+q.Path+" again", before, q)
					}
				}
				e.restarted(again)
			},
		},
	}
}

// restarted lacks evidence if there are no requests before and after the kill.
func (e *evidence) restarted(again time.Time) {
	later := len(after(e.log, again))
	if later == 0 || later == len(e.log) {
		e.missing("it made no requests to the host both before and after the kill")
	}
}
