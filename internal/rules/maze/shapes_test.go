package maze

import (
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/zoo"
)

// TestShapesOfMazes: a maze gets at most 200 requests wherever its pages are, alone and behind a site, whose pages are
// all requested.
func TestShapesOfMazes(t *testing.T) {
	mazes := shapes()
	mazes["links back to 3 real pages"] = func(p string) []string {
		return append(mazes["a directory"](p), "/wiki/1", "/wiki/2", "/wiki/3")
	}
	for name, m := range mazes {
		for _, pages := range []int{0, 300} {
			site := wiki(max(pages, 1))
			requested, refused := crawl(t, New(40), web{links: func(path string) []string {
				if pages > 0 && (strings.HasPrefix(path, "/wiki/") || path == "/") {
					return append(site(path), "/m/start")
				}
				return m(path)
			}, text: zoo.Babble}, 3000, "/")
			in := 0
			for p := range requested {
				if strings.HasPrefix(p, "/wiki/") {
					in++
				}
			}
			into := len(requested) - in
			t.Logf("%s behind %d pages: %d requests", name, pages, into)
			assert.True(t, in >= pages && into <= 200 && refused > 0,
				"%s behind a site of %d pages: %d of them, %d requests into the maze", name, pages, in, into)
		}
	}
}
