package crawl

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/testweb"
)

// endlessSite is a site of as many pages as anybody asks for: each links to two more, and takes a while.
func endlessSite(host string, takes time.Duration) testweb.Site {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		testweb.Page(host, fmt.Sprintf("/%d", 2*n+1), fmt.Sprintf("/%d", 2*n+2)).ServeHTTP(w, r)
	})
	return testweb.Site{Host: host, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			testweb.Robots("").ServeHTTP(w, r)
			return
		}
		testweb.Slow(takes, page).ServeHTTP(w, r)
	})}
}

// endlessSites are several of them.
func endlessSites(n int, takes time.Duration) (sites []testweb.Site) {
	for i := range n {
		sites = append(sites, endlessSite(fmt.Sprintf("good-%d.test", i), takes))
	}
	return sites
}
