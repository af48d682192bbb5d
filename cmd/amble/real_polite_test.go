//go:build real

package main_test

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// testPolite crawls a part of the sites with a delay, killed once, and reads the gaps in nginx's log: from the end of a
// request to the start of the next one to the same host. The log has milliseconds and cuts off the rest, so a gap may look 1 ms shorter
// than it was.
func testPolite(t *testing.T, sites []site, binary string) {
	const (
		delay     = 200 * time.Millisecond
		precision = time.Millisecond
		pages     = 60
	)
	server := serve(t, sites, 0)
	c := newCrawl(t, binary, server, "delay: "+delay.String(), pages)
	begun := time.Now()
	p := c.start(t)
	for p.running() && server.served() < pages/2 && time.Since(begun) < time.Minute {
		time.Sleep(5 * time.Millisecond)
	}
	p.signal(syscall.SIGKILL)
	if p.wait(10*time.Second) == nil {
		t.Fatal("the crawl was done before it was killed")
	}
	c.finish(t, c.start(t))
	took := time.Since(begun)
	log := server.stop(t)
	figures(t, "polite", len(pagesOf(log)), len(log), took)
	if got := len(c.lines(t)); got != pages {
		t.Errorf("the output has %d pages, crawl.max_pages is %d", got, pages)
	}
	for _, s := range sites {
		all, across := gaps(s, log)
		if len(all) < pages/4 || across == 0 {
			t.Fatalf("%s: %d gaps, and %s across the kill: too few to mean something", s.name, len(all), across)
		}
		if all[0] < delay-precision {
			t.Errorf("%s: %s from the end of a request to the start of the next, want %s", s.name, all[0], delay)
		}
		t.Logf("%-10s %d gaps: least %s, median %s, most %s; across the kill %s",
			s.name, len(all), all[0], all[len(all)/2], all[len(all)-1], across)
	}
}

// gaps are the times between the requests to a site, the shortest first, and the one that the kill lies in.
func gaps(s site, log []request) (all []time.Duration, across time.Duration) {
	requests := slices.DeleteFunc(slices.Clone(log), func(r request) bool { return r.page.site != s.name })
	slices.SortFunc(requests, func(a, b request) int { return a.start.Compare(b.start) })
	for i := range len(requests) - 1 {
		a, b := requests[i], requests[i+1]
		gap := b.start.Sub(a.end)
		all = append(all, gap)
		if a.run != b.run {
			across = gap
		}
	}
	slices.Sort(all)
	return all, across
}
