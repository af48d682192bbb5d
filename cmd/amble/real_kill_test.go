//go:build real

package main_test

import (
	"cmp"
	"slices"
	"syscall"
	"testing"
	"time"
)

// killing is a crawl that is killed over and over until it is done.
type killing struct {
	name  string
	pace  int           // of the server: requests a second for each site; 0: no limit
	every time.Duration // at the latest this long after each start it is killed...
	pages int           // ...or when it has made so many requests
	least int           // kills there must be, so that the test means something
	most  int           // pages fetched twice for each kill, on average; 0: as many as had ended and were not committed
}

// maxKills bounds the kills of one crawl; after that it may finish.
const maxKills = 60

// killings are the two paces: a slow server, so that kills meet requests in flight and little else that is not committed, and
// a fast one, so that they meet commits. What ends while a commit is under way waits for the next one, and that can be more
// than there are workers when the server is fast or the disk is slow.
var killings = []killing{
	{name: "KillEverySeconds", pace: 30, every: 3 * time.Second, pages: 1 << 30, least: 5, most: workers},
	{name: "KillEveryHundredPages", every: time.Minute, pages: 100, least: 8},
}

// kill is the end of a run, and what was committed by then.
type kill struct{ committed map[page]bool }

// test crawls, killed over and over, and holds the result against that of the crawl that was not killed.
func (k killing) test(t *testing.T, sites []site, binary string, want map[page]int) {
	if want == nil {
		t.Skip("TestReal/Compare was not run, so nobody knows what to fetch: run it too")
	}
	server := serve(t, sites, k.pace)
	c := newCrawl(t, binary, server, fast, 0)
	begun := time.Now()
	kills := k.crawl(t, c)
	took := time.Since(begun)
	log := server.stop(t)
	fetched := pagesOf(log)
	sameSet(t, "the killed crawl", fetched, "the other crawl", want)
	sameSet(t, "the output", c.lines(t), "nginx's log", fetched)
	if len(kills) < k.least {
		t.Errorf("%d kills, want %d at least: the crawl is too fast for this test", len(kills), k.least)
	}
	repeats := checkRepeats(t, log, kills)
	figures(t, "killed", len(fetched), len(log), took)
	t.Logf("%d kills, %d pages fetched twice, %v by kill", len(kills), sum(repeats), repeats)
	if k.most > 0 && sum(repeats) > k.most*len(kills) {
		t.Errorf("%d pages were fetched twice after %d kills, want %d for each at most", sum(repeats), len(kills), k.most)
	}
}

// crawl runs amble until it is done and kills it again and again before that.
func (k killing) crawl(t *testing.T, c *crawl) []kill {
	t.Helper()
	var kills []kill
	for {
		p := c.start(t)
		if len(kills) == maxKills || !k.due(t, c, p) {
			c.finish(t, p)
			return kills
		}
		p.signal(syscall.SIGKILL)
		if p.wait(10*time.Second) == nil {
			return kills // it was done just before
		}
		kills = append(kills, kill{committed: c.committed(t)})
	}
}

// due waits for the moment of the next kill. It reports false if the crawl was done before.
func (k killing) due(t *testing.T, c *crawl, p *process) bool {
	t.Helper()
	latest, enough := time.Now().Add(k.every), c.server.served()+k.pages
	for p.running() {
		if time.Now().After(latest) || c.server.served() >= enough {
			return true
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false
}

// checkRepeats holds that a page is asked for again only by a later run, and only where the kill before that run found it not
// committed. It returns how many pages each kill made to be fetched again.
func checkRepeats(t *testing.T, log []request, kills []kill) []int {
	t.Helper()
	repeats := make([]int, len(kills))
	last := make(map[page]int) // the run that asked for it last
	slices.SortStableFunc(log, func(a, b request) int { return cmp.Compare(a.run, b.run) })
	for _, r := range log {
		before, again := last[r.page]
		last[r.page] = r.run
		switch {
		case !again || r.page.isRobots():
		case before == r.run:
			t.Errorf("%s was fetched twice in run %d", r.page, r.run)
		case kills[r.run-2].committed[r.page]: // run 1 was ended by kills[0]
			t.Errorf("%s was fetched in run %d, committed, and fetched again in run %d", r.page, before, r.run)
		default:
			repeats[before-1]++
		}
	}
	return repeats
}

func sum(numbers []int) int {
	total := 0
	for _, n := range numbers {
		total += n
	}
	return total
}
