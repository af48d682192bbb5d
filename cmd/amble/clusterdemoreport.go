//go:build !core

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// report prints what the web saw, and whether the nodes behaved as one crawler.
func (c *clusterDemo) report(w io.Writer) error {
	settling, cancel := context.WithTimeout(context.Background(), demoSettleTime)
	defer cancel()
	if err := c.web.Settle(settling); err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	log := c.web.Requests()
	if err := log.Save(filepath.Join(c.dir, "requests.jsonl")); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b,
		"\nWhat the web itself saw, in %s of %d nodes. The least gap is the shortest time from\nthe end of one "+
			"request to the start of the next, whichever node made them:\n", console.Plural(len(log), "request"),
		len(c.nodes))
	tooShort := c.writeHosts(&b, log)
	again, wrong := c.repeats(log)
	wrong = append(c.facts.Check(log), wrong...)
	early := len(log.BeforeRobots())
	writeVerdict(&b, wrong, tooShort, early)
	fmt.Fprintf(&b, "\nFetched again: %s that %s had fetched, but not committed, when it was killed.\n",
		console.Plural(again, "page"), c.victim.name)
	c.writeNext(&b)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if len(wrong)+tooShort+early > 0 {
		return console.Exit(console.ExitProblem,
			errors.New("the nodes did not behave as a correct crawler does, see above"))
	}
	return nil
}

// writeHosts writes a row for each host, and returns the number of gaps that were too short.
func (c *clusterDemo) writeHosts(b *strings.Builder, log testweb.Log) (tooShort int) {
	titles := []string{"host"}
	for _, n := range c.nodes {
		if n == c.victim {
			titles = append(titles, n.name+", killed")
		} else {
			titles = append(titles, n.name)
		}
	}
	rows := [][]string{append(titles, "least gap", "delay in force")}
	for _, host := range log.Hosts() {
		own := log.Host(host)
		row := []string{host}
		for _, n := range c.nodes {
			row = append(row, dash(len(n.requests(own))))
		}
		gaps, short := gapCells(own, c.delay, c.facts.CrawlDelay[host])
		rows, tooShort = append(rows, append(row, gaps...)), tooShort+short
	}
	console.WriteTable(b, rows)
	return tooShort
}

// repeats returns how many pages were fetched again because of the death, and those that were fetched
// again for no reason. A page whose connection always breaks is tried as often as the crawler likes.
func (c *clusterDemo) repeats(log testweb.Log) (again int, wrong []string) {
	tries := make(map[string]int)
	for _, page := range c.facts.Must {
		if page.Status != 0 {
			tries[page.String()] = page.Tries
		}
	}
	byPath := make(map[string]testweb.Log)
	for _, q := range log.Pages() {
		byPath[q.Host+q.Path] = append(byPath[q.Host+q.Path], q)
	}
	for path, requests := range byPath {
		more := len(requests) - max(tries[path], 1)
		if more <= 0 || tries[path] == 0 {
			continue
		}
		if of := len(c.victim.requests(requests)); more > of {
			wrong = append(wrong, fmt.Sprintf("%s: fetched %d times, must be %d", path, len(requests), tries[path]))
			continue
		}
		again++
	}
	slices.Sort(wrong)
	return again, wrong
}

// writeNext says where the files are.
func (c *clusterDemo) writeNext(b *strings.Builder) {
	b.WriteString("\nLook into:\n")
	console.WriteTable(b, [][]string{
		{filepath.Join(c.dir, "node1", "config.yaml"), "the settings of a node"},
		{filepath.Join(c.dir, "node1", "log.txt"), "what it said: the shards that it took and gave up"},
		{filepath.Join(c.dir, "node1", "data", "shards"), "its shards, each with a database and the output"},
		{filepath.Join(c.dir, "requests.jsonl"), "what the web saw"},
	})
	fmt.Fprintf(b, "All files are in %s, which can be deleted.\n", c.dir)
}
