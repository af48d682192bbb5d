package crawl

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/zoo"
	"github.com/amble-crawler/amble/storage"
)

// TestHeavyWallOverRobots: a challenge in place of a robots.txt is no robots.txt, whatever its status. In
// place of the first one it holds the origin until it ends, and in place of a later one the last good file
// stays in force, whenever the challenge comes. At no moment a page is requested that the good file disallows.
func TestHeavyWallOverRobots(t *testing.T) {
	t.Parallel()
	const pages = 60 // in directories of ten: /a/0 to /f/59
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		w := newWallWeb(t, network)
		held := make(map[string]time.Duration)
		for _, status := range []int{200, 202, 403, 429, 503} {
			some := 6 + rand.IntN(30)
			for open, lasts := range map[int]time.Duration{0: 25 * time.Minute, 5: 3 * time.Hour, some: 2 * time.Hour} {
				name := fmt.Sprintf("robots-%d-after-%d", status, open)
				if held[name] = 0; open == 0 {
					held[name] = lasts
				}
				w.add(t, name,
					zoo.Wall{Pages: pages, Robots: "User-agent: *\nDisallow: /b/\nDisallow: /e/4", RobotsWall: status,
						RobotsOpen: open, Lasts: lasts})
			}
		}
		o := w.options(t)
		o.Frontier.Politeness.Delay = 90 * time.Second
		begun := time.Now()
		crawl(t, o, w.seeds...)
		checkAudit(t, o)
		states := make(map[string]int)
		for u, outcome := range stored(t, o.DataDir) {
			for name := range held {
				if strings.Contains(u, "//"+w.zoo.Host(name)) && outcome.State == storage.Denied {
					states[name]++
				}
			}
		}
		for name, wait := range held {
			visits := w.visits[name]()
			for _, v := range visits {
				assert.True(t, !strings.HasPrefix(v.Target, "/b/") && !strings.HasPrefix(v.Target, "/e/4"),
					"%s: %s was requested, which the last good robots.txt disallows", name, v.Target)
				assert.AtLeast(t, v.At.Sub(begun), wait, name, v.Target,
					"was requested after before there was a robots.txt")
			}
			if len(visits) != 1+pages-20 || states[name] != 20 {
				t.Errorf("%s: %d pages were requested and %d denied, want %d and 20", name, len(visits),
					states[name], 1+pages-20)
			}
		}
	})
}
