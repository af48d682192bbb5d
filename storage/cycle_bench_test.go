package storage

import (
	"testing"

	"github.com/amble-crawler/amble/internal/weburl"
)

// cycled is a store in which a crawl goes on.
type cycled interface {
	path() string
	take(b *testing.B, host int) // reads the next URL of a host and notes its outcome
	find(u weburl.URL)           // notes a link of it
	full() bool                  // whether that is as much as a crawl commits at a time
	commit() error               // writes all that was noted, durable
}

// benchCycle takes the next URL of host after host and completes it with ten
// links, of which two are new. All that counts, the making of the links too. It
// returns what it saw of a store of that size.
func benchCycle(b *testing.B, g *benchURLs, s cycled) point {
	size, disk := g.n, benchFileSize(b, s.path())
	all := newCommits()
	cycles := 0
	for b.Loop() {
		for !s.full() {
			cycles++
			s.take(b, cycles%g.hosts)
			for i := range 10 {
				u := g.at(1 + (cycles*2654435761+i*40503)%g.n)
				if i < 2 {
					u = g.next()
				}
				s.find(u)
			}
		}
		all.time(b, s.commit)
	}
	rate := float64(cycles) / b.Elapsed().Seconds()
	all.report(b, cycles, "commit-cycles")
	b.ReportMetric(rate, "cycles/s")
	b.ReportMetric(float64(disk)/float64(size), "B/url")
	return point{Items: size, Rate: rate, Worst: all.longest(), Memory: all.anonymous, Disk: disk}
}
