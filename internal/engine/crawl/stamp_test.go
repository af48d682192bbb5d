package crawl

import (
	"net/http"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// readings counts how often the page with a path was read, and how often it was known.
func readings(t *testing.T, o Options, u string) (read, known int) {
	t.Helper()
	for _, line := range outputLines(t, o.Archive.Dir)[u] {
		if line.Extracted == archive.ExtractedEarlier {
			known++
		} else {
			read++
		}
	}
	return read, known
}

// TestUnchangedPages: a page is not read again as long as its body, its header, the settings and the scope are the
// same, but for one visit of 32 or so. What says something about its use is always read.
func TestUnchangedPages(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		var noFollow atomic.Bool
		links := `<a href="/new">new</a>`
		routes := testweb.Routes{
			"/same": body(links), "/meta": body(`<meta name=robots content=noindex>` + links),
			"/header": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if noFollow.Load() {
					w.Header().Set("X-Robots-Tag", "noarchive")
				}
				body(links).ServeHTTP(w, r)
			}),
		}
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{
			site("a.test", "", []string{"/same", "/meta", "/header"}, routes)}})
		o := recrawling(t, web)
		o.Archive.Formats = []string{archive.FormatJSONL}
		run := func(seconds int) {
			must.Get(crawlFor(t, o, time.Duration(seconds)*time.Second, web.URL("a.test", "/")))(t)
		}
		check := func(step, path string, least, most int) (visits int) {
			t.Helper()
			read, known := readings(t, o, web.URL("a.test", path))
			assert.True(t, read >= least && read <= most, "%s: %s was read %d times, and known %d times", step, path,
				read, known)
			return read + known
		}
		run(60)
		visits := check("the first run", "/same", 2, 20)
		check("the first run", "/meta", visits-2, 70)
		o.Archive.Dir = t.TempDir()
		noFollow.Store(true)
		run(5)
		check("another header", "/header", 1, 4)
		o.Archive.Dir = t.TempDir()
		o.Exclude = []*regexp.Regexp{regexp.MustCompile("/never")}
		run(2)
		check("another scope", "/same", 1, 2)
		o.Archive.Dir = t.TempDir()
		o.Traps.PathDepth++
		run(2)
		check("another setting", "/same", 1, 2)
		o.Archive.Dir = t.TempDir()
		o.Archive.Formats = append(o.Archive.Formats, archive.FormatText)
		run(4)
		if read, known := readings(t, o, web.URL("a.test", "/same")); known > 0 || read == 0 {
			t.Errorf("with the text in the output the page was read %d times, and known %d times", read, known)
		}
	})
}
