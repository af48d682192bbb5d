package crawlcheck

import (
	"fmt"
	"hash/fnv"
	"html"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// host is a host of a station. In paths and texts, ~ stands for a word that the seed decides, {token} for
// the product token of the crawler, and {host2} for the URL of the station's second host, without a path.
type host struct {
	lab    *Lab
	name   string
	word   string
	random *rand.Rand
	others []*host // further hosts of the station
	group  string  // of hosts at one address; empty: it has one of its own
	secure bool    // it is the https origin of the station's first host

	rules        http.Handler // its robots.txt
	pages        map[string]http.Handler
	rest         func(path string) http.Handler // of other paths; nil, or it returns nil: 404
	opened, shut []string                       // pages that the first page links to
	links        []string                       // further links of the first page
	wait         time.Duration                  // before each response
	late         bool                           // its link comes after those of others: it may take a crawler long
	least        int                            // requests that a verdict needs; 0: its open pages and the robots.txt

	mu     sync.Mutex // guards what follows
	counts map[string]int
	first  map[string]time.Time
}

func newHost(l *Lab, name string) *host {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name))
	random := rand.New(rand.NewPCG(l.o.Seed, sum.Sum64()))
	words := strings.Fields("kelp tide quay buoy reef cove dune mast oar sail gull tern")
	h := &host{
		lab: l, name: name, random: random, pages: make(map[string]http.Handler), counts: make(map[string]int),
		first: make(map[string]time.Time), word: fmt.Sprint(words[random.IntN(len(words))], 10+random.IntN(90)),
	}
	h.robots("User-agent: *\nDisallow:\n")
	return h
}

// other adds a host to the station.
func (h *host) other() *host {
	b := newHost(h.lab, fmt.Sprintf("n%d-%s", len(h.others)+2, h.name))
	h.others = append(h.others, b)
	return b
}

// own fills in the words of a path.
func (h *host) own(path string) string { return strings.ReplaceAll(path, "~", h.word) }

// text fills in all words of a text for a request.
func (h *host) text(s string, r *http.Request) string {
	if strings.Contains(s, "{token}") {
		s = strings.ReplaceAll(s, "{token}", h.lab.token(r.UserAgent()))
	}
	for i, b := range h.others {
		s = strings.ReplaceAll(s, fmt.Sprintf("{host%d}", i+2), strings.TrimSuffix(h.lab.Web.URL(b.name, "/"), "/"))
	}
	return h.own(s)
}

// robots sets the robots.txt.
func (h *host) robots(text string) {
	h.rules = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(h.text(text, r)))
	})
}

// open adds pages that the first page links to, and that are to be fetched.
func (h *host) open(paths ...string) {
	for _, p := range paths {
		h.page(p, "")
	}
	h.opened = append(h.opened, paths...)
}

// numbered adds n open pages.
func (h *host) numbered(n int) {
	for i := range n {
		h.open(fmt.Sprintf("/~/p%d", i))
	}
}

// closed adds pages that the first page links to, and that are not to be fetched.
func (h *host) closed(paths ...string) {
	for _, p := range paths {
		h.page(p, "")
	}
	h.shut = append(h.shut, paths...)
}

// page adds a page with something in its head, and links.
func (h *host) page(path, head string, links ...string) {
	h.pages[h.own(path)] = h.html(http.StatusOK, head, links...)
}

// serve answers a request.
func (h *host) serve(w http.ResponseWriter, r *http.Request) {
	if h.wait > 0 && r.RequestURI != "/robots.txt" {
		testweb.Slow(h.wait, http.HandlerFunc(h.answer)).ServeHTTP(w, r)
		return
	}
	h.answer(w, r)
}

func (h *host) answer(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	answer := h.pages[r.RequestURI]
	switch {
	case r.RequestURI == "/robots.txt":
		answer = h.rules
	case answer != nil:
	case h.pages[path] != nil:
		answer = h.pages[path]
	case h.rest != nil:
		answer = h.rest(path)
	}
	if answer == nil {
		answer = h.html(http.StatusNotFound, "")
	}
	answer.ServeHTTP(w, r)
}

// home returns the links of the first page: an open page, the closed ones, and the other open ones, so that a crawler
// that reaches the last of them has passed the closed ones.
func (h *host) home() []string {
	shut := slices.Clone(h.shut)
	h.random.Shuffle(len(shut), func(i, j int) { shut[i], shut[j] = shut[j], shut[i] })
	first := min(1, len(h.opened))
	return slices.Concat(h.opened[:first], shut, h.links, h.opened[first:])
}

// html is a page that no other URL has. A link is a URL or, with <, a piece of HTML.
func (h *host) html(status int, head string, links ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(h.name + r.RequestURI))
		prose := testweb.NewProse(rand.New(rand.NewPCG(h.lab.o.Seed, sum.Sum64())))
		var b strings.Builder
		title := prose.Headline()
		fmt.Fprintf(&b, "<!DOCTYPE html>\n<html><head><title>%s, %s</title>%s</head><body>\n<h1>%s</h1>\n", title,
			html.EscapeString(r.RequestURI), h.text(head, r), title)
		for range 8 {
			fmt.Fprintf(&b, "<p>%s</p>\n", prose.Sentence())
		}
		for _, link := range links {
			link = h.text(link, r)
			if !strings.HasPrefix(link, "<") {
				link = `<a href="` + html.EscapeString(link) + `">` + prose.Headline() + "</a>"
			}
			fmt.Fprintf(&b, "<p>%s</p>\n", link)
		}
		b.WriteString("</body></html>\n")
		_, _ = w.Write([]byte(b.String()))
	})
}

// count counts an event, and returns how often it has occurred before.
func (h *host) count(event string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[event]++
	return h.counts[event] - 1
}

// since returns the instant that at had when this event occurred first.
func (h *host) since(event string, at time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if first, known := h.first[event]; known {
		return first
	}
	h.first[event] = at
	return at
}

// field is a handler with a header field.
func field(name, value string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(name, value)
		h.ServeHTTP(w, r)
	})
}

// body is a page with this text.
func body(status int, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	})
}
