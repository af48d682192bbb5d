package crawl

import (
	"net/netip"
	"testing"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/rules/expensive"
	"github.com/amble-crawler/amble/internal/rules/networks"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/testing/testweb/todayweb"
	"github.com/amble-crawler/amble/politeness"
)

// BenchmarkManners crawls webs with budgets of addresses, walls, mazes and expensive endpoints on, in turn with all of
// them off, twice: what the two differ by is noise. The addresses are exempt from the budget by a range, as an
// operator's own would be.
func BenchmarkManners(b *testing.B) {
	all := must.Get(networks.Load(b.TempDir()))(b)
	off := func(o *Options) {
		withoutOutput(o)
		o.Frontier.Walls, o.Frontier.Politeness.IPRate = false, 0
		o.Traps.MazePages, o.Traps.Expensive = 0, expensive.Crawl
	}
	on := func(o *Options) {
		withoutOutput(o)
		defaults := DefaultOptions()
		o.Frontier.Walls, o.Frontier.Politeness.IPRate, o.Frontier.Deliver = true, 5, all.Has
		o.Traps.MazePages, o.Traps.Expensive = defaults.Traps.MazePages, defaults.Traps.Expensive
		for _, network := range []string{"127.0.0.0/8", "::1/128"} {
			o.Frontier.Ranges = append(o.Frontier.Ranges, frontier.Range{
				Network: netip.MustParsePrefix(network),
				Limit:   politeness.LimitOptions{InFlight: o.Frontier.Politeness.PerIP},
			})
		}
	}
	mesh := testweb.Mesh{Hosts: 64, Pages: 200, Links: 20, PageBytes: 8 << 10}
	webs := []benchWeb{
		{startMesh(b, mesh, testweb.Config{CountOnly: true}), "mesh", mesh.TotalPages(), benchWorkers},
		startToday(b, todayweb.Web{Hosts: hostsOfBenchmark(b, 48), Pages: 16, PerConnection: 8}),
	}
	for _, web := range webs {
		b.Run("pairs/"+web.name, func(b *testing.B) {
			crawlInTurns(b, web, []crawler{
				{"off", func(b *testing.B) int { return crawlWebWith(b, web, off) }},
				{"on", func(b *testing.B) int { return crawlWebWith(b, web, on) }},
				{"again", func(b *testing.B) int { return crawlWebWith(b, web, off) }},
			})
		})
	}
}
