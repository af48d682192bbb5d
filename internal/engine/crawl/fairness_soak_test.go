//go:build soak

package crawl

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// TestSoakDeadNames prints how soon hosts are found among names that do not exist, and how many
// pages of them are fetched, for docs/PERFORMANCE.md.
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
		t.Logf("%d names that do not exist, %d hosts: first page after %v; pages in 100, 200 and 300 s: %v",
			c.dead, c.live, pages[0].Start.Sub(began), after)
	}
}

// TestSoakGoodHosts prints how many pages good hosts have together with tarpits and the whole zoo, and
// alone, for docs/PERFORMANCE.md; and holds them to four fifths.
func TestSoakGoodHosts(t *testing.T) {
	for _, c := range []struct {
		name string
		company
	}{
		{"20 hosts, delay 1 s, 64 workers", company{good: 20, delay: time.Second, workers: 64, tarpits: 1000}},
		{"and the whole zoo", company{good: 20, delay: time.Second, workers: 64, tarpits: 1000, animals: true}},
		{"100 hosts, no delay, 64 workers", company{good: 100, workers: 64, tarpits: 1000}},
		{"20 hosts, delay 1 s, 16 workers", company{good: 20, delay: time.Second, workers: 16, tarpits: 250}},
	} {
		c.takes, c.lasts = 200*time.Millisecond, 5*time.Minute
		together := virtualCompany(t, c.company)
		others := c.tarpits
		c.tarpits, c.animals = 0, false
		alone := virtualCompany(t, c.company)
		compare(t, c.name, others, alone, together, c.lasts)
	}
}

// TestSoakGoodHostsOnTheLoopback is the same in real time.
func TestSoakGoodHostsOnTheLoopback(t *testing.T) {
	c := company{good: 20, takes: 200 * time.Millisecond, delay: time.Second, workers: 64, lasts: 5 * time.Minute}
	alone := c.crawl(t)
	c.tarpits, c.animals = 1000, true
	compare(t, "20 hosts, delay 1 s, 64 workers, on the loopback", c.tarpits, alone, c.crawl(t), c.lasts)
}

func compare(t *testing.T, name string, others int, alone, together *outing, lasts time.Duration) {
	t.Helper()
	var counts []string
	for i := 1; i <= 5; i++ {
		by := lasts * time.Duration(i) / 5
		counts = append(counts, fmt.Sprintf("%d of %d", together.pages(by), alone.pages(by)))
	}
	t.Logf("%s, %d tarpits: pages by each fifth of %v: %s", name, others, lasts, strings.Join(counts, ", "))
	assert.AtLeast(t, together.pages(lasts), alone.pages(lasts)*8/10, name, "less than four fifths")
	// Of each host, when all have been tried: in the last three fifths.
	late := func(o *outing, host string) float64 {
		return float64(
			len(o.log.Host(host).Filter(func(q testweb.Request) bool { return q.Start.Sub(o.began) > lasts*2/5 })))
	}
	hosts := alone.log.Hosts()
	mean := 3.0 / 5 * float64(alone.pages(lasts)) / float64(len(hosts)) // alone they do not get the same either
	least := 1.0
	for _, host := range hosts {
		least = min(least, late(together, host)/min(late(alone, host), mean))
	}
	t.Logf("%s: in the last three fifths no host has less than %.2f of its requests", name, least)
	assert.AtLeast(t, least, 0.8, name, "less than four fifths for a host")
	assert.AtMost(t, together.sum.Status.Pace.Violations, 0, name, "gaps were too short")
}

// TestSoakAddressBudgetCost logs the times of docs/POLITENESS.md.
func TestSoakAddressBudgetCost(t *testing.T) { addressBudgetCost(t, 1000) }
