package crawl

import (
	"cmp"
	"context"
	"fmt"
	"sort"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Status is a snapshot of a crawl, made once a second. It is plain data and
// goes out as JSON.
type Status struct {
	State    string         `json:"state"` // opened, running, paused, stalled, stopping, finished
	Reason   string         `json:"reason,omitempty"`
	Started  time.Time      `json:"started,omitzero"` // of the run
	Since    time.Time      `json:"since,omitzero"`   // when it came into this state
	At       time.Time      `json:"at"`
	URLs     map[string]int `json:"urls"`  // by state, over all runs
	Hosts    int            `json:"hosts"` // known
	Places   map[string]int `json:"places"`
	Held     map[string]int `json:"held,omitempty"` // hosts of which robots.txt holds all that waits, by reason
	InFlight int            `json:"in_flight"`
	Requests uint64         `json:"requests"` // over all runs
	Bytes    uint64         `json:"bytes"`    // over all runs

	Run          Rates             `json:"run"`
	Traps        map[string]uint64 `json:"traps,omitempty"`    // links of this run that were refused, by reason
	Statuses     map[string]uint64 `json:"statuses,omitempty"` // answers of this run by HTTP status, those to robots.txt among them
	Errors       map[string]uint64 `json:"errors,omitempty"`   // requests of this run without a usable answer, by the names of docs/ERRORS.md; robots.txt and name lookups among them
	Failed       map[string]uint64 `json:"failed,omitempty"`   // URLs that this run gave up, by the names of docs/ERRORS.md; a status is spelt out: "status 404"
	Pace         Pace              `json:"pace"`
	Limits       Limits            `json:"limits"`
	PagesPerSec  float64           `json:"pages_per_second"` // over the last ten seconds
	BytesPerSec  float64           `json:"bytes_per_second"`
	Finish       float64           `json:"finish_seconds"`          // at the delays in force; the slowest host decides
	Slowest      []SlowHost        `json:"slowest_hosts,omitempty"` // those that decide it, the last of them first
	Parked       int               `json:"parked_hosts,omitempty"`  // asked to be left alone for more than a week
	DataDir      string            `json:"data_dir"`
	OutputDir    string            `json:"output_dir,omitempty"`
	ProductToken string            `json:"product_token"`
}

// Rates are the counts of one run.
type Rates struct {
	Pages    uint64 `json:"pages"`    // answers with content
	Recrawls uint64 `json:"recrawls"` // requests for pages that had been requested before, but for retries
	Requests uint64 `json:"requests"` // that left, for pages and for robots.txt, those that were broken off among them
	Errors   uint64 `json:"errors"`   // of these, those without an answer, and 5xx; not those that the crawler itself broke off
	Bytes    uint64 `json:"bytes"`    // of the bodies that came
	Robots   uint64 `json:"robots"`   // robots.txt files judged
	Added    uint64 `json:"added"`    // URLs that were new
	Outside  uint64 `json:"outside"`
	Commits  uint64 `json:"commits"`
}

// Limits are the limits of the crawl as a whole, 0 where there is none, and for how long they have held
// it in this run.
type Limits struct {
	MaxRate       float64 `json:"max_rate"`               // requests a second
	RateWait      float64 `json:"rate_wait_seconds"`      // in which hosts were due and max_rate held them
	Bandwidth     int64   `json:"bandwidth"`              // bytes a second
	HostBandwidth int64   `json:"host_bandwidth"`         // bytes a second of each host; overrides may say otherwise
	BandwidthWait float64 `json:"bandwidth_wait_seconds"` // that requests have waited for either, all together
	Received      uint64  `json:"received_bytes"`         // over the connections of this run, TLS and headers included
}

// limits are the limits in force.
func (e *Engine) limits(rateWait float64) Limits {
	force := e.force.Load()
	received, waited := e.client.Received()
	return Limits{
		MaxRate: force.MaxRate, RateWait: rateWait,
		Bandwidth: force.Bandwidth, HostBandwidth: force.Politeness.Bandwidth, BandwidthWait: waited.Seconds(),
		Received: uint64(received),
	}
}

// SlowHost is a host that takes long to be done.
type SlowHost struct {
	Host   string  `json:"host"`
	URLs   int     `json:"urls"`           // that wait
	Finish float64 `json:"finish_seconds"` // until the last of them is fetched, at the delay in force
}

// Postponed is a host with URLs that could not be asked for in this run.
type Postponed struct {
	Host   string    `json:"host"`
	URLs   int       `json:"urls"`
	Until  time.Time `json:"until,omitzero"`
	Reason string    `json:"reason"`
	Cause  string    `json:"cause,omitempty"`  // why the last request to it, or the last lookup of its name, failed
	Failed bool      `json:"failed,omitempty"` // it could not be reached, or its robots.txt lets nothing be fetched
}

// tally counts what workers do.
type tally struct {
	pages, recrawls, requests, errors, bytes, robots, added, outside, commits atomic.Uint64

	traps   trapTally
	answers answerTally
	gaveUp  gaveUpTally
	pace    paceTally
}

// answered counts a request with an answer.
func (t *tally) answered(status int, bytes int64) {
	t.requests.Add(1)
	t.bytes.Add(uint64(bytes))
	if status >= 500 {
		t.errors.Add(1)
	}
}

// failed counts a request without one. What never left is none.
func (t *tally) failed(kind fetch.Kind, sent bool) {
	if kind != fetch.KindCanceled {
		t.errors.Add(1)
	} else if !sent {
		return
	}
	t.requests.Add(1)
}

func (t *tally) load() Rates {
	return Rates{
		Pages: t.pages.Load(), Recrawls: t.recrawls.Load(), Requests: t.requests.Load(), Errors: t.errors.Load(), Bytes: t.bytes.Load(),
		Robots: t.robots.Load(), Added: t.added.Load(), Outside: t.outside.Load(), Commits: t.commits.Load(),
	}
}

// meter keeps the counts of the last seconds, for rates.
type meter struct {
	at   [10]time.Time
	seen [10]Rates
	n    int
}

func (m *meter) tick(now time.Time, r Rates) {
	m.at[m.n%len(m.at)], m.seen[m.n%len(m.seen)] = now, r
	m.n++
}

// rates are pages and bytes a second since the oldest tick.
func (m *meter) rates(now time.Time, r Rates) (pages, bytes float64) {
	if m.n == 0 {
		return 0, 0
	}
	oldest := 0
	if m.n > len(m.at) {
		oldest = m.n % len(m.at)
	}
	seconds := now.Sub(m.at[oldest]).Seconds()
	if seconds < 0.5 {
		return 0, 0
	}
	return float64(r.Pages-m.seen[oldest].Pages) / seconds, float64(r.Bytes-m.seen[oldest].Bytes) / seconds
}

// Status returns the latest snapshot.
func (e *Engine) Status() Status { return *e.status.Load() }

func (e *Engine) publish(s Status) {
	c := e.store.Counters()
	s.At, s.DataDir = e.now(), e.o.DataDir
	s.OutputDir, s.ProductToken = e.o.Archive.Dir, e.o.Frontier.Tokens[0]
	s.Hosts, s.Requests, s.Bytes = int(c.Hosts), c.Requests, c.Bytes
	s.URLs = StateCounts(c)
	if s.Places == nil {
		s.Places = map[string]int{}
	}
	s.Run, s.Traps = e.tally.load(), e.tally.traps.load()
	s.Failed = e.tally.gaveUp.load()
	s.Limits = e.limits(s.Limits.RateWait)
	s.Statuses, s.Errors, s.Pace = e.tally.answers.load(), e.tally.answers.errors(), e.tally.pace.load()
	e.status.Store(&s)
}

// StateCounts gives the counts of URLs names.
func StateCounts(c storage.Counters) map[string]int {
	m := make(map[string]int, len(c.States))
	for state, n := range c.States {
		m[storage.State(state).String()] = int(n)
	}
	return m
}

// report publishes a snapshot of the run.
func (r *run) report(state string) {
	now := r.now()
	switch state {
	case "running":
		r.beginSurvey(now)
	case "finished":
		r.surveyAll()
	}
	survey := &r.surveyor.found
	s := Status{State: state, Started: r.started, InFlight: r.busy, Places: survey.places, Held: survey.held}
	s.Finish, s.Slowest, s.Parked = survey.finish, survey.slowest, survey.parked
	switch {
	case state == "finished":
	case r.stalled() != nil:
		s.State, s.Reason = "stalled", r.stalled().Error()
	case r.draining:
		s.State = "stopping"
	case !r.pausedSince.IsZero():
		s.State, s.Reason = "paused", "by the operator since "+r.pausedSince.UTC().Format(time.DateTime)+" UTC"
	case r.winding:
		s.State = "draining"
	case r.waits():
		s.Reason = waitsForURLs
	}
	if s.State != r.state {
		r.state, r.stateSince = s.State, now
	}
	s.Since = r.stateSince
	s.Limits.RateWait = r.maxRate.total(now).Seconds()
	s.PagesPerSec, s.BytesPerSec = r.meter.rates(now, r.tally.load())
	r.publish(s)
}

// waitsForURLs is the reason of a run that stays up and has nothing to do.
const waitsForURLs = "nothing is left to fetch: it waits for URLs (amble import, POST /api/v1/urls), or for recrawls that are due"

// waits reports whether the run has nothing to do, by the last walk over the hosts: all of them are empty or have recrawls only.
func (r *run) waits() bool {
	if r.ends() || r.busy > 0 || r.sweeping+len(r.sweeps) > 0 || r.surveyor.found.places == nil {
		return false
	}
	for place := range r.surveyor.found.places {
		if place != "idle" && place != "resting" && place != "renewing" {
			return false
		}
	}
	c := r.store.Counters()
	return c.Of(storage.Queued)+c.Of(storage.Retrying) == 0
}

func (r *run) hostName(id storage.HostID) string {
	h, err := r.store.HostByID(id)
	if err != nil {
		return ""
	}
	return h.Name
}

// summary is the end of the run.
func (r *run) summary(ctx context.Context) Summary {
	s := Summary{Status: r.Status(), Stopped: ctx.Err() != nil || r.stopped}
	r.f.Waiting(r.now(), func(w frontier.Waiting) {
		if w.Left > 0 {
			s.Postponed = append(s.Postponed, r.postponed(w))
		}
	})
	sort.Slice(s.Postponed, func(i, j int) bool { return s.Postponed[i].URLs > s.Postponed[j].URLs })
	return s
}

func (r *run) postponed(w frontier.Waiting) Postponed {
	p := Postponed{Host: w.Name, URLs: w.Left, Until: w.Until, Reason: w.Reason.String()}
	trouble := false
	if h, err := r.store.HostByID(w.Host); err == nil {
		p.Host = h.Name
		trouble, p.Cause = troubleOf(&h)
		if w.Robots == robots.ReasonUnreachable {
			p.Cause = cmp.Or(p.Cause, r.robotsCause(&h))
		}
	}
	switch {
	case w.Budget:
		p.Reason = "budget"
	case w.Robots != robots.ReasonNone:
		p.Reason = "robots.txt: " + w.Robots.String()
	case w.Parked:
		p.Reason = "parked: " + p.Reason
	}
	p.Failed = w.Robots != robots.ReasonNone || trouble
	return p
}

// troubleOf is whether a host is in trouble, and why, as committed.
func troubleOf(h *storage.Host) (trouble bool, cause string) {
	state, err := politeness.DecodeState(h.Politeness)
	if err != nil || state.TroubleSince.IsZero() {
		return false, ""
	}
	return true, inspect.CauseName(storage.Cause(state.Cause))
}

// robotsCause is why a robots.txt of a host cannot be had.
func (r *run) robotsCause(h *storage.Host) string {
	for i := range h.Queues {
		encoded, err := r.store.Policy(h.Queues[i].Origin)
		if err != nil {
			return ""
		}
		record, err := robots.DecodeRecord(encoded)
		switch {
		case err != nil || record.Class != robots.ClassUnreachable:
		case record.Failure != robots.FailureNone:
			return "robots.txt, " + record.Failure.String()
		default:
			return fmt.Sprintf("robots.txt, status %d", record.Status)
		}
	}
	return ""
}
