package crawlcheck

import (
	"fmt"
	"net/http"
	"time"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// slowRobots lets the robots.txt take a while, so that nobody has it by chance.
func (h *host) slowRobots() { h.rules = testweb.Slow(400*time.Millisecond, h.rules) }

// patience is for how long a request is answered badly. After that the status is 500, which costs a crawler that tries
// again and again less time, and is no evidence any more.
const patience, gaveIn = 20 * time.Second, "gave in"

// instead is a station whose robots.txt is not one.
func instead(answer http.Handler) func(*host) {
	return func(h *host) {
		h.rules = answer
		h.page("/", "", "/~/a", "/~/b")
	}
}

// unreachably is a station whose robots.txt does not arrive.
func unreachably(answer http.Handler) func(*host) {
	return func(h *host) {
		instead(h.patiently(answer))(h)
	}
}

// patiently answers requests like this for a while.
func (h *host) patiently(answer http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		if now.Sub(h.since("patience", now)) > patience {
			h.since(gaveIn, now)
			testweb.Status(http.StatusInternalServerError).ServeHTTP(w, r)
			return
		}
		answer.ServeHTTP(w, r)
	})
}

// judgeUnreachable is broken if anything but the robots.txt was requested.
func judgeUnreachable(e *evidence) {
	until := e.host().since(gaveIn, e.end)
	for _, q := range e.log.Pages() {
		if q.Start.Before(until) {
			e.broken("it requested "+q.Path+" although it had no robots.txt", q)
		} else {
			e.missing("it requested " + q.Path + " after it had got a server error in place of nothing")
		}
	}
	if l := e.page(e.host(), "/robots.txt"); !e.hasStopped(l) {
		e.missing("the run ended before it was clear whether pages follow")
	}
}

// challenges are what walls show in place of a page, by status.
func challenges(status int) http.Handler {
	switch status {
	case http.StatusOK:
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body(status, "<title>Making sure you're not a bot!</title><script id=\"anubis_challenge\" "+
				`type="application/json">{"key":"`+fmt.Sprint(len(r.RequestURI))+`"}</script>`).ServeHTTP(w, r)
		})
	case http.StatusAccepted:
		return field("x-amzn-waf-action", "challenge", body(status, "<script>window.gokuProps = {}</script>"))
	case http.StatusForbidden:
		return field("cf-mitigated", "challenge", body(status, "<title>Just a moment...</title>"))
	}
	return body(status,
		`<title>DDoS-Guard</title><script src="/.well-known/ddos-guard/js-challenge/index.js"></script>`)
}

// The pages of a host whose robots.txt changes. With a second's pause they take longer than a minute.
const refreshPages = 80

// refreshed is a station whose robots.txt has a lifetime of a minute, and is another one when it is fetched again.
func refreshed(first string, then func(*host) http.Handler) func(*host) {
	return func(h *host) {
		h.robots(first)
		h.rules = testweb.Flaky(1, field("Cache-Control", "max-age=60", h.rules), then(h))
		var links []string
		for i := range refreshPages {
			if links = append(links, fmt.Sprintf("/~/p%d", i)); i%4 == 3 {
				links = append(links, fmt.Sprintf("/~/shut/%d", i))
			}
		}
		for _, p := range links {
			h.page(p, "")
		}
		h.page("/", "", links...)
	}
}

// judgeRefreshed is broken if a closed page was requested after the file was fetched a second time.
func judgeRefreshed(e *evidence) {
	l := e.page(e.host(), "/robots.txt")
	if len(l) < 2 {
		e.missing("it fetched the robots.txt " + plural(len(l), "time") + "; it may be kept for a minute, or a day")
		return
	}
	for _, q := range after(e.under("/~/shut"), l[1].End) {
		e.broken("it requested "+q.Path+" after it had fetched the robots.txt again", q)
	}
	if len(after(e.log.Pages(), l[1].End)) == 0 {
		e.missing("it requested no page after it had fetched the robots.txt again")
	}
}

// robotsFailures judge what follows from a file that does not arrive.
func robotsFailures() []Station {
	const unreachable, wait = "RFC 9309, 2.3.1.4", "Fetch nothing of a host while its robots.txt is unreachable."
	list := []Station{
		{
			Name: "robots-redirect", Level: Must, Source: "RFC 9309, 2.3.1.2",
			Rule: "A robots.txt that redirects to another host has its rules there, and they count for the first host.",
			Mend: "Follow redirects of a robots.txt, five at least, to other hosts too.",
			build: func(h *host) {
				b := h.other()
				b.word = h.word
				b.pages["/rules.txt"] = testweb.Robots(h.own("User-agent: *\nDisallow: /~/shut\n"))
				h.redirectRobots(1, "{host2}/rules.txt")
				h.closed("/~/shut/a")
				h.open("/~/first", "/~/last")
			},
		}, {
			Name: "robots-redirects", Level: Should, Source: "RFC 9309, 2.3.1.2",
			Rule: "Five redirects of a robots.txt in a row are followed.",
			Mend: "Follow at least five redirects in a row before a robots.txt counts as missing.",
			build: func(h *host) {
				rules("User-agent: *\nDisallow: /~/shut\n", "/~/shut/a")(h)
				h.pages["/rules.txt"] = h.rules
				h.redirectRobots(5, "/rules.txt")
			},
		}, {
			Name: "robots-404", Level: Should, Source: "RFC 9309, 2.4",
			Rule:  "That there is no robots.txt (404) is remembered too, not asked before each page.",
			Mend:  "Keep the result of a request for robots.txt, whatever it is.",
			build: func(h *host) { h.numbered(6); h.rules = testweb.Status(http.StatusNotFound) },
			judge: judgeCached,
		}, {
			Name: "robots-500", Level: Must, Source: unreachable, Mend: wait,
			Rule:  "While the robots.txt has a server error, everything is disallowed.",
			build: instead(testweb.Status(http.StatusInternalServerError)), judge: judgeUnreachable,
		}, {
			Name: "robots-429", Level: Courtesy, Mend: wait,
			Source: "Google, How Google interprets the robots.txt specification",
			Rule:   "A robots.txt with the status 429 counts as a server error: nothing is fetched.",
			build:  instead(testweb.RetryAfter(http.StatusTooManyRequests, "600")), judge: judgeUnreachable,
		}, {
			Name: "robots-timeout", Level: Must, Source: unreachable, Mend: wait,
			Rule: "While the robots.txt does not arrive in time, everything is disallowed.",
			build: unreachably(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				timer := time.NewTimer(15 * time.Second)
				defer timer.Stop()
				select {
				case <-r.Context().Done():
				case <-timer.C:
				}
				panic(http.ErrAbortHandler)
			})), judge: judgeUnreachable,
		}, {
			Name: "robots-closed", Level: Must, Source: unreachable, Mend: wait,
			Rule:  "While the connection for the robots.txt is closed without a response, everything is disallowed.",
			build: unreachably(testweb.Reset()), judge: judgeUnreachable,
		}, {
			Name: "robots-cut", Level: Should, Source: "RFC 9110, 15.1 and RFC 9112, 8", Mend: wait,
			Rule: "A robots.txt that breaks off before its end is incomplete, and does not allow what it lacks.",
			build: unreachably(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "5000")
				_, _ = w.Write([]byte("User-agent: *\nDisallow: /no-such-page\n"))
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})),
			judge: judgeUnreachable,
		}, {
			Name: "robots-stricter", Level: Should, Source: "RFC 9309, 2.4",
			Rule: "Once a newer robots.txt was fetched, its rules count, for URLs that were found before too.",
			Mend: "Match URLs with the newest robots.txt when they are requested, not when they are found.",
			build: refreshed("User-agent: *\nDisallow:\n", func(h *host) http.Handler {
				return testweb.Robots(h.own("User-agent: *\nDisallow: /~/shut\n"))
			}), judge: judgeRefreshed,
		}, {
			Name: "robots-challenge-later", Level: Courtesy, Source: "courtesy",
			Rule: "A challenge page that comes in place of a known robots.txt does not lift its rules.",
			Mend: "Keep the last robots.txt in force while a response in its place is none.",
			build: refreshed("User-agent: *\nDisallow: /~/shut\n", func(*host) http.Handler {
				return challenges(http.StatusOK)
			}), judge: judgeRefreshed,
		},
	}
	for _, status := range []int{200, 202, 403, 503} {
		list = append(list, Station{
			Name: fmt.Sprint("robots-challenge-", status), Level: Courtesy, Source: "courtesy",
			Rule: fmt.Sprintf("A challenge page with status %d in place of the robots.txt allows nothing.", status),
			Mend: "Tell challenges of known walls from a robots.txt, and wait.", build: instead(challenges(status)),
			judge: judgeUnreachable,
		})
	}
	return list
}

// redirectRobots lets the robots.txt redirect n times, at last to a URL.
func (h *host) redirectRobots(n int, to string) {
	hop := func(i int) string { return fmt.Sprintf("/hop/%d", i) }
	for i := 1; i <= n; i++ {
		target := hop(i + 1)
		if i == n {
			target = to
		}
		h.pages[hop(i)] = h.redirect(target)
	}
	h.rules = h.pages[hop(1)]
}

// redirect redirects to a URL.
func (h *host) redirect(to string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", h.text(to, r))
		w.WriteHeader(http.StatusFound)
	})
}
