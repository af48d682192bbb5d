package crawlcheck

import "net/http"

// directiveStations judge what pages say about their links.
func directiveStations() []Station {
	const google = "Google, Robots meta tag, data-nosnippet and X-Robots-Tag specifications"
	station := func(name, rule, source string, build func(h *host, link string)) Station {
		return Station{
			Name: "directives-" + name, Level: Should, Rule: rule, Source: source,
			Mend: "Read the directive before the links of the page are taken.",
			build: func(h *host) {
				h.page("/~/plain", "", "/~/child")
				h.page("/~/child", "")
				h.page("/~/hidden", "")
				h.links = []string{"/~/list"}
				h.opened, h.shut = []string{"/~/plain", "/~/last"}, nil
				h.page("/~/last", "")
				build(h, "/~/hidden")
				h.hide("/~/hidden", "/~/list", "/~/child")
			},
			judge: judgePages,
		}
	}
	head := func(text string) func(*host, string) {
		return func(h *host, link string) { h.page("/~/list", text, link) }
	}
	field := func(value string) func(*host, string) {
		return func(h *host, link string) {
			page := h.html(http.StatusOK, "", link)
			h.pages[h.own("/~/list")] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Robots-Tag", h.text(value, r))
				page.ServeHTTP(w, r)
			})
		}
	}
	return []Station{
		station("meta-nofollow", "The links of a page with the robots meta tag nofollow are not followed.",
			google, head(`<meta name="robots" content="nofollow">`)),
		station("meta-none", "The links of a page with the robots meta tag none are not followed.",
			google, head(`<META NAME="ROBOTS" CONTENT="NONE">`)),
		station("meta-agent", "A meta tag with the crawler's own product token counts for it.",
			google, head(`<meta name="{token}" content="noindex, nofollow">`)),
		station("header-nofollow", "The links of a page with X-Robots-Tag: nofollow are not followed.",
			google, field("noindex, nofollow")),
		station("header-agent", "X-Robots-Tag with the crawler's own product token counts for it.",
			google, field("{token}: nofollow")),
		station("rel-nofollow", "A link with rel=nofollow is not followed.",
			"HTML, 4.6.7.15; Google, Qualify your outbound links", func(h *host, link string) {
				h.page("/~/list", "", `<a rel="noopener nofollow" href="`+link+`">x</a>`)
			}),
	}
}

// hide makes a page closed that a list, which is open, has a link to; then these pages are to be seen as well.
func (h *host) hide(path string, seen ...string) {
	h.shut = append(h.shut, path)
	h.opened = append(h.opened, seen...)
	h.pages["/"] = h.html(http.StatusOK, "", "/~/plain", "/~/list", "/~/last")
}
