package crawlcheck

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The bounds of traps. A trap gives no more links after the last of its pages, so that one that
// nothing stops ends.
const (
	mostTrapped   = 60
	trapPages     = 100
	mostRedirects = 21 // 20 are followed by browsers: Fetch, 4.4
)

// trapped is the area of a host that has no end.
const trapped = "/~/calendar"

// trap is a host with an area that has no end.
func trap(answer func(h *host, path string) http.Handler) func(*host) {
	return func(h *host) {
		h.open("/~/first", "/~/last")
		h.links = []string{trapped + "/"}
		h.rest = func(path string) http.Handler {
			if !strings.HasPrefix(path, h.own(trapped)) {
				return nil
			}
			if h.count("trap") >= trapPages {
				return h.html(http.StatusOK, "")
			}
			return answer(h, path)
		}
	}
}

// trapStations judge whether requests stay bounded where a site has no end.
func trapStations() []Station {
	station := func(name, rule, mend string, most int, what func(*host, string) http.Handler) Station {
		level, source := Courtesy, "courtesy"
		if most == mostRedirects {
			level, source = Should, "RFC 9110, 15.4; Fetch, 4.4"
		}
		return Station{
			Name: "traps-" + name, Level: level, Source: source, Rule: rule, Mend: mend, build: trap(what),
			judge: func(e *evidence) {
				e.most(e.under(trapped), most, "in the trap")
				judgePages(e)
			},
		}
	}
	return []Station{
		station("calendar", "A calendar without end is left after 60 pages at most.",
			"Leave out dates far in the future, and bound the depth of links.", mostTrapped,
			func(h *host, path string) http.Handler {
				month, err := time.Parse("2006/01", strings.TrimPrefix(path, h.own(trapped+"/")))
				if err != nil {
					month = h.lab.began // of the run, so that the months are the same for all of it
					month = time.Date(month.Year(), month.Month(), 1, 0, 0, 0, 0, time.UTC)
				}
				return h.html(http.StatusOK, "", month.AddDate(0, 1, 0).Format(trapped+"/2006/01"))
			}),
		station("session", "Pages whose links have another session id each time are requested 60 times at most.",
			"Know the usual names of session ids, and cut them off URLs.", mostTrapped,
			func(h *host, path string) http.Handler {
				n := h.count("session")
				var links []string
				for i := range 3 {
					links = append(links, fmt.Sprintf(trapped+"/%d?PHPSESSID=%08x", (n+i)%5, n*3+i))
				}
				return h.html(http.StatusOK, "", links...)
			}),
		station("path", "A relative link that makes the path longer each time is followed 60 times at most.",
			"Refuse paths with many segments, or with one segment again and again.", mostTrapped,
			func(h *host, _ string) http.Handler { return h.html(http.StatusOK, "", "more/") }),
		station("redirect-loop", "Redirects in a circle are left after 20 at most.",
			"Bound the redirects that are followed in a row.", mostRedirects,
			func(h *host, path string) http.Handler {
				if strings.HasSuffix(path, "/b") {
					return h.redirect(trapped + "/a")
				}
				return h.redirect(trapped + "/b")
			}),
		station("redirect-chain", "Redirects to another URL each time are left after 20 at most.",
			"Bound the redirects that are followed in a row.", mostRedirects,
			func(h *host, _ string) http.Handler { return h.redirect(fmt.Sprintf(trapped+"/%d", h.count("hop"))) }),
		{
			Name: "traps-maze", Level: Courtesy, Source: "courtesy",
			Rule:  "A maze of links does not keep the crawler from the pages of other hosts.",
			Mend:  "Take the hosts in turns, not one URL after the other as they were found.",
			build: maze,
			judge: judgeMaze,
		},
	}
}

// maze is a host with pages that link to more and more pages, and a neighbour with six.
func maze(h *host) {
	h.links = []string{"/~/m/0"}
	h.rest = func(path string) http.Handler {
		if !strings.HasPrefix(path, h.own("/~/m/")) {
			return nil
		}
		n := h.count("maze")
		if n >= trapPages {
			return h.html(http.StatusOK, "")
		}
		var links []string
		for i := range 5 {
			links = append(links, fmt.Sprintf("/~/m/%d", n*5+i+1))
		}
		return h.html(http.StatusOK, "", append(links, "{host2}/")...)
	}
	h.other().numbered(6)
	h.least = 10
}

func judgeMaze(e *evidence) {
	inside := e.under("/~/m/")
	neighbour := e.log.Host(e.hosts[1].name).Pages()
	const enough = mostTrapped
	switch {
	case len(neighbour) >= 7:
	case len(inside) > enough:
		e.broken(fmt.Sprintf("it made %d requests in the maze while its neighbour got %d of 7", len(inside),
			len(neighbour)), inside[enough:]...)
	default:
		e.missing(fmt.Sprintf("of the maze's neighbour it requested %d of 7 pages", len(neighbour)))
	}
}
