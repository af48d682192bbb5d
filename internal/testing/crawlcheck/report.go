package crawlcheck

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// Schema is the version of the JSON form of a Report. It grows when a field changes its meaning.
const Schema = 1

// Report is what a run has shown.
type Report struct {
	Schema   int             `json:"schema"`
	Seed     uint64          `json:"seed"`
	Settings string          `json:"settings,omitempty"` // a name for the settings of the crawler
	Command  []string        `json:"command,omitempty"`  // of the crawler; none: it was started by hand
	Started  time.Time       `json:"started"`
	Seconds  float64         `json:"seconds"`
	Ended    string          `json:"ended"`       // why the run ended
	Requests int64           `json:"requests"`    // that the web got
	Agents   []string        `json:"user_agents"` // the first five
	Counts   map[Verdict]int `json:"counts"`
	Results  []Result        `json:"results"`
}

// Result is what a run has shown about one station.
type Result struct {
	Station  string  `json:"station"`
	Group    string  `json:"group"`
	Level    Level   `json:"level"`
	Verdict  Verdict `json:"verdict"`
	Why      string  `json:"why,omitempty"` // in words; empty if it holds
	Rule     string  `json:"rule"`
	Source   string  `json:"source"`
	Mend     string  `json:"mend"`
	Least    int     `json:"least_requests"` // that a verdict needs
	Requests int     `json:"requests"`       // to the hosts of the station
	// LeastGap is the shortest time from the end of a request to the start of the next one to the same
	// host, in seconds; 0: no host of the station got two.
	LeastGap float64 `json:"least_gap,omitempty"`
	Proof    []Proof `json:"proof,omitempty"`
}

// Proof is a request that shows something.
type Proof struct {
	At      float64 `json:"at"`      // seconds since the run began
	Seconds float64 `json:"seconds"` // until the end of the response
	Host    string  `json:"host"`
	Method  string  `json:"method"`
	Path    string  `json:"path"`
	Status  int     `json:"status"` // 0: there was no response
	Breaks  bool    `json:"breaks"` // it breaks the rule, or is one of two that do
}

// maxProof bounds the requests of a Result.
const maxProof = 60

// Run is how a crawler was run.
type Run struct {
	Command  []string
	Settings string
	Starts   []time.Time // of the crawler; none: when it made its first request is not known
	End      time.Time   // zero: now
	Exited   bool        // the crawler ended by itself
	Quiet    bool        // the run ended because there was no request for a while
	Ended    string      // why the run ended
	// Gap is the least time between two requests to a host; 0: a second.
	Gap time.Duration
}

// Report judges what the web has recorded.
func (l *Lab) Report(r Run) Report {
	if r.End.IsZero() {
		r.End = time.Now()
	}
	if r.Gap == 0 {
		r.Gap = leastGap
	}
	if len(r.Starts) == 0 {
		r.Starts = []time.Time{l.began}
	}
	log := l.Web.Requests().Filter(func(q testweb.Request) bool { return q.Start.Before(r.End) })
	report := Report{
		Schema: Schema, Seed: l.o.Seed, Settings: r.Settings, Command: r.Command, Started: r.Starts[0],
		Seconds: r.End.Sub(r.Starts[0]).Seconds(), Ended: r.Ended, Requests: l.Web.Served(),
		Counts: make(map[Verdict]int), Agents: agentsOf(log),
	}
	byHost := make(map[string]testweb.Log)
	for _, q := range log {
		byHost[q.Host] = append(byHost[q.Host], q)
	}
	for _, one := range l.active {
		e := &evidence{
			hosts: one.hosts, log: log, all: log, web: len(l.Web.Sites()), end: r.End, exited: r.Exited,
			quiet: r.Quiet, starts: r.Starts, gap: r.Gap,
		}
		if one.build != nil {
			e.log = nil
			for _, h := range one.hosts {
				e.log = append(e.log, byHost[h.name]...)
			}
			slices.SortStableFunc(e.log, func(a, b testweb.Request) int { return a.Start.Compare(b.Start) })
		}
		result := one.result(e, l.Web.Dropped() > 0)
		result.LeastGap = e.leastGap()
		result.Proof = proofs(e, r.Starts[0])
		report.Results = append(report.Results, result)
		report.Counts[result.Verdict]++
	}
	return report
}

// result judges one station. A verdict needs evidence: nothing holds by itself.
func (s *running) result(e *evidence, flooded bool) Result {
	result := Result{
		Station: s.Name, Group: s.Group(), Level: s.Level, Rule: s.Rule, Source: s.Source, Mend: s.Mend,
		Least: s.least, Requests: len(e.log),
	}
	if s.not != 0 {
		result.Verdict, result.Why = NotRun, s.not.String()
		return result
	}
	if len(e.log) > 0 {
		if s.judge != nil {
			s.judge(e)
		} else {
			judgePages(e)
		}
	}
	switch {
	case e.why != "":
		result.Verdict, result.Why = Broken, e.why
	case len(e.log) == 0:
		result.Verdict, result.Why = NotShown, "it made no request to the station"
	case flooded:
		result.Verdict = NotShown
		result.Why = fmt.Sprintf("it made more than %d requests, too many to record", maxRequests)
	case len(e.lack) > 0:
		result.Verdict, result.Why = NotShown, e.lack[0]
	case len(e.log) < s.least:
		result.Verdict = NotShown
		result.Why = fmt.Sprintf("it made %s, a verdict needs %d", plural(len(e.log), "request"), s.least)
	default:
		result.Verdict = Holds
	}
	return result
}

// proofs returns the requests of a station, those that break it first if there are too many.
func proofs(e *evidence, began time.Time) []Proof {
	type id struct {
		conn  int64
		start time.Time
	}
	breaks := make(map[id]bool)
	for _, q := range e.proof {
		breaks[id{q.Conn, q.Start}] = true
	}
	var list []Proof
	others := maxProof - min(len(breaks), maxProof)
	for _, q := range e.log {
		bad := breaks[id{q.Conn, q.Start}]
		if len(list) >= maxProof || !bad && others == 0 {
			continue
		}
		if !bad {
			others--
		}
		list = append(list, Proof{
			At: q.Start.Sub(began).Seconds(), Seconds: q.End.Sub(q.Start).Seconds(), Host: q.Host, Method: q.Method,
			Path: q.Path[:min(len(q.Path), 300)], Status: q.Status, Breaks: bad,
		})
	}
	return list
}

func agentsOf(log testweb.Log) (agents []string) {
	for _, q := range log {
		if len(agents) < 5 && !slices.Contains(agents, q.UserAgent) {
			agents = append(agents, q.UserAgent)
		}
	}
	return agents
}

// MustsHold reports whether all rules that a standard demands hold, as far as they were run.
func (r *Report) MustsHold() bool {
	return !slices.ContainsFunc(r.Results, func(s Result) bool {
		return s.Level == Must && s.Verdict != Holds && s.Verdict != NotRun
	})
}

// plural writes a number with a noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// quoted writes text from the network so that it does nothing to a terminal.
func quoted(s string) string { return strconv.QuoteToASCII(s[:min(len(s), 200)]) }
