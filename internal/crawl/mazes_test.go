package crawl

import (
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/memnet"
	"github.com/amble-crawler/amble/internal/zoo"
	"github.com/amble-crawler/amble/storage"
)

// addSite adds a site of the zoo.
func (w *wallWeb) addSite(t *testing.T, name string, site zoo.Site) {
	t.Helper()
	visits, err := w.zoo.AddSite(name, site)
	if err != nil {
		t.Fatal(err)
	}
	w.visits[name] = visits
	w.web.SetAnswer(w.zoo.Host(name), w.zoo.Address(name))
	w.seeds = append(w.seeds, w.zoo.URL(name))
}

// TestRefreshMaze: a page that refreshes to itself with another token each time has one request, and as
// many refreshes are followed in a row as redirects.
func TestRefreshMaze(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		w := newWallWeb(t, network)
		const pages = 4
		w.addSite(t, "refreshes", zoo.RefreshMaze(pages))
		o := w.options(t)
		o.Traps, o.MaxPages = DefaultOptions().Traps, 100 // the maze has no end
		crawl(t, o, w.seeds...)
		verify, next := 0, 0
		for _, v := range w.visits["refreshes"]() {
			switch {
			case strings.HasPrefix(v.Target, "/verify/"):
				verify++
			case strings.HasPrefix(v.Target, "/next/"):
				next++
			}
		}
		if want := pages * (1 + int(o.Frontier.MaxRedirects)); verify != pages || next != want {
			t.Errorf("%d and %d requests into the maze, want %d and %d", verify, next, pages, want)
		}
		refused := refusals(t, o.DataDir, w.zoo.Host("refreshes"))
		if len(refused) != 1 || refused[storage.TrapRefresh].Count != 2*pages {
			t.Errorf("refused %v, want %d refreshes", refused, 2*pages)
		}
	})
}
