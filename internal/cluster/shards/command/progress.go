//go:build !core

package command

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/shards"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/outcome"
	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// untrustedText says why a node makes no request.
const untrustedText = "nothing is fetched until the NATS servers confirm the place of this node in the cluster"

// stalledNodeText says that engines write nothing; their reason follows.
const stalledNodeText = "nothing is fetched from the hosts of some shards until their log and database can be written"

// counted are the shards of a cluster by what a node knows of them.
type counted struct{ own, free int }

func countShards(s membership.Status) (n counted) {
	for _, shard := range s.Shards {
		switch {
		case shard.Owner == "":
			n.free++
		case shard.Owner == s.Node && shard.Engine != cluster.NoEngine:
			n.own++
		}
	}
	return n
}

func live(members []membership.MemberStatus) (n int) {
	for _, m := range members {
		if m.State == "live" {
			n++
		}
	}
	return n
}

// isDoubted reports whether a node that is to go on may make no request.
func isDoubted(s membership.Status) bool { return s.Joined && s.Trust <= 0 && !s.Leaving }

// LogNode logs how a node gets on as one line.
func LogNode(log *slog.Logger, s membership.Status, p shards.Progress) {
	n := countShards(s)
	attributes := []any{
		"pages", p.Pages, "pages_per_second", console.Rounded(p.PagesPerSec), "bytes", p.Bytes, "queued", p.Queued,
		"shards", n.own, "shards_of", len(s.Shards), "shards_free", n.free, "nodes", live(s.Members),
	}
	if p.Requisites > 0 {
		attributes = append(attributes, "requisites", p.Requisites)
	}
	switch {
	case isDoubted(s):
		log.Warn(untrustedText, attributes...)
	case p.Stalled > 0:
		log.Warn(stalledNodeText, append(attributes, "stalled", p.Stalled, "reason", p.Reason)...)
	default:
		log.Info(nodeState(s), attributes...)
	}
}

// nodeState is the state of a node in a word.
func nodeState(s membership.Status) string {
	switch {
	case s.Leaving:
		return "leaving"
	case !s.Joined:
		return "joining"
	case s.Drained:
		return "drained"
	}
	return "running"
}

// NodeRows returns the block for a screen of a width.
func NodeRows(s membership.Status, p shards.Progress, width int) []console.Row {
	n := countShards(s)
	rows := []console.Row{{Text: "amble: node " + s.Node + " of cluster " + s.Cluster + ", " + nodeState(s) +
		"; Ctrl-C to leave",
		Style: console.StyleTitle}}
	if isDoubted(s) {
		rows = append(rows, console.Row{Text: "  " + untrustedText, Style: console.StyleDanger})
	}
	if p.Stalled > 0 {
		rows = append(rows, console.Row{Text: "  " + stalledNodeText + ": " + p.Reason, Style: console.StyleDanger})
	}
	free := ""
	if n.free > 0 {
		free = fmt.Sprintf(", %d without owner", n.free)
	}
	cells := [][2]string{
		{"pages", fmt.Sprintf("%s  %.1f/s", console.Grouped(p.Pages), p.PagesPerSec)},
		{"shards", fmt.Sprintf("%d of %d%s", n.own, len(s.Shards), free)},
		{"received", console.Size(p.Bytes)},
		{"nodes", console.Grouped(live(s.Members))},
		{"queue", console.Plural(p.Queued, "URL")},
		{"in flight", console.Plural(p.InFlight, "request")},
	}
	if p.Requisites > 0 {
		cells = append(cells, [2]string{"requisites", console.Grouped(p.Requisites)})
	}
	return append(rows, console.Columns(cells, width)...)
}

// Outcome is what a node has done.
type Outcome struct {
	shards.Progress
	shards.Summary
	Took time.Duration
	Left bool // its shards were handed over
	// Limit is why the node has left before the end of the crawl, if a limit of it was reached; else empty.
	Limit crawl.End
}

// Happened says what the node did, and why it does not run any more.
func (out *Outcome) Happened(c *config.Config) string {
	fetched := fmt.Sprintf("node %s fetched %s (%s received)", c.Cluster.NodeName(),
		outcome.PagesText(out.Pages, out.Requisites), console.Size(out.Bytes))
	if out.Finished {
		if !out.Fresh {
			fetched = fmt.Sprintf("node %s had nothing to fetch", c.Cluster.NodeName())
		}
		return fmt.Sprintf("Finished after %s: the crawl is over on all nodes of cluster %s; %s.\n",
			console.Span(out.Took),
			c.Cluster.Name, fetched)
	}
	fetched = "N" + fetched[1:] + " in " + console.Span(out.Took)
	if out.Left {
		return fmt.Sprintf("%s and has left cluster %s. Other nodes take its shards; the same command joins again.\n",
			fetched, c.Cluster.Name)
	}
	return fmt.Sprintf("%s. It could not tell cluster %s that it leaves, because the NATS servers did not answer: the "+
		"other nodes take its shards when they have not heard from it for a while. The same command joins again.\n",
		fetched,
		c.Cluster.Name)
}
