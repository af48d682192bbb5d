package crawlcheck

import (
	"net/http"
	"strings"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// rules is a station with one robots.txt, open pages and closed ones.
func rules(text string, closed string, open ...string) func(*host) {
	return func(h *host) {
		h.robots(text)
		h.closed(strings.Fields(closed)...)
		h.open(append([]string{"/~/first", "/~/last"}, open...)...)
	}
}

const useLibrary = "Use a parser for robots.txt that follows RFC 9309, not one for the standard of 1994."

// robotsStations judge how the file is read.
func robotsStations() []Station {
	const section = "RFC 9309, 2.2.2"
	return []Station{
		{
			Name: "robots-first", Level: Must, Source: "RFC 9309, 2.3",
			Rule:  "The robots.txt of a host is fetched before any page of it.",
			Mend:  "Fetch /robots.txt of a host, and wait for the end of the response, before its first page.",
			build: func(h *host) { h.numbered(3); h.slowRobots() },
			judge: func(e *evidence) {
				for _, q := range e.log.BeforeRobots() {
					e.broken("it requested "+q.Path+" before the robots.txt had arrived", q)
				}
				judgePages(e)
			},
		}, {
			Name: "robots-origin", Level: Must, Source: "RFC 9309, 2.3",
			Rule:  "The rules of a robots.txt count for its own host and port, and for no other.",
			Mend:  "Keep one robots.txt for each scheme, host and port.",
			build: func(h *host) { origins(h, h.other()) },
		}, {
			Name: "robots-scheme", Level: Must, Source: "RFC 9309, 2.3", needs: secure,
			Rule: "The http origin of a host and its https origin each have a robots.txt of their own.",
			Mend: "Keep one robots.txt for each scheme, host and port.",
			build: func(h *host) {
				b := h.other()
				b.secure = true
				origins(h, b)
			},
		}, {
			Name: "robots-longest", Level: Must, Source: section,
			Rule:  "The longest rule that matches decides, whatever the order of the lines.",
			Mend:  useLibrary,
			build: rules("User-agent: *\nAllow: /~/\nDisallow: /~/shut/\n", "/~/shut/a", "/~/open/a"),
		}, {
			Name: "robots-wildcard", Level: Must, Source: "RFC 9309, 2.2.3",
			Rule:  "A * in a rule stands for any characters.",
			Mend:  useLibrary,
			build: rules("User-agent: *\nDisallow: /~/*/edit\n", "/~/one/edit /~/two/three/edit"),
		}, {
			Name: "robots-end", Level: Must, Source: "RFC 9309, 2.2.3",
			Rule:  "A $ at the end of a rule stands for the end of the URL.",
			Mend:  useLibrary,
			build: rules("User-agent: *\nDisallow: /~/print.html$\n", "/~/print.html"),
		}, {
			Name: "robots-escapes", Level: Must, Source: section,
			Rule: "Rules and URLs are compared after their percent-encodings are made alike.",
			Mend: "Decode escapes of letters, digits and -._~ on both sides, and write the others in upper case.",
			build: rules("User-agent: *\nDisallow: /~/s%65cret\nDisallow: /~/caf%C3%A9\nDisallow: /~/data\n"+
				"Disallow: /~/%6Data\n", "/~/secret /~/caf%c3%a9 /~/d%61ta /~/mata"),
		}, {
			Name: "robots-syntax", Level: Must, Source: section,
			Rule: "Keys match in any case; comments, white space, CRLF and unknown lines do not matter.",
			Mend: useLibrary,
			build: rules("# rules\r\nUSER-AGENT : *   # all\r\nUnknown: x\r\n\r\n  DisAllow:  /~/shut  # this\r\n",
				"/~/shut/a"),
		}, {
			Name: "robots-bom", Level: Should, Source: "Google, How Google interprets the robots.txt specification",
			Rule:  "A byte order mark at the beginning of the file does not hide its first line.",
			Mend:  "Skip the bytes EF BB BF at the beginning of a robots.txt.",
			build: rules("\ufeffUser-agent: *\nDisallow: /~/shut\n", "/~/shut/a"),
		}, {
			Name: "robots-merged", Level: Must, Source: "RFC 9309, 2.2.1",
			Rule: "Several groups for one crawler count as one.",
			Mend: useLibrary,
			build: rules("User-agent: *\nDisallow: /~/one\n\nUser-agent: some-other\nDisallow: /~/first\n\n"+
				"User-agent: *\nDisallow: /~/two\n", "/~/one/a /~/two/a"),
		}, {
			Name: "robots-own-group", Level: Must, Source: "RFC 9309, 2.2.1",
			Rule: "The group with the product token of the crawler's own User-Agent counts for it.",
			Mend: "Look for the group by the same name that the User-Agent header has.",
			build: rules("User-agent: {token}\nDisallow: /~/own\n\nUser-agent: *\nDisallow: /~/of-others\n",
				"/~/own/a"),
		}, {
			Name: "robots-token-case", Level: Must, Source: "RFC 9309, 2.2.1",
			Rule: "The product token matches in any case.",
			Mend: "Compare product tokens without regard to case.",
			build: func(h *host) {
				rules("", "/~/own/a")(h)
				h.rules = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					text := h.text("User-agent: "+swapCase(h.lab.token(r.UserAgent()))+"\nDisallow: /~/own\n", r)
					testweb.Robots(text).ServeHTTP(w, r)
				})
			},
		}, {
			Name: "robots-default-group", Level: Must, Source: "RFC 9309, 2.2.1",
			Rule:  "Without a group of its own, the group of * counts for a crawler.",
			Mend:  useLibrary,
			build: rules("User-agent: some-other\nDisallow:\n\nUser-agent: *\nDisallow: /~/shut\n", "/~/shut/a"),
		}, {
			Name: "robots-several-agents", Level: Must, Source: section,
			Rule:  "A group may begin with several User-agent lines, and counts for all of them.",
			Mend:  useLibrary,
			build: rules("User-agent: *\nUser-agent: some-other\nDisallow: /~/shut\n", "/~/shut/a"),
		}, {
			Name: "robots-500k", Level: Must, Source: "RFC 9309, 2.5",
			Rule: "At least the first 500 KiB of a robots.txt are read.",
			Mend: "Read 500 KiB of the file at least.",
			build: rules("User-agent: *\n"+strings.Repeat("Disallow: /no-such-page-here\n", 480<<10/29)+
				"Disallow: /~/shut\n", "/~/shut/a"),
		}, {
			Name: "robots-cached", Level: Should, Source: "RFC 9309, 2.4",
			Rule:  "The robots.txt is cached, not fetched again for each page.",
			Mend:  "Keep the robots.txt of a host for up to a day.",
			build: func(h *host) { h.numbered(6) },
			judge: judgeCached,
		},
	}
}

// origins are two hosts with other rules for the same paths.
func origins(h, b *host) {
	b.word = h.word
	b.robots("User-agent: *\nDisallow: /~/private\n")
	h.robots("User-agent: *\nDisallow: /~/secret\n")
	h.closed("/~/secret/x")
	h.open("/~/first", "/~/last")
	b.open("/~/secret/y")
	b.closed("/~/private/x")
	h.links = []string{"{host2}/"}
}

// judgeCached is broken if the robots.txt was fetched again and again.
func judgeCached(e *evidence) {
	if l := e.page(e.host(), "/robots.txt"); len(l) > 2 {
		e.broken("it fetched the robots.txt "+plural(len(l), "time"), l...)
	} else if len(l) == 0 {
		e.missing("it never fetched the robots.txt")
	}
	judgePages(e)
}

// swapCase returns a token with the other case of each letter.
func swapCase(token string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' {
			return c - 32
		} else if c >= 'A' && c <= 'Z' {
			return c + 32
		}
		return c
	}, token)
}
