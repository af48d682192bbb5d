package maze

import (
	"fmt"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/zoo"
)

// TestMazeAtTheRoot: a maze whose directories are at the root of a site is stopped, and the pages of the site that wait
// are requested, those of directories that nothing is known of too. So it is after a restart. If the pages of the maze
// have links to those of the site, each of its eight directories is stopped, the later ones sooner.
func TestMazeAtTheRoot(t *testing.T) {
	of := zoo.Mazes()[1]
	site := zoo.Beside(of, 40)
	check := func(name string, l links, most int) *Branches {
		b := New(40)
		requested, refused := crawl(t, b, web{links: l, text: of.Text}, 5000, "/")
		pages := 0
		for path := range requested {
			if site.IsPage(path) {
				pages++
			}
		}
		t.Logf("%s: %d requests into the maze", name, len(requested)-pages)
		assert.True(t, pages == site.Pages && len(requested)-pages <= most && refused > 0, "%s: %d pages of %d, "+
			"%d requests into the maze, %d refused", name, pages, site.Pages, len(requested)-pages, refused)
		return b
	}
	check("with links to the site", func(path string) []string {
		to, r := site.Links(path), random(path)
		for i := 0; i < 8 && !site.IsPage(path); i++ {
			to = append(to, fmt.Sprintf("/docs/%d", r.IntN(40)))
		}
		return to
	}, 8*45)
	b := check("without links", site.Links, 200)
	again := New(40)
	again.Restore(map[string][]byte{Mark + "site.test": []byte(b.Encode("site.test"))})
	for path, via := range map[string]string{
		"/new/": "/docs/39", "/docs/x": "/entrance-0/", "/": "/entrance-0/a/", "/elsewhere/": "",
	} {
		assert.Equal(t, again.IsStopped("site.test", path, func() string { return via }), path == "/", path, via)
	}
	for _, path := range []string{"/entrance-0/b/", "/elsewhere/"} {
		assert.True(t, again.IsStopped("site.test", path, func() string { return "/entrance-0/a/" }), path)
	}
}

// TestStopOfHost: directories that are judged by themselves, or were found to be those of a site, are no part of the
// maze that their host is.
func TestStopOfHost(t *testing.T) {
	h := &host{paths: []string{"/site/", "/open/", "/found/", "/maze/"}, branches: []branch{
		{all: 5, site: 5}, {all: 50, suspected: true}, {all: 90, tries: 1}, {all: 20, like: 20},
	}}
	assert.Slice(t, h.stop("/", []string{"/"}), []string{"/", "site /found/", "site /open/", "site /site/"})
}
