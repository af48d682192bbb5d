package crawlcheck

import (
	"fmt"
	"net/http"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// needlessStations judge requests that bring nothing.
func needlessStations() []Station {
	const form = "Compare URLs in their normal form: RFC 3986, 6.2.2."
	only := func(links ...string) func(*host) {
		return func(h *host) {
			h.open("/~/first", "/~/last")
			h.page("/~/page", "")
			h.links = links
			h.opened = append(h.opened, "/~/page")
			h.pages["/"] = h.html(http.StatusOK, "", append([]string{"/~/first"}, append(links, "/~/last")...)...)
		}
	}
	once := func(e *evidence) { e.once(e.log.Pages()); judgePages(e) }
	return []Station{
		{
			Name: "needless-fragments", Level: Should, Source: "RFC 3986, 3.5", Mend: "Cut fragments off URLs.",
			Rule: "URLs that differ in their fragments are one page.", judge: once,
			build: only("/~/page#one", "/~/page#two", "/~/page", "/~/page#"),
		}, {
			Name: "needless-spelling", Level: Should, Source: "RFC 3986, 6.2.2", Mend: form, judge: once,
			Rule:  "URLs that differ in dot segments or in the case of the scheme are one page.",
			build: only("/~/page", "/~/./page", "/~/x/../page", "/../~/page", `<a href="../../~/page">x</a>`),
		}, {
			Name: "needless-twice", Level: Should, Source: "courtesy", judge: once,
			Mend: "Keep a set of the URLs that were found.",
			Rule: "A page that many pages link to is requested once.",
			build: func(h *host) {
				for i := range 5 {
					h.page(fmt.Sprintf("/~/p%d", i), "", "/", "/~/p0", "/~/p1", fmt.Sprintf("/~/p%d", i))
					h.opened = append(h.opened, fmt.Sprintf("/~/p%d", i))
				}
			},
		}, {
			Name: "needless-redirected", Level: Courtesy, Source: "courtesy", judge: once,
			Mend: "Look a redirect's target up among the URLs that were found before it is followed.",
			Rule: "A page that several redirects lead to is requested once.",
			build: func(h *host) {
				h.open("/~/first", "/~/page", "/~/old1", "/~/old2", "/~/last")
				for _, old := range []string{"/~/old1", "/~/old2"} {
					h.pages[h.own(old)] = h.redirect("/~/page")
				}
			},
		}, {
			Name: "needless-head", Level: Courtesy, Source: "courtesy", Mend: "Request a page with GET at once.",
			Rule:  "A page is not requested with HEAD before it is requested with GET.",
			build: func(h *host) { h.numbered(3) },
			judge: func(e *evidence) {
				for _, q := range e.log.Filter(func(q testweb.Request) bool { return q.Method == http.MethodHead }) {
					e.broken("it requested "+q.Path+" with HEAD", q)
				}
				judgePages(e)
			},
		}, {
			Name: "needless-methods", Level: Must, Source: "RFC 9110, 9.2.1", Mend: "Submit no form with POST.",
			Rule: "Only safe methods are used: a form with the method POST is not submitted.",
			build: func(h *host) {
				h.open("/~/first", "/~/last")
				h.page("/~/order", "")
				h.links = []string{
					`<form action="/~/order" method="post"><input name="a" value="1"><button>Order</button></form>`,
				}
			},
			judge: func(e *evidence) {
				for _, q := range e.log {
					if q.Method != http.MethodGet && q.Method != http.MethodHead && q.Method != http.MethodOptions {
						e.broken("it made a request "+q.Method+" "+q.Path, q)
					}
				}
				judgePages(e)
			},
		}, {
			Name: "needless-unchanged", Level: Should, Source: "RFC 9110, 13.1", needs: kill,
			Mend: "Send If-None-Match or If-Modified-Since with the values of the last response.",
			Rule: "In a later run, a page that has not changed is requested with a condition, or not at all.",
			build: func(h *host) {
				h.numbered(3)
				for path, page := range h.pages {
					tag := `"` + h.word + `"`
					h.pages[path] = field("ETag", tag, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if r.Header.Get("If-None-Match") == tag {
							w.WriteHeader(http.StatusNotModified)
							return
						}
						page.ServeHTTP(w, r)
					}))
				}
			},
			judge: func(e *evidence) {
				seen := make(map[string]testweb.Request)
				for _, q := range e.log.Pages() {
					before, again := seen[q.Path]
					if again && q.IfNoneMatch == "" && q.Start.After(e.starts[len(e.starts)-1]) {
						e.broken("it requested "+q.Path+" again without a condition", before, q)
					}
					seen[q.Path] = q
				}
				if len(after(e.all, e.starts[len(e.starts)-1])) == 0 || !e.hasStopped(e.log) {
					e.missing("it made too few requests after it was started again")
				}
				judgePages(e)
			},
		},
	}
}
