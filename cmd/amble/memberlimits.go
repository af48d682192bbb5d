//go:build !core

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	clustercommand "github.com/amble-crawler/amble/internal/cluster/shards/command"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/outcome"
	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// limitsEvery is how often a node looks how much the whole cluster has received.
const limitsEvery = 2 * time.Second

// watchLimits sends which limit of the crawl is reached, until the context ends: the time is that of this node, the
// bytes are those of the whole crawl.
func (m *member) watchLimits(ctx context.Context, reached chan<- crawl.End) {
	c := &m.config.Crawl
	var over <-chan time.Time
	if c.MaxTime > 0 {
		timer := time.NewTimer(c.MaxTime)
		defer timer.Stop()
		over = timer.C
	}
	ticker := time.NewTicker(limitsEvery)
	defer ticker.Stop()
	for {
		end := crawl.EndMaxTime
		select {
		case <-ctx.Done():
			return
		case <-over:
		case <-ticker.C:
			if c.MaxBytes == 0 || m.status(ctx).Bytes < uint64(c.MaxBytes) {
				continue
			}
			end = crawl.EndMaxBytes
		}
		select {
		case reached <- end:
		case <-ctx.Done():
		}
		return
	}
}

// takeOutcome takes what a node has done for amble run --json.
func takeOutcome(e *outcome.Result, out *clustercommand.Outcome) {
	switch {
	case out.MaxPages:
		e.End = crawl.EndMaxPages
	case out.Limit != "":
		e.End = out.Limit
	case out.Finished:
		e.End = crawl.EndDone
	default:
		e.End = crawl.EndStopped
	}
	e.Seconds, e.Pages, e.Requisites, e.Bytes = out.Took.Seconds(), out.Pages, out.Requisites, out.Bytes
	e.Queued, e.Failed, e.Postponed = out.Summary.Queued, out.Failed, out.Postponed
}

// print prints what the node has done, and how to go on.
func (m *member) print(w io.Writer, out clustercommand.Outcome, badSeeds int) error {
	var b strings.Builder
	b.WriteString(out.Happened(m.config))
	switch {
	case out.MaxPages:
		fmt.Fprintf(&b, "%s, and %s still queued in the shards of this node.\n",
			outcome.LimitText(m.config, crawl.EndMaxPages),
			console.Are(out.Summary.Queued, "URL"))
	case out.Limit != "":
		b.WriteString("It has left because " + outcome.LimitText(m.config, out.Limit) + ".\n")
	case out.Finished:
		outcome.WritePostponed(&b, out.Postponed, time.Now())
	}
	if len(out.Failed) > 0 {
		fmt.Fprintf(&b, "Given up for: %s.\n", console.CountsText(out.Failed))
	}
	outcome.WriteBadSeeds(&b, badSeeds)
	console.WriteTable(&b,
		[][]string{{"shards", filepath.Join(m.config.DataDir, "shards") + ", each with a database and output"}})
	_, err := io.WriteString(w, b.String())
	return err
}
