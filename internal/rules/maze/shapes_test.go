package maze

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/zoo"
)

// TestShapesOfMazes: a maze gets at most 200 requests wherever its pages are, alone and behind a site, whose pages are
// all requested.
func TestShapesOfMazes(t *testing.T) {
	names := func(path string, n int, form string) (to []string) {
		r := random(path)
		for range n {
			to = append(to, fmt.Sprintf(form, r.Uint64(), r.Uint64()))
		}
		return to
	}
	mazes := map[string]links{
		"query of the root":       func(p string) []string { return names(p, 6, "/?id=%x&t=%x") },
		"query of a script":       func(p string) []string { return names(p, 6, "/m/index.php?id=%x&t=%x") },
		"files at the root":       func(p string) []string { return names(p, 6, "/%x-%x") },
		"directories at the root": func(p string) []string { return names(p, 6, "/%x/%x/") },
		"mixed": func(p string) []string {
			return slices.Concat(names(p, 2, "/m/%x/%x"), names(p+"a", 2, "/m?%x=%x"), names(p+"b", 2, "/%x/m/%x/"))
		},
		"links back to 3 real pages": func(p string) []string {
			return append(names(p, 6, "/m/%x/%x"), "/wiki/1", "/wiki/2", "/wiki/3")
		},
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
			assert.True(t, in >= pages && into <= 200 && refused > 0,
				"%s behind a site of %d pages: %d of them, %d requests into the maze", name, pages, in, into)
		}
	}
}
