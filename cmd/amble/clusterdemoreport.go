//go:build !core

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/testing/crawlcheck"
)

// report prints what the web saw, and whether the nodes behaved as one crawler.
func (c *clusterDemo) report(w io.Writer) error {
	settling, cancel := context.WithTimeout(context.Background(), demoSettleTime)
	defer cancel()
	if err := c.lab.Web.Settle(settling); err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	judged, err := c.judge(c.lab, crawlcheck.Run{
		Starts: []time.Time{c.started, c.killed}, Exited: true, Ended: "the nodes have ended",
		Gap: c.delay,
	})
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("\n")
	log, rows := c.lab.Web.Requests(), [][]string{{"node", "requests", "hosts"}}
	for _, n := range c.nodes {
		name := n.name
		if n == c.victim {
			name += ", killed"
		}
		own := n.requests(log)
		rows = append(rows, []string{name, dash(len(own)), dash(len(own.Hosts()))})
	}
	console.WriteTable(&b, rows)
	broken := writeJudgement(&b, judged)
	c.writeNext(&b)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return broken
}

// writeNext says where the files are.
func (c *clusterDemo) writeNext(b *strings.Builder) {
	b.WriteString("\nLook into:\n")
	console.WriteTable(b, [][]string{
		{filepath.Join(c.dir, "node1", "config.yaml"), "the settings of a node"},
		{filepath.Join(c.dir, "node1", "log.txt"), "what it said: the shards that it took and gave up"},
		{filepath.Join(c.dir, "node1", "data", "shards"), "its shards, each with a database and the output"},
		{filepath.Join(c.dir, "requests.jsonl"), "what the web saw"},
		{filepath.Join(c.dir, "report.html"), "each rule, with the requests that show it"},
	})
	fmt.Fprintf(b, "All files are in %s, which can be deleted.\n", c.dir)
}
