//go:build soak

package crawl

import (
	"testing"
	"time"
)

// TestSoakDeadNames prints how soon hosts are found among names that do not exist, and how many pages of them are fetched, for docs/PERFORMANCE.md.
func TestSoakDeadNames(t *testing.T) {
	for _, c := range []struct{ dead, live int }{{0, 1}, {480, 1}, {0, 20}, {4900, 20}} {
		log, began := crawlBesideDeadNames(t, c.dead, c.live, 300*time.Second)
		pages := log.Pages()
		if len(pages) == 0 {
			t.Errorf("%d names that do not exist: none of %d hosts was found", c.dead, c.live)
			continue
		}
		var after [3]int
		for _, q := range pages {
			for i := range after {
				if q.Start.Sub(began) < time.Duration(i+1)*100*time.Second {
					after[i]++
				}
			}
		}
		t.Logf("%d names that do not exist, %d hosts: first page after %v; pages in 100, 200 and 300 s: %v", c.dead, c.live, pages[0].Start.Sub(began), after)
	}
}
