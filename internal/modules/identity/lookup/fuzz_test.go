package lookup

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// FuzzLookup: whatever a visitor without a proof sends, he sees counts at most, and changes nothing.
func FuzzLookup(f *testing.F) {
	for _, host := range []string{site, "SITE.test", "site.test.", "other.test", "a/b", "[::1]", "127.0.0.1", "",
		"\xff", "site.test:443", "site.test%2f"} {
		f.Add(http.MethodGet, host, "", "find", "x")
		f.Add(http.MethodPost, host, newKey(), "action", "stop")
	}
	f.Add(http.MethodGet, site, newKey(), "as", "lines")
	f.Add(http.MethodPost, site, newKey(), "seconds", "1e9")
	f.Fuzz(func(t *testing.T, method, host, key, name, value string) {
		if method != http.MethodPost {
			method = http.MethodGet
		}
		b := newBench(t)
		b.crawl.visits = []Visit{{At: b.now, URL: "https://site.test/secret", Kind: "page", Status: 200}}
		status, page := b.ask(method, "host", host, "key", key, name, value, "action", "erase")
		assert.True(t, slices.Contains([]int{200, 403, 422}, status) && !strings.Contains(page, "/secret") &&
			!strings.Contains(page, "/next"), "status %d:\n%s", status, page)
		assert.True(t, b.crawl.delay == 0 && b.crawl.optOut == nil && b.crawl.read == 0, "something was done: %+v",
			b.crawl)
	})
}
