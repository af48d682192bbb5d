package zoo

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	html = "text/html; charset=utf-8"
	link = `<a href="/good">good</a>`
)

// page is a server with one page, and a good page at /good.
func page(name, contentType, body string) server {
	return largePage(name, contentType, func() string { return body })
}

// largePage is a page whose body is made when it is first requested.
func largePage(name, contentType string, body func() string) server {
	body = sync.OnceValue(body)
	return server{name: name, path: "/", serve: func(g *client) {
		for target := g.request(); target != ""; target = g.request() {
			if target == "/good" {
				g.send(sized("text/html", "<title>good</title>"))
			} else {
				g.send(sized(contentType, body()))
			}
		}
	}}
}

// pages are servers with hostile pages. A link to /good leads to a good page if the crawler finds
// it.
func pages(s size) []server {
	return []server{
		largePage("links-100000", html, func() string {
			return link + numbered(s.of(100_000), `<a href="http://elsewhere.test/%d">x</a>`)
		}),
		largePage("attribute-10MB", html, func() string {
			return link + `<p title="` + strings.Repeat("long ", s.of(2<<20)) + `">`
		}),
		page("nested-100000", html, link+strings.Repeat("<div>", s.of(100_000))),
		page("nested-lists", html, link+strings.Repeat("<ul><li>", s.of(10_000))),
		largePage("unclosed-formatting", html, func() string {
			return link + numbered(s.of(5000), "<b id=%d>") + strings.Repeat("<p>x", s.of(20_000))
		}),
		page("tables-in-tables", html, link+strings.Repeat("<table><tr><td>", s.of(5000))),
		largePage("attributes-20000", html, func() string {
			return link + "<p " + numbered(s.of(20_000), "a%d=1 ") + ">"
		}),
		page("comment-endless", html, link+"<!--"+strings.Repeat("-", s.of(500_000))),
		page("script-unclosed", html, link+"<script>"+strings.Repeat("<a href=x>", s.of(20_000))),
		page("nuls", html, "<p>\x00\x00\x00"+link+"<a\x00 href=\x00/nul>"),
		page("bad-utf-8", html, "<p>\xff\xfe\xc3\x28\xe2\x82"+link),
		page("wrong-charset", "text/html; charset=utf-16", link),
		page("unknown-charset", "text/html; charset=klingon", link),
		page("charset-changes", "text/html", `<meta charset=utf-7><meta charset=utf-16>`+link),
		page("binary-as-html", html, "\x7fELF\x02\x01\x01"+strings.Repeat("\x00\x9f\x80<", s.of(20_000))),
		page("base-elsewhere", html, `<base href="file:///etc/"><a href="passwd">p</a>`),
		page("refresh-to-itself", html, `<meta http-equiv=refresh content="0;url=/">`+link),
		page("xml-entities", "application/xhtml+xml",
			`<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><html><p>&b;</p>`+link+`</html>`),
		page("sitemap-entities", "application/xml",
			`<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>&b;</loc></url></urlset>`),
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

// calendar has a page for every month, without end.
func calendar() server {
	return server{name: "calendar", path: "/calendar?year=2026&month=1", serve: func(g *client) {
		for target := g.request(); target != ""; target = g.request() {
			var year, month int
			_, _ = fmt.Sscanf(target, "/calendar?year=%d&month=%d", &year, &month)
			g.send(sized("text/html", fmt.Sprintf(`<a href="/calendar?year=%d&month=%d">next</a>`, year+month/12,
				month%12+1)))
		}
	}}
}

// sessions puts a new session id into every link.
func sessions() server {
	var n atomic.Int64
	return server{name: "sessions", path: "/", serve: func(g *client) {
		for target := g.request(); target != ""; target = g.request() {
			g.send(sized("text/html", fmt.Sprintf(`<a href="/good?PHPSESSID=%032x">good</a>`, n.Add(1))))
		}
	}}
}

// cookies sets very many cookies.
func cookies() server {
	lines := numbered(800, "Set-Cookie: c%d=0123456789012345678901234567890123456789\r\n")
	return server{name: "cookies", path: "/", serve: func(g *client) {
		for target := g.request(); target != ""; target = g.request() {
			g.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + lines + "Content-Length: 24\r\n\r\n" +
				`<a href="/good">good</a>`)
		}
	}}
}
