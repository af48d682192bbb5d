package zoo

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
)

const (
	html = "text/html; charset=utf-8"
	link = `<a href="/good">good</a>`
)

// page is an animal with one page, and a good one at /good.
func page(name, contentType, body string) animal {
	return animal{name: name, path: "/", bite: func(g *guest) {
		for target := g.asked(); target != ""; target = g.asked() {
			if target == "/good" {
				g.say(sized("text/html", "<title>good</title>"))
			} else {
				g.say(sized(contentType, body))
			}
		}
	}}
}

// pages are animals whose pages are the trouble. A link to /good leads to a good
// page where it is found.
func pages() []animal {
	return []animal{
		page("links-100000", html, link+numbered(100_000, `<a href="http://elsewhere.test/%d">x</a>`)),
		page("attribute-10MB", html, link+`<p title="`+strings.Repeat("long ", 2<<20)+`">`),
		page("nested-100000", html, link+strings.Repeat("<div>", 100_000)),
		page("nested-lists", html, link+strings.Repeat("<ul><li>", 10_000)),
		page("unclosed-formatting", html, link+numbered(5000, "<b id=%d>")+strings.Repeat("<p>x", 20_000)),
		page("tables-in-tables", html, link+strings.Repeat("<table><tr><td>", 5000)),
		page("attributes-20000", html, link+"<p "+numbered(20_000, "a%d=1 ")+">"),
		page("comment-endless", html, link+"<!--"+strings.Repeat("-", 500_000)),
		page("script-unclosed", html, link+"<script>"+strings.Repeat("<a href=x>", 20_000)),
		page("nuls", html, "<p>\x00\x00\x00"+link+"<a\x00 href=\x00/nul>"),
		page("bad-utf-8", html, "<p>\xff\xfe\xc3\x28\xe2\x82"+link),
		page("wrong-charset", "text/html; charset=utf-16", link),
		page("unknown-charset", "text/html; charset=klingon", link),
		page("charset-changes", "text/html", `<meta charset=utf-7><meta charset=utf-16>`+link),
		page("binary-as-html", html, "\x7fELF\x02\x01\x01"+strings.Repeat("\x00\x9f\x80<", 20_000)),
		page("base-elsewhere", html, `<base href="file:///etc/"><a href="passwd">p</a>`),
		page("refresh-to-itself", html, `<meta http-equiv=refresh content="0;url=/">`+link),
		page("xml-entities", "application/xhtml+xml", `<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><html><p>&b;</p>`+link+`</html>`),
		page("sitemap-entities", "application/xml", `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>&b;</loc></url></urlset>`),
		calendar(), sessions(), cookies(),
	}
}

func numbered(n int, format string) string {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// calendar has a page for every month there will ever be.
func calendar() animal {
	return animal{name: "calendar", path: "/calendar?year=2026&month=1", bite: func(g *guest) {
		for target := g.asked(); target != ""; target = g.asked() {
			var year, month int
			_, _ = fmt.Sscanf(target, "/calendar?year=%d&month=%d", &year, &month)
			g.say(sized("text/html", fmt.Sprintf(`<a href="/calendar?year=%d&month=%d">next</a>`, year+month/12, month%12+1)))
		}
	}}
}

// sessions gives every link a session of its own.
func sessions() animal {
	var n atomic.Int64
	return animal{name: "sessions", path: "/", bite: func(g *guest) {
		for target := g.asked(); target != ""; target = g.asked() {
			g.say(sized("text/html", fmt.Sprintf(`<a href="/good?PHPSESSID=%032x">good</a>`, n.Add(1))))
		}
	}}
}

// cookies sets cookies without end.
func cookies() animal {
	lines := numbered(800, "Set-Cookie: c%d=0123456789012345678901234567890123456789\r\n")
	return animal{name: "cookies", path: "/", bite: func(g *guest) {
		for target := g.asked(); target != ""; target = g.asked() {
			g.say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + lines + "Content-Length: 24\r\n\r\n" + `<a href="/good">good</a>`)
		}
	}}
}
