//go:build unix

package crawl

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// BenchmarkRequisites archives pages with what they are made of, in turn with the pages alone: what it costs to find
// it, where all pages of a host share it, and to fetch it, where each page has images of its own.
func BenchmarkRequisites(b *testing.B) {
	for _, images := range []int{0, 8} {
		m := madeWeb{hosts: 32, pages: 50, images: images}
		served := must.Get(testweb.New(testweb.Config{Sites: m.sites(), CountOnly: true}))(b)
		b.Cleanup(func() { must.Do(b, served.Close()) })
		pages := m.hosts * (m.pages + 1)
		web := benchWeb{served, fmt.Sprintf("pages=%d/bytes=8192/images=%d", pages, images), pages, benchWorkers}
		crawl := func(fetch bool) func(b *testing.B) int {
			return func(b *testing.B) int {
				before := served.Served()
				n := crawlWebWith(b, web, func(o *Options) {
					o.Archive.Formats, o.Requisites.Fetch = []string{warcfiles.Name}, fetch
				})
				requests := pages + m.hosts // with robots.txt
				if fetch {
					requests += m.hosts * (3 + m.pages*images)
				}
				got := int(served.Served() - before)
				assert.True(b, got == requests, "%d requests, want %d", got, requests)
				return n
			}
		}
		b.Run("pairs/"+web.name, func(b *testing.B) {
			crawlInTurns(b, web, []crawler{{"off", crawl(false)}, {"on", crawl(true)}})
		})
	}
}

// madeWeb is a web of pages that are made of a style sheet, a script and a picture of their host, and of images.
type madeWeb struct{ hosts, pages, images int }

func (m madeWeb) sites() (all []testweb.Site) {
	prose := testweb.NewProse(rand.New(rand.NewPCG(1, 2)))
	for host := range m.hosts {
		image := func(name string) []byte { return []byte(strings.Repeat(fmt.Sprintf("%d%s", host, name), 512)) }
		routes := testweb.Routes{"/s.css": testweb.Content("text/css", []byte("p { background: url(p.png) }")),
			"/s.js":  testweb.Content("text/javascript", []byte("let a = 1")),
			"/p.png": testweb.Content("image/png", image("/p.png"))}
		var links []string
		for page := range m.pages {
			var text strings.Builder
			text.WriteString("<title>a page</title><link rel=stylesheet href=/s.css><script src=/s.js></script>")
			for i := range m.images {
				path := fmt.Sprintf("/i/%d/%d.png", page, i)
				routes[path] = testweb.Content("image/png", image(path))
				fmt.Fprintf(&text, "<img src=%s>", path)
			}
			for text.Len() < 8<<10 {
				text.WriteString("<p>" + prose.Sentence())
			}
			links = append(links, fmt.Sprintf("/%d", page))
			routes[links[page]] = testweb.Content("text/html", []byte(text.String()))
		}
		routes["/"] = testweb.Page("root", links...)
		all = append(all, testweb.Site{Host: fmt.Sprintf("made%d.test", host), Handler: routes})
	}
	return all
}
