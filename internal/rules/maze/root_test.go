package maze

import (
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/zoo"
)

// TestMazeAtTheRoot: a maze whose directories are at the root of a site is stopped, and the pages of the site that wait
// are requested, those of directories that nothing is known of too. So it is after a restart.
func TestMazeAtTheRoot(t *testing.T) {
	of := zoo.Mazes()[1]
	site := zoo.Beside(of, 100)
	b := New(40)
	requested, refused := crawl(t, b, web{links: site.Links, text: of.Text}, 5000, "/")
	pages := 0
	for path := range requested {
		if site.IsPage(path) {
			pages++
		}
	}
	assert.True(t, pages == site.Pages && len(requested)-pages <= 200 && refused > 0,
		"%d pages of %d, %d requests into the maze, %d refused", pages, site.Pages, len(requested)-pages, refused)
	again := New(40)
	again.Restore(map[string][]byte{Mark + "site.test": []byte(b.Encode("site.test"))})
	for path, via := range map[string]string{
		"/new/": "/docs/99", "/docs/x": "/entrance-0/", "/": "/entrance-0/a/", "/elsewhere/": "",
	} {
		assert.Equal(t, again.IsStopped("site.test", path, func() string { return via }), path == "/", path, via)
	}
	for _, path := range []string{"/entrance-0/b/", "/elsewhere/"} {
		assert.True(t, again.IsStopped("site.test", path, func() string { return "/entrance-0/a/" }), path)
	}
}
