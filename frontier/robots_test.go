package frontier

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

// TestRedirectedRulesAreShared: http redirects to the robots.txt of https on the same host. One request for the file is enough
// for both, and its rules count for both.
func TestRedirectedRulesAreShared(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.answer = func(l Lease) answer {
		a := answer{took: 100 * time.Millisecond, body: "User-agent: *\nDisallow: /private\n", maxAge: 24 * time.Hour}
		if strings.HasPrefix(l.URL.String(), "http://") {
			a.location = "https://h.test/robots.txt"
		}
		return a
	}
	w.add("http://h.test/a", "http://h.test/private/b", "https://h.test/c", "https://h.test/private/d")
	w.open()
	w.finish(time.Minute, time.Hour)
	files := map[string]int{}
	for _, r := range w.log {
		if r.kind == Robots {
			files[r.url]++
		}
	}
	if files["http://h.test/robots.txt"] != 1 || files["https://h.test/robots.txt"] != 1 {
		t.Errorf("requests for robots.txt: %v, want one of each", files)
	}
	if pages := w.pages(); len(pages) != 2 {
		t.Errorf("asked for %v", pages)
	}
	w.checkManners()
}

// TestRobotsUnreachableForAMonth: while its robots.txt cannot be read for more than thirty days, an origin counts as one without a robots.txt only
// if another of its host is being crawled all the while.
func TestRobotsUnreachableForAMonth(t *testing.T) {
	for _, other := range []bool{true, false} {
		w := newWorld(t, testOptions(), newMemory())
		w.quick = true
		w.answer = func(l Lease) answer {
			a := answer{took: 100 * time.Millisecond, body: "User-agent: *\nCrawl-delay: 3600\n", maxAge: 24 * time.Hour}
			if l.Kind == Robots && l.Robots.Origin.Port == 8080 {
				a.failure, a.signal = robots.FailureTimeout, politeness.SignalUnreachable
			}
			return a
		}
		w.add("http://h.test:8080/a")
		if other {
			for i := range 1000 { // more than a month's work
				w.add(fmt.Sprintf("http://h.test/%d", i))
			}
		}
		w.open()
		w.run(29 * 24 * time.Hour)
		if n := len(pagesAt(w, 8080)); n != 0 {
			t.Fatalf("%d pages before thirty days", n)
		}
		w.run(3 * 24 * time.Hour)
		if n := len(pagesAt(w, 8080)); (n > 0) != other {
			t.Errorf("another origin can be reached: %t; %d pages were asked for after thirty days", other, n)
		}
	}
}

func pagesAt(w *world, port uint16) (urls []string) {
	for _, text := range w.pages() {
		if u, err := weburl.Parse(text); err == nil && u.Origin().Port == port {
			urls = append(urls, text)
		}
	}
	return urls
}
