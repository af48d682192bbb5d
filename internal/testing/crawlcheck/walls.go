package crawlcheck

import (
	"fmt"
	"net/http"
	"time"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// The bounds of walls.
const (
	wallOpens   = 14 // pages that are answered before it stands
	wallPages   = 60
	mostRefused = 15
)

// wallStations judge whether a crawler stops that is refused.
func wallStations() []Station {
	station := func(name, what string, refuse http.Handler) Station {
		return Station{
			Name: "walls-" + name, Level: Courtesy, Source: "courtesy",
			Rule: fmt.Sprintf("A host that answers every page with %s is left alone after %d such responses.", what,
				mostRefused),
			Mend:  "Count refusals in a row, and hold the whole host for minutes, longer each time.",
			build: func(h *host) { h.wall(refuse) },
			judge: func(e *evidence) {
				e.most(e.log.Pages().Filter(func(q testweb.Request) bool { return e.host().refused(q) }), mostRefused,
					"that were refused")
			},
		}
	}
	return []Station{
		station("403", "403", body(http.StatusForbidden, "<h1>Forbidden</h1>")),
		station("429", "429 without Retry-After", body(http.StatusTooManyRequests, "<h1>Too Many Requests</h1>")),
		station("challenge-403", "a challenge", challenges(http.StatusForbidden)),
		station("challenge-503", "a challenge (503)", challenges(http.StatusServiceUnavailable)),
		station("challenge-200", "a challenge (200)", challenges(http.StatusOK)),
	}
}

// wall answers some pages, and refuses all from then on. Its pages are in six directories.
func (h *host) wall(refuse http.Handler) {
	for i := range wallPages {
		path := fmt.Sprintf("/~/d%d/p%d", i%6, i)
		page := h.html(http.StatusOK, "")
		h.links = append(h.links, path)
		h.pages[h.own(path)] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h.count("answered") < wallOpens {
				page.ServeHTTP(w, r)
				return
			}
			h.since("wall", time.Now())
			refuse.ServeHTTP(w, r)
		})
	}
	h.least = wallOpens + 2
}

// refused reports whether a request was refused by the wall: it ended after the wall's first refusal.
func (h *host) refused(q testweb.Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, stands := h.first["wall"]
	return stands && q.End.After(at)
}
