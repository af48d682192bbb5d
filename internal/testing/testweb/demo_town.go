package testweb

import (
	"fmt"
	"strings"
)

// The sites in this file are plain: much text, many links, ordinary rules.

// portal links to all other sites. Its robots.txt is empty.
func (d *demo) portal() {
	s := d.site("www.amble.test", "Amble", Robots(""))
	home := []link{to("/about", "About"), to("/visit/", "Visit"), to("/departments/", "Departments"),
		to("/start", "Start here"),
		to("/links", "Links"), to("/partners", "Partners"), {"/guestbook", "Sign the guestbook", ` rel="nofollow"`}}
	s.page("/", "The town of Amble", home...)
	s.page("/about", "About this town", to("/print/about", "Print"), to("/about#history", "History"),
		to("", "This page"))
	s.pageWithHead("/print/about", "About this town",
		"<link rel=\"canonical\" href=\"http://www.amble.test:PORT/about\">\n")
	s.pageWithHead("/start", "One moment", "<meta http-equiv=\"refresh\" content=\"0; url=/visit/refreshed\">\n")
	s.page("/visit/refreshed", "Welcome")
	s.page("/visit/", "How to get here", to("by-ferry", "By ferry"), to("by-foot", "On foot"), to("./", "Top"))
	s.page("/visit/by-ferry", "By ferry", to("by-foot", "Or walk"))
	s.page("/visit/by-foot", "On foot", to("../about", "About the town"))
	s.pageWithHead("/partners", "Partners", "<meta name=\"robots\" content=\"nofollow\">\n",
		to("/partners/offers", "Offers"))
	s.may("/partners/offers", s.render("/partners/offers", "Offers", "", nil))
	s.may("/guestbook", s.render("/guestbook", "Guestbook", "", nil))

	var departments []link
	for _, name := range []string{"Harbour", "Roads", "Schools", "Parks", "Water", "Ferries", "Lighting", "Markets",
		"Archives", "Music"} {
		path := "/departments/" + strings.ToLower(name)
		departments = append(departments, to(path, name))
		s.page(path, "Department of "+name, to("/departments/", "All departments"))
	}
	s.page("/departments/", "Departments", departments...)

	links := []link{to("//outside.test/", "Far away"), to("mailto:town@amble.test", "Write to us"),
		to("javascript:void(0)", "Nothing")}
	for _, name := range strings.Fields("news docs shop wiki blog archive forum mirror gallery closed down calendar " +
		"slow moved old errors world") {
		links = append(links, to("//"+name+".amble.test/", capital(name)))
	}
	s.page("/links", "The web of the town", links...)
	d.facts.Outside = append(d.facts.Outside, "outside.test")
}

// news is a newspaper: lists of ten articles, a feed, and a sitemap that its robots.txt names.
func (d *demo) news() {
	s := d.site("news.amble.test", "The Amble Gazette",
		d.withPort("text/plain", "User-agent: *\nAllow: /\n\nSitemap: http://news.amble.test:PORT/sitemap.xml\n"))
	const lists, each = 5, 10
	var paths, titles []string
	for i := range lists * each {
		title := proseOf(fmt.Sprint("article ", i)).Headline()
		titles = append(titles, title)
		paths = append(paths, fmt.Sprintf("/2026/%02d/%d-%s", 11-i/5, 100-i, slug(title)))
	}
	for i, path := range paths {
		other := (i*7 + 3) % len(paths)
		s.page(path, titles[i], to(paths[other], titles[other]), to("//wiki.amble.test/"+wikiEntry(i), "Background"))
	}
	for n := 1; n <= lists; n++ {
		var links []link
		for i := (n - 1) * each; i < n*each; i++ {
			links = append(links, to(paths[i], titles[i]))
		}
		head := "<link rel=\"alternate\" type=\"application/rss+xml\" href=\"/feed.xml\">\n"
		if n < lists {
			head += fmt.Sprintf("<link rel=\"next\" href=\"/page/%d\">\n", n+1)
			links = append(links, to(fmt.Sprintf("/page/%d", n+1), "Older news"))
		}
		path, title := fmt.Sprintf("/page/%d", n), fmt.Sprintf("News, page %d", n)
		if n == 1 {
			path, title = "/", "News"
		}
		s.pageWithHead(path, title, head, links...)
	}
	var sitemap, feed strings.Builder
	for i, path := range paths {
		fmt.Fprintf(&sitemap, "<url><loc>http://news.amble.test:PORT%s</loc></url>\n", path)
		fmt.Fprintf(&feed, "<item><title>%s</title><link>http://news.amble.test:PORT%s</link></item>\n",
			titles[i], path)
	}
	s.may("/sitemap.xml", d.withPort("application/xml",
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset "+
			"xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n"+sitemap.String()+"</urlset>\n"))
	s.may("/feed.xml", d.withPort("application/rss+xml",
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rss version=\"2.0\"><channel><title>The Amble "+
			"Gazette</title>\n"+feed.String()+"</channel></rss>\n"))
}

// docs is a manual of chapters and sections with relative links. It has no robots.txt.
func (d *demo) docs() {
	s := d.site("docs.amble.test", "The Harbour Manual", nil)
	const chapters, sections = 6, 8
	var contents []link
	for c := 1; c <= chapters; c++ {
		folder := fmt.Sprintf("/manual/chapter-%d/", c)
		contents = append(contents, to(fmt.Sprintf("chapter-%d/", c), fmt.Sprintf("Chapter %d", c)))
		list := []link{to(fmt.Sprintf("../chapter-%d/", c%chapters+1), "Next chapter")}
		for i := 1; i <= sections; i++ {
			name := fmt.Sprintf("section-%d.html", i)
			list = append(list, to(name, fmt.Sprintf("Section %d.%d", c, i)))
			s.page(folder+name, proseOf(folder+name).Headline(),
				to("./", "Up"), to(fmt.Sprintf("section-%d.html", i%sections+1), "Next"),
				to("../../contents", "Contents"))
		}
		s.page(folder, fmt.Sprintf("Chapter %d", c), list...)
	}
	s.page("/", "The Harbour Manual", to("contents", "Contents"))
	s.pageWithHead("/contents", "Contents", "<base href=\"/manual/\">\n", contents...)
}

// shop disallows areas to every crawler: the cart except for its help page, the checkout, and the
// sorted copies of its lists.
func (d *demo) shop() {
	s := d.site("shop.amble.test", "Amble Chandlery",
		Robots("# goods, not carts\nUser-agent: *\nDisallow: /cart\nAllow: /cart/help\nDisallow: "+
			"/checkout/\nDisallow: /*?*sort=\n"))
	home := []link{to("/cart/help", "How to order"), to("/checkout/", "Check out"), to("/cart/items", "Your cart")}
	for _, kind := range []string{"ropes", "lamps", "sails", "charts", "boots"} {
		folder := "/" + kind + "/"
		home = append(home, to(folder, capital(kind)))
		list := []link{to("?sort=price", "Cheapest first"), to("?view=all&sort=name", "By name")}
		for i := 1; i <= 8; i++ {
			path := fmt.Sprintf("%s%d", folder, i)
			list = append(list, to(path, fmt.Sprintf("%s no. %d", capital(kind), i)))
			s.page(path, fmt.Sprintf("%s no. %d", capital(kind), i), to(fmt.Sprintf("/cart?add=%s-%d", kind, i), "Buy"),
				to(folder, "More"))
		}
		s.page(folder, capital(kind), list...)
		s.never(folder + "?sort=")
		s.never(folder + "?view=all&sort=")
	}
	s.page("/", "Everything for boats", home...)
	s.page("/cart/help", "How to order")
	s.never("/cart?")
	s.never("/cart/items")
	s.never("/checkout/")
}

const wikiEntries = 56

// wikiEntry returns the name of an entry of the wiki.
func wikiEntry(i int) string { return fmt.Sprintf("Entry_%d", i%wikiEntries) }

// wiki is densely linked. Its robots.txt has a byte order mark, CRLF line ends, comments and a
// pattern with both wildcards.
func (d *demo) wiki() {
	s := d.site("wiki.amble.test", "Amble Wiki",
		Robots("\ufeff# wiki\r\nUSER-AGENT : *   # all of you\r\nDisallow: /*/edit$\r\n\r\nDisallow: "+
			"/special:\r\nUnknown-line\r\n"))
	var all []link
	for i := range wikiEntries {
		path := "/" + wikiEntry(i)
		all = append(all, to(path, fmt.Sprintf("Entry %d", i)))
		links := []link{to(path+"/edit", "Edit"), to("/special:history?of="+wikiEntry(i), "History")}
		for j := 1; j <= 8; j++ {
			links = append(links, to("/"+wikiEntry(i*j+j*j), fmt.Sprintf("See also %d", j)))
		}
		s.page(path, proseOf(path).Headline(), links...)
		s.never(path + "/edit")
	}
	s.page("/", "All entries", all...)
	s.never("/special:")
}
