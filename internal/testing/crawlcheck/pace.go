package crawlcheck

import (
	"fmt"
	"net/http"
	"time"

	"github.com/amble-crawler/amble/internal/rules/manners"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// The numbers of the pace stations.
const (
	leastGap    = time.Second
	crawlDelay  = 3 * time.Second
	retryAfter  = 5 * time.Second
	mostAddress = 4
)

// paceStations judge how fast the requests follow each other.
func paceStations() []Station {
	list := []Station{
		{
			Name: "pace-gap", Level: Courtesy, Source: "courtesy; the default of most crawlers is 1 s to 5 s",
			Rule:  "From the end of a request to a host to the start of the next one is at least a second.",
			Mend:  "Set a delay of a second or more for each host, counted from the end of the response.",
			build: func(h *host) { h.numbered(6) },
			judge: func(e *evidence) { e.gaps(e.log, e.gap); judgePages(e) },
		}, {
			Name: "pace-parallel", Level: Courtesy, Source: "courtesy",
			Rule:  "A host gets one request at a time.",
			Mend:  "Allow one request at a time to a host.",
			build: func(h *host) { h.numbered(6); h.wait = 300 * time.Millisecond },
			judge: func(e *evidence) { e.inFlight(e.log, 1); judgePages(e) },
		}, {
			Name: "pace-slow-host", Level: Courtesy, Source: "courtesy",
			Rule:  "A host that takes two seconds for a response gets one request at a time, with a second's pause.",
			Mend:  "Count the delay from the end of a response, not from the start of the request.",
			build: func(h *host) { h.numbered(4); h.wait = 2 * time.Second },
			judge: func(e *evidence) {
				e.inFlight(e.log, 1)
				e.gaps(e.log.Pages(), e.gap)
				judgePages(e)
			},
		}, {
			Name: "pace-crawl-delay", Level: Should, Source: "Bing and Yandex, Crawl-delay",
			Rule: "The Crawl-delay of a robots.txt is kept between the requests that follow it.",
			Mend: "Use the larger one of the delay that is set and the Crawl-delay of the robots.txt.",
			build: func(h *host) {
				h.robots("User-agent: *\nCrawl-delay: 3\nDisallow:\n")
				h.numbered(4)
			},
			judge: func(e *evidence) { e.gaps(e.log, crawlDelay); judgePages(e) },
		}, {
			Name: "pace-backoff", Level: Courtesy, Source: "courtesy; RFC 9110, 15.6",
			Rule:  "Where one request after the other ends in a server error, the pauses grow.",
			Mend:  "Double the delay of a host with each server error in a row, and give up for a while.",
			build: failing, judge: judgeBackoff,
		}, {
			Name: "pace-address", Level: Courtesy, Source: "courtesy", needs: names,
			Rule: "Hosts with names of their own at one address get at most four requests at a time together.",
			Mend: "Bound the requests at a time to an address, not only those to a name.",
			build: func(h *host) {
				for i := range 7 {
					h.other()
					h.links = append(h.links, fmt.Sprintf("{host%d}/", i+2))
				}
				for _, one := range append(h.others, h) {
					one.group = h.name
					one.numbered(3)
					one.wait = 500 * time.Millisecond
				}
			},
			judge: func(e *evidence) { e.inFlight(e.log, mostAddress); judgePages(e) },
		},
	}
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		for _, form := range []string{"seconds", "date"} {
			list = append(list, retryStation(status, form))
		}
	}
	return list
}

// retryStation is a host that asks for time by Retry-After.
func retryStation(status int, form string) Station {
	const until = "until"
	source := "RFC 9110, 10.2.3"
	if status == http.StatusTooManyRequests {
		source += "; RFC 6585, 4"
	}
	return Station{
		Name: fmt.Sprintf("pace-retry-%d-%s", status, form), Level: Should, Source: source,
		Rule: fmt.Sprintf("After a response %d with Retry-After (%s), the host gets no request before that time.",
			status, form),
		Mend: "Hold the whole host, not only the URL, until the time that Retry-After names; read both of its forms.",
		build: func(h *host) {
			h.numbered(4)
			h.pages[h.own("/~/p1")] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				at := time.Now().Add(retryAfter)
				value := fmt.Sprint(int(retryAfter / time.Second))
				if form == "date" {
					at = at.Add(time.Second).Truncate(time.Second)
					value = at.UTC().Format(http.TimeFormat)
				}
				if h.count("busy") > 0 {
					h.html(http.StatusOK, "").ServeHTTP(w, r)
					return
				}
				h.since(until, at)
				testweb.RetryAfter(status, value).ServeHTTP(w, r)
			})
		},
		judge: func(e *evidence) {
			busy := testweb.Log(nil)
			for _, q := range e.log {
				if q.Status == status && len(busy) == 0 {
					busy = append(busy, q)
				}
			}
			if len(busy) == 0 {
				e.missing("it never requested the page that asks for time")
				return
			}
			first, later := busy[0].Times(0), after(e.log, busy[0].End)
			first.RetryAfter = e.host().since(until, time.Time{}).Sub(busy[0].End)
			var host manners.Host[testweb.Instant]
			host.Pass(first)
			for _, q := range later {
				if v := host.Judge(q.Times(0)); v.Early > 0 {
					e.broken(fmt.Sprintf("it came back %s before the time that Retry-After names",
						v.Early.Round(time.Millisecond)), busy[0], q)
				}
			}
			if len(later) == 0 {
				e.missing("it never came back to the host")
			}
		},
	}
}

// failing is a host all of whose pages but the first have a server error.
func failing(h *host) {
	for i := range 12 {
		path := fmt.Sprintf("/~/p%d", i)
		h.links = append(h.links, path)
		h.pages[h.own(path)] = h.html(http.StatusInternalServerError, "")
	}
	h.least = 4
}

func judgeBackoff(e *evidence) {
	l := status(e.log, http.StatusInternalServerError)
	gaps := l.Gaps()
	switch {
	case len(l) < 2:
		e.missing("it made fewer than two requests that failed")
	case len(gaps) >= 5 && gaps[len(gaps)-1].Length < gaps[0].Length*3/2:
		e.broken(fmt.Sprintf("its pauses did not grow over %d failures in a row", len(l)), l...)
	case len(gaps) < 5 && !e.hasStopped(l) && (len(gaps) < 2 || gaps[len(gaps)-1].Length < gaps[0].Length*3/2):
		e.missing("the run ended before the pauses could grow")
	}
}
