package zoo

import (
	"fmt"
	"strings"
)

// parsers are servers whose pages, lists and rules crash their reader, or take it as long as
// possible. Their pages lead to /good too.
func parsers(s size) []server {
	repeat := strings.Repeat
	deep := repeat("<span>", 480)
	long := "http://elsewhere.test/" + repeat("long/", 380)
	return []server{
		page("title-ends-at-bound", html, "<title>"+repeat("a", 1024)+" b</title>"+link),
		page("tag-in-tag", html, link+repeat("<xxxx", s.of(200_000))),
		page("end-tags-deep-down", html, link+deep+repeat("</p>", s.of(200_000))),
		page("rules-deep-down", html, link+deep+repeat("<hr>", s.of(200_000))),
		largePage("objects-then-misnesting", html, func() string {
			return link + "<table>" + repeat("<object><tr>", s.of(60_000)) + "</table><div>" +
				repeat("<b><span><div></b></div>", s.of(30_000))
		}),
		largePage("attributes-then-end-tags", html, func() string {
			return link + "<math><annotation-xml " + numbered(s.of(100_000), "a%d ") + ">" +
				repeat("</x>", s.of(200_000))
		}),
		largePage("attributes-then-attributes", html, func() string {
			return link + "<p " + numbered(s.of(100_000), "a%d ") + ">" + repeat("<p a>", s.of(100_000))
		}),
		largePage("bodies", html, func() string { return link + numbered(s.of(100_000), "<body a%d>") }),
		page("templates", html, link+repeat("<template>", s.of(100_000))),
		largePage("references-to-long-base", html, func() string {
			return `<base href="` + long + `">` + repeat("<a href=x>", s.of(100_000))
		}),
		largePage("hosts-of-many-scripts", html, func() string {
			return link + repeat("<a href=http://"+repeat("ü.漢字.", 30)+"elsewhere.test/>", s.of(5000))
		}),
		largePage("numbers-in-paths", html, func() string {
			return link + numbered(s.of(9000), "<a href=/%d"+repeat("-1", 900)+"/../good>x</a>")
		}),
		largePage("directives", html, func() string {
			return link + repeat("<meta name=robots content='unavailable_after: x, a, b, c, d, e, f'>", s.of(30_000))
		}),
		page("feed-of-nothing", "application/feed+json",
			`{"version": "https://jsonfeed.org/version/1.1", "items": [{"url": "/good"}`+
				repeat(",{}", s.of(1<<20))+`]}`),
		page("feed-nested", "application/feed+json",
			`{"version": "https://jsonfeed.org/version/1.1", "items": `+repeat("[", s.of(1<<20))),
		largePage("sitemap-of-dates", "application/xml", func() string {
			return "<urlset><url><loc>/good</loc></url>" + repeat("<url><lastmod>x</lastmod></url>", s.of(200_000))
		}),
		page("sitemap-tag-in-tag", "application/xml",
			"<urlset><url><loc>/good</loc></url>"+repeat("<xxxx", s.of(200_000))),
		wildcards(),
	}
}

// wildcards has a robots.txt of rules with stars that may match any of its links, and disallows
// most of the links.
func wildcards() server {
	const rule = "Disallow: /*a*b*c\n"
	a := page("robots-of-wildcards", html, link+numbered(40, "<a href=/denied/"+strings.Repeat("ab", 100)+"/%d>x</a>"))
	a.rules = fmt.Sprintf("User-agent: *\n%sDisallow: /denied\n", strings.Repeat(rule, (499<<10)/len(rule)))
	return a
}
