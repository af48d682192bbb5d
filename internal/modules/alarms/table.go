//go:build !core

// Package alarms says what needs somebody's attention: one table of conditions, which the list of the API, the
// dashboard, the metrics, amble status and the log are made of. docs/OPERATING.md lists them.
package alarms

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// Severity says how soon somebody is needed.
type Severity string

// The severities, the worst first.
const (
	Critical Severity = "critical" // the crawl stands still, or breaks a promise
	Warning  Severity = "warning"  // it loses something, or may soon stand still
	Notice   Severity = "notice"   // somebody may want to know
)

// Condition is a row of the table.
type Condition struct {
	Code     string
	Title    string
	Severity Severity
	Do       string        // what to do
	After    time.Duration // for how long it has to hold before it shows
	// Holds reports whether it holds now, and in words how. nil: the status of a crawl does not show it.
	Holds func(*facts) (text string, holds bool)
}

// LostNode is the code of a node of a cluster that does not answer.
const LostNode = "lost_node"

// Undelivered is the code of output files that output.on_complete does not take.
const Undelivered = "undelivered"

// Table returns all conditions.
func Table() []Condition {
	return []Condition{
		{"too_early", "Requests began too early", Critical,
			"stop, keep data_dir, run amble audit, and report it", 0, tooEarly},
		{"silent", "The crawl does not respond", Critical,
			"read the log; if the machine is not overloaded, take a profile (server.pprof) and restart", 0, silent},
		{"stalled", "Nothing can be written", Critical,
			"make room on the disk, or mend it: the crawl goes on by itself", 0, stalled},
		{LostNode, "A node of the cluster does not answer", Critical,
			"amble cluster status says what it owned; its shards move to the others by themselves", 0, nil},
		{"crashed", "amble failed at a page", Warning,
			"report it with the files of data_dir/crashes; the next version tries the page again", 0, crashed},
		{"failing", "Most requests fail", Warning,
			"look at the errors by kind: the network or the resolver of this machine may be the cause", 0, failing},
		{Undelivered, "Output is not taken", Warning,
			"mend what output.on_complete or the receiver of the webhook needs: it is tried again by itself",
			time.Minute, undelivered},
		{"low_disk", "The disk is nearly full", Warning,
			"make room, or move complete output files away: at storage.min_free the crawl stands still", 0, lowDisk},
		{"dead_seeds", "Seeds bring nothing", Warning,
			"amble seed ls and amble urls URL say why; correct them, or remove them with amble seed rm",
			5 * time.Minute, deadSeeds},
		{"idle", "Nothing is fetched", Warning,
			"amble hosts --sort waiting says what the hosts wait for", 30 * time.Minute, idle},
		{"many_walls", "A fifth of the hosts is behind a wall", Warning,
			"amble hosts --state walled lists them; slow down, write to the operators of the sites, or drop the hosts",
			5 * time.Minute, manyWalls},
		{"robots_unreachable", "robots.txt cannot be read", Warning,
			"amble hosts --state held lists the hosts: nothing of them is fetched until it can", time.Hour, robotsHeld},
		{"forgotten_pause", "The crawl is paused", Warning, "amble control resume", 24 * time.Hour, paused},
		{"walls", "Hosts are behind a wall", Notice,
			"amble hosts --state walled lists them, and amble hosts HOST shows the evidence", time.Minute, walls},
		{"parked", "Hosts are left alone", Notice,
			"amble hosts --sort next lists those that want no request for a week, or whose wall did not end",
			0, parked},
		{"mazes", "Hosts have mazes", Notice,
			"nothing: they are left alone (docs/TRAPS.md); amble hosts HOST shows the links", 0, mazes},
		{"slower_together", "Hosts of one address became slower together", Notice,
			"they may share a server: politeness.groups can limit them together", 0, slowdowns},
		{"rate_limited", "crawl.max_rate holds the crawl", Notice,
			"nothing if that is intended, else amble control set crawl.max_rate=20", 15 * time.Minute, rateLimited},
	}
}

// facts are what conditions are about.
type facts struct {
	*crawl.Status
	now     time.Time
	idle    time.Duration // since the last page, or the start of the run
	past    window        // over the last windowLength
	waiting int           // URLs

	undelivered string // why output files are not taken; empty: they are
	full        string // which disk is nearly full; empty: none is
}

// window is what changed over some time.
type window struct {
	requests, errors uint64
	rateWait         float64 // in which hosts were due and max_rate held them, in seconds
	length           time.Duration
}

func tooEarly(f *facts) (string, bool) {
	n := f.Pace.Violations
	return console.Plural(int(n), "request") + " of this run began sooner than the delay of the host allows", n > 0
}

// lateStatus is the age of a status that a dispatcher has which is at work.
const lateStatus = 10 * time.Second

func silent(f *facts) (string, bool) {
	age := f.now.Sub(f.At)
	is := f.State != "finished" && !f.Started.IsZero() && age > lateStatus
	return "its last sign of life is " + console.Span(age) + " old", is
}

func stalled(f *facts) (string, bool) { return f.Reason, f.State == "stalled" }

func crashed(f *facts) (string, bool) {
	n := f.Failed["crash"]
	return console.Plural(int(n), "page") + " of this run made amble fail, which goes on without", n > 0
}

func lowDisk(f *facts) (string, bool) { return f.full, f.full != "" }

func deadSeeds(f *facts) (string, bool) {
	d := f.DeadSeeds
	if d == nil {
		return "", false
	}
	text := console.Plural(d.Count, "seed") + ": "
	for i := range d.First {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s (%s)", d.First[i].URL, d.First[i].Reason)
	}
	if d.Count > len(d.First) {
		text += ", ..."
	}
	return text, true
}

// fewRequests say nothing about a share of failures.
const fewRequests = 100

func failing(f *facts) (string, bool) {
	text := fmt.Sprintf("%d of the last %d requests had no response, or a status of 500 or more", f.past.errors,
		f.past.requests)
	return text, f.past.requests >= fewRequests && 2*f.past.errors > f.past.requests
}

func idle(f *facts) (string, bool) {
	text := fmt.Sprintf("no page came for %s, and %s wait", console.Span(f.idle), console.Plural(f.waiting, "URL"))
	return text, f.State == "running" && f.waiting > 0 && f.idle > time.Minute
}

// fewHosts say nothing about a share of hosts.
const fewHosts = 10

func manyWalls(f *facts) (string, bool) {
	n := sum(f.Walls)
	return fmt.Sprintf("%d of %d hosts are: %s", n, f.Hosts, listed(f.Walls)), f.Hosts >= fewHosts && 5*n > f.Hosts
}

func walls(f *facts) (string, bool) {
	n := sum(f.Walls)
	return console.Plural(n, "host") + ": " + listed(f.Walls), n > 0
}

func robotsHeld(f *facts) (string, bool) {
	n := f.Held["unreachable"]
	return console.Plural(n, "host") + " with URLs that wait", n > 0 && 5*n > f.Hosts
}

func undelivered(f *facts) (string, bool) { return f.undelivered, f.undelivered != "" }

func paused(f *facts) (string, bool) {
	return "since " + f.Since.UTC().Format(time.RFC3339), f.State == "paused"
}

func parked(f *facts) (string, bool) { return console.Plural(f.Parked, "host"), f.Parked > 0 }

func mazes(f *facts) (string, bool) {
	n := f.Traps["maze"]
	return console.Plural(int(n), "link") + " into them were refused in this run", n > 0
}

func slowdowns(f *facts) (string, bool) {
	if len(f.Slowdowns) == 0 {
		return "", false
	}
	text := f.Slowdowns[0].String()
	if n := len(f.Slowdowns) - 1; n > 0 {
		text += fmt.Sprintf("; and those of %d more", n)
	}
	return text, true
}

func rateLimited(f *facts) (string, bool) {
	share := 0.0
	if f.past.length > 0 {
		share = f.past.rateWait / f.past.length.Seconds()
	}
	text := fmt.Sprintf("hosts were due for %.0f%% of the time, and had to wait for it", 100*share)
	return text, f.past.length >= time.Minute && share > 0.5
}

func sum(counts map[string]int) (n int) {
	for _, k := range counts {
		n += k
	}
	return n
}

// listed writes counts by name, the largest first.
func listed(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", counts[name], name)
	}
	return strings.Join(names, ", ")
}
