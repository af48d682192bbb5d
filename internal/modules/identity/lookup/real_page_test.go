//go:build real

package lookup

import (
	"net/http"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// TestRealPages: the pages of the look-up are valid, and axe finds nothing in them.
func TestRealPages(t *testing.T) {
	b := newBench(t)
	gap := 2.0
	b.crawl.visits = []Visit{{At: b.now, Method: "GET", URL: "https://site.test/a", Kind: "page", Status: 200,
		Gap: &gap}}
	pages := make(map[string][]byte)
	ask := func(name, method string, values ...string) {
		_, page := b.ask(method, values...)
		pages[name] = []byte(page)
	}
	ask("empty", http.MethodGet)
	ask("not proven", http.MethodGet, "host", site, "key", newKey())
	ask("problem", http.MethodGet, "host", "a/b")
	key := b.prove()
	ask("slow", http.MethodPost, "host", site, "key", key, "action", "slow", "seconds", "60")
	ask("stopped", http.MethodPost, "host", site, "key", key, "action", "stop")
	testkit.JudgePages(t, pages)
}
