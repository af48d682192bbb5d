//go:build !core

package audit

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/robots"
)

// Options select what an audit judges.
type Options struct {
	Since  time.Time      // requests that began earlier are not judged; zero: all are judged
	Host   string         // only this host; empty: all
	Robots robots.Options // of the crawl
	// OptOuts are those that are known now. A request that began more than a second after one of
	// them was recorded breaks it. nil: there are none.
	OptOuts *optout.List

	// Each is called for every judged request, in the order of the log, with its finding; nil: no
	// calls. The Request and the Finding are valid only during the call. Run ends with an error of
	// Each.
	Each func(*requestlog.Request, *Finding) error
}

// MaxViolations is the number of violations that a Report lists. All are counted.
const MaxViolations = 1000

// Report is the result of an audit.
type Report struct {
	Counts
	From    time.Time           `json:"from,omitzero"` // when the first request began
	To      time.Time           `json:"to,omitzero"`   // when the last one began
	Lost    uint64              `json:"lost"`          // requests that could not be written, according to the log
	Damaged []requestlog.Damage `json:"damaged,omitempty"`
	// Unfinished is the length of an incomplete record at the end of the newest file, which is
	// being written or was so at a crash.
	Unfinished int64       `json:"unfinished_bytes,omitzero"`
	Violations []Violation `json:"violations"` // the first MaxViolations

	hosts map[string]*host
}

// Counts are the counts of all hosts, or of one.
type Counts struct {
	Requests   uint64 `json:"requests"`
	Pages      uint64 `json:"pages"`
	Robots     uint64 `json:"robots"`         // requests for a robots.txt
	Failed     uint64 `json:"failed"`         // requests without a response
	NoEnd      uint64 `json:"no_end_known"`   // requests in flight when the process was killed
	Again      uint64 `json:"again"`          // requests made again because a killed process could not commit them
	Unproven   uint64 `json:"unproven"`       // pages whose robots.txt is not in the log, or cannot be read
	WallClock  uint64 `json:"by_wall_clock"`  // gaps by the wall clock, which may have been set
	Violations uint64 `json:"all_violations"` // of the report, listed or not

	// UnprovenNoEnd counts those of Unproven that were in flight when the process was killed.
	UnprovenNoEnd uint64 `json:"unproven_no_end_known"`
}

// Run reads request logs and judges them: those of crawls that have no host in common, one after the other. Each is
// given by the directories of its logs: one, or several if nodes on several machines have crawled it in turn. Their
// requests are judged together, and times between those of two machines are measured by their wall clocks. Run keeps
// about 1 KB for each host, and besides that one file of the log at most. The logs may be written meanwhile.
func Run(ctx context.Context, crawls [][]string, o Options) (*Report, error) {
	r := newReport()
	for _, dirs := range crawls {
		if err := r.read(ctx, dirs, o); err != nil {
			return r, err
		}
	}
	return r, nil
}

func newReport() *Report { return &Report{Violations: []Violation{}, hosts: make(map[string]*host)} }

// read reads the logs of a crawl.
func (r *Report) read(ctx context.Context, dirs []string, o Options) error {
	judges := make([]*judge, len(dirs))
	for i := range judges {
		judges[i] = newJudge(o.Robots)
	}
	s, err := requestlog.ReadMerged(dirs, requestlog.Query{Since: o.Since}, func(log int, q *requestlog.Request) error {
		if ctx.Err() != nil { // a robots.txt may take long for each verdict
			return ctx.Err()
		}
		j := judges[log]
		j.enter(q)
		name := q.URL.Host()
		if o.Host != "" && name != o.Host {
			return nil
		}
		if q.Start.Before(o.Since) {
			r.host(name).pass(q)
			return nil
		}
		f := r.judge(j, q, o.OptOuts)
		if o.Each != nil {
			return o.Each(q, f)
		}
		return nil
	})
	r.Lost, r.Damaged, r.Unfinished = r.Lost+s.Lost, append(r.Damaged, s.Damaged...), r.Unfinished+s.Unfinished
	return err
}

func (r *Report) host(name string) *host {
	h := r.hosts[name]
	if h == nil {
		name = strings.Clone(name)
		h = &host{Host: Host{Host: name}}
		r.hosts[name] = h
	}
	return h
}

// judge counts a request and returns its finding.
func (r *Report) judge(j *judge, q *requestlog.Request, optOuts *optout.List) *Finding {
	h := r.host(q.URL.Host())
	f := &Finding{}
	f.optOut(q, optOuts)
	h.gap(q, f)
	h.wall(q, f)
	j.rules(q, f)
	h.hours(q, f)
	h.pass(q)
	if r.From.IsZero() || q.Start.Before(r.From) {
		r.From = q.Start
	}
	if q.Start.After(r.To) {
		r.To = q.Start
	}
	r.count(q, f)
	h.count(q, f)
	h.note(q, f)
	for _, v := range f.Violations {
		if len(r.Violations) < MaxViolations {
			v.Host, v.URL, v.At = h.Host.Host, q.URL.String(), q.Start
			r.Violations = append(r.Violations, v)
		}
	}
	return f
}

func (c *Counts) count(q *requestlog.Request, f *Finding) {
	c.Requests++
	if q.Kind == requestlog.Page {
		c.Pages++
	} else {
		c.Robots++
	}
	c.Failed += one(q.Status == 0 && !q.End.IsZero())
	c.NoEnd += one(q.End.IsZero())
	c.Again += one(q.Again)
	c.Unproven += one(f.Unproven)
	c.UnprovenNoEnd += one(f.Unproven && q.End.IsZero())
	c.WallClock += one(f.HasGap && !f.Exact)
	c.Violations += uint64(len(f.Violations))
}

func one(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// Hosts returns the judged hosts, those with most violations first, then by name.
func (r *Report) Hosts() []*Host {
	var list []*Host
	for _, name := range slices.Sorted(maps.Keys(r.hosts)) {
		if h := r.hosts[name]; h.Requests > 0 {
			list = append(list, &h.Host)
		}
	}
	slices.SortStableFunc(list, func(a, b *Host) int {
		switch {
		case a.Violations > b.Violations:
			return -1
		case a.Violations < b.Violations:
			return 1
		}
		return 0
	})
	return list
}
