package testweb

import (
	"fmt"
	"net/http"
	"time"
)

// The sites in this file differ by their robots.txt.

// sharedAddress is the Group of three small sites of one provider.
const sharedAddress = "shared hosting"

// blog demands half a second between requests.
func (d *demo) blog() {
	s := d.site("blog.amble.test", "Notes from the quay", Robots("User-agent: *\nCrawl-delay: 0.5\n"))
	d.facts.CrawlDelay[s.host] = 500 * time.Millisecond
	var posts []link
	for i := 1; i <= 20; i++ {
		path := fmt.Sprintf("/post/%d", i)
		posts = append(posts, to(path, fmt.Sprintf("Note %d", i)))
		s.page(path, proseOf(s.host+path).Headline(), to(fmt.Sprintf("/post/%d", i%20+1), "Next note"),
			to("//news.amble.test/", "The paper"))
	}
	s.page("/", "Notes from the quay", posts...)
}

// archive demands a whole second, and disallows its scans.
func (d *demo) archive() {
	s := d.site("archive.amble.test", "Town archive", Robots("User-agent: *\nDisallow: /scans/\nCrawl-delay: 1\n"))
	d.facts.CrawlDelay[s.host] = time.Second
	var years []link
	for year := 1901; year <= 1908; year++ {
		path := fmt.Sprintf("/years/%d", year)
		years = append(years, to(path, fmt.Sprint(year)))
		s.page(path, fmt.Sprintf("The year %d", year), to(fmt.Sprintf("/scans/%d.html", year), "Scanned pages"))
	}
	s.page("/", "Years in the archive", years...)
	s.never("/scans/")
}

const forumRobots = "User-agent: *\nDisallow: /\n\nUser-agent: amble\nDisallow: /private/\nDisallow: /search\n"

// forum disallows all crawlers except amble, with two exceptions.
func (d *demo) forum() {
	s := d.site("forum.amble.test", "Forum", Robots(forumRobots))
	d.last().Group = sharedAddress
	home := []link{to("/search?q=boats", "Search"), to("/private/", "Messages")}
	for board := 1; board <= 5; board++ {
		folder := fmt.Sprintf("/board-%d/", board)
		home = append(home, to(folder, fmt.Sprintf("Board %d", board)))
		var threads []link
		for i := 1; i <= 7; i++ {
			path := fmt.Sprintf("%sthread-%d", folder, i)
			threads = append(threads, to(path, fmt.Sprintf("Thread %d", i)))
			s.page(path, proseOf(s.host+path).Headline(), to(folder, "Board"), to("/private/write?to="+path, "Answer"))
		}
		s.page(folder, fmt.Sprintf("Board %d", board), threads...)
	}
	s.page("/", "Forum", home...)
	s.never("/search")
	s.never("/private/")
}

// mirror redirects its robots.txt to another host: the forum's rules count for it too.
func (d *demo) mirror() {
	robots := Redirect(http.StatusMovedPermanently, d.text("//forum.amble.test/robots.txt"))
	s := d.site("mirror.amble.test", "Mirror", robots)
	d.last().Group = sharedAddress
	home := []link{to("/private/keys", "Keys")}
	for i := 1; i <= 12; i++ {
		path := fmt.Sprintf("/files/%d.html", i)
		home = append(home, to(path, fmt.Sprintf("File %d", i)))
		s.page(path, fmt.Sprintf("File %d", i))
	}
	s.page("/", "Mirror", home...)
	s.never("/private/")
}

// gallery responds with 200 and an HTML page to every unknown path, its robots.txt included. Such a
// file has no rules.
func (d *demo) gallery() {
	s := d.site("gallery.amble.test", "Gallery", nil)
	notFound := s.render("not found", "We could not find that picture", "", nil)
	routes := s.routes
	d.last().Group = sharedAddress
	d.last().Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := routes[r.URL.Path]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		notFound.ServeHTTP(w, r)
	})
	home := []link{to("/pictures/lost", "The lost picture")}
	for i := 1; i <= 14; i++ {
		path := fmt.Sprintf("/pictures/%d", i)
		home = append(home, to(path, fmt.Sprintf("Picture %d", i)))
		s.page(path, fmt.Sprintf("Picture %d", i), to(fmt.Sprintf("/pictures/%d", i%14+1), "Next picture"))
	}
	s.page("/", "Gallery", home...)
	s.must("/pictures/lost", http.StatusOK, notFound)
}

// closed disallows all crawlers.
func (d *demo) closed() {
	s := d.site("closed.amble.test", "Closed", Robots("User-agent: *\nDisallow: /\n"))
	s.never("/")
}

// down has an unreachable robots.txt. Until it is reachable, nothing on down may be fetched.
func (d *demo) down() {
	s := d.site("down.amble.test", "Down", Status(http.StatusServiceUnavailable))
	s.never("/")
}

// calendar is the trap: robots.txt disallows the earlier months, the later ones have no end.
func (d *demo) calendar() {
	s := d.site("calendar.amble.test", "Calendar", Robots("User-agent: *\nDisallow: /past/\n"))
	s.page("/", "Calendar", to("/month/1", "Next month"), to("/past/month/1", "Last month"))
	s.never("/past/")
	s.facts.MayUnder = append(s.facts.MayUnder, Ref{s.host, "/month/"})
	routes := s.routes
	d.last().Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := routes[r.URL.Path]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		s.calendarPage(r.URL.Path).ServeHTTP(w, r)
	})
}

// calendarPage is any month, earlier or later, or any day of one.
func (s *demoSite) calendarPage(path string) http.Handler {
	for _, folder := range []string{"/month/", "/past/month/"} {
		var month, day int
		if n, _ := fmt.Sscanf(path, folder+"%d/day/%d", &month, &day); n == 2 {
			return s.render(path, fmt.Sprintf("Day %d of month %d", day, month), "",
				[]link{to(fmt.Sprint(folder, month), "Month")})
		}
		if n, _ := fmt.Sscanf(path, folder+"%d", &month); n == 1 {
			return s.render(path, fmt.Sprintf("Month %d", month), "", []link{
				to(fmt.Sprint(folder, month+1), "The month after"),
				to(fmt.Sprintf("%s%d/day/1", folder, month), "First day"),
				to(fmt.Sprintf("%s%d/day/15", folder, month), "Market day"),
			})
		}
	}
	return Status(http.StatusNotFound)
}

// slow takes a while for every response, its robots.txt included.
func (d *demo) slow() {
	s := d.site("slow.amble.test", "The slow library", Robots("User-agent: *\nDisallow:\n"))
	var shelves []link
	for i := 1; i <= 30; i++ {
		path := fmt.Sprintf("/shelf/%d", i)
		shelves = append(shelves, to(path, fmt.Sprintf("Shelf %d", i)))
		s.page(path, fmt.Sprintf("Shelf %d", i))
	}
	s.page("/", "The slow library", shelves...)
	d.last().Handler = Slow(demoSlowness, s.routes)
}
