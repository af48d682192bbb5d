package zoo

import (
	"fmt"
	"strings"
)

// parsers are servers whose pages, lists and rules crash their reader, or take it as long as
// possible. Their pages lead to /good too.
func parsers() []server {
	repeat := strings.Repeat
	deep := repeat("<span>", 480)
	long := "http://elsewhere.test/" + repeat("long/", 380)
	return []server{
		page("title-ends-at-bound", html, "<title>"+repeat("a", 1024)+" b</title>"+link),
		page("tag-in-tag", html, link+repeat("<xxxx", 200_000)),
		page("end-tags-deep-down", html, link+deep+repeat("</p>", 200_000)),
		page("rules-deep-down", html, link+deep+repeat("<hr>", 200_000)),
		page("objects-then-misnesting", html,
			link+"<table>"+repeat("<object><tr>", 60_000)+"</table><div>"+repeat("<b><span><div></b></div>", 30_000)),
		page("attributes-then-end-tags", html,
			link+"<math><annotation-xml "+numbered(100_000, "a%d ")+">"+repeat("</x>", 200_000)),
		page("attributes-then-attributes", html, link+"<p "+numbered(100_000, "a%d ")+">"+repeat("<p a>", 100_000)),
		page("bodies", html, link+numbered(100_000, "<body a%d>")),
		page("templates", html, link+repeat("<template>", 100_000)),
		page("references-to-long-base", html, `<base href="`+long+`">`+repeat("<a href=x>", 100_000)),
		page("hosts-of-many-scripts", html, link+repeat("<a href=http://"+repeat("ü.漢字.", 30)+"elsewhere.test/>",
			5000)),
		page("numbers-in-paths", html, link+numbered(9000, "<a href=/%d"+repeat("-1", 900)+"/../good>x</a>")),
		page("directives", html, link+repeat("<meta name=robots content='unavailable_after: x, a, b, c, d, e, f'>",
			30_000)),
		page("feed-of-nothing", "application/feed+json",
			`{"version": "https://jsonfeed.org/version/1.1", "items": [{"url": "/good"}`+repeat(",{}", 1<<20)+`]}`),
		page("feed-nested", "application/feed+json",
			`{"version": "https://jsonfeed.org/version/1.1", "items": `+repeat("[", 1<<20)),
		page("sitemap-of-dates", "application/xml",
			"<urlset><url><loc>/good</loc></url>"+repeat("<url><lastmod>x</lastmod></url>", 200_000)),
		page("sitemap-tag-in-tag", "application/xml", "<urlset><url><loc>/good</loc></url>"+repeat("<xxxx", 200_000)),
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
