package crawl

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/ends"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/seedbook"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/slowdown"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/survey"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/tally"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/storage"
)

// Status is a snapshot of a crawl, made once a second. It is plain data and goes out as JSON.
type Status struct {
	State   string         `json:"state"` // opened, running, paused, draining, stalled, stopping, finished
	Reason  string         `json:"reason,omitempty"`
	End     End            `json:"end,omitempty"`    // why the run ends: see the ends
	Started time.Time      `json:"started,omitzero"` // of the run
	Since   time.Time      `json:"since,omitzero"`   // when it came into this state
	At      time.Time      `json:"at"`
	URLs    map[string]int `json:"urls"`  // by state, over all runs
	Hosts   int            `json:"hosts"` // known
	// Requisites are those of URLs that are no pages, but what pages are made of; absent: there are none.
	Requisites map[string]int `json:"requisites,omitempty"`
	// RequisitesFinish is how long those take that wait, at the delays in force: of the host that takes longest.
	RequisitesFinish float64        `json:"requisites_finish_seconds,omitempty"`
	HostStates       map[string]int `json:"host_states"`
	Held             map[string]int `json:"held,omitempty"` // hosts whose robots.txt holds all waiting URLs, by reason
	InFlight         int            `json:"in_flight"`
	Requests         uint64         `json:"requests"` // over all runs
	Bytes            uint64         `json:"bytes"`    // over all runs

	Run Rates `json:"run"`
	// Traps are links of this run that were refused, by reason; Statuses the responses of this run
	// by HTTP status, those to requests for robots.txt included.
	Traps    map[string]uint64 `json:"traps,omitempty"`
	Statuses map[string]uint64 `json:"statuses,omitempty"`
	// Errors are the requests of this run without a usable response, those for robots.txt and
	// lookups of names included; Failed the URLs that this run gave up. Both by the names of
	// docs/ERRORS.md; a status is spelt out: "status 404".
	Errors map[string]uint64 `json:"errors,omitempty"`
	Failed map[string]uint64 `json:"failed,omitempty"`

	Fetchers []Fetcher `json:"fetchers,omitempty"` // remote ones, by name

	Pace        tally.Pace     `json:"pace"`
	Limits      Limits         `json:"limits"`
	OptOuts     int            `json:"opt_outs"`         // in force
	PagesPerSec float64        `json:"pages_per_second"` // over the last ten seconds
	BytesPerSec float64        `json:"bytes_per_second"`
	Finish      float64        `json:"finish_seconds"`          // at the delays and the max_rate in force
	Slowest     []SlowHost     `json:"slowest_hosts,omitempty"` // at the delays in force, the last first
	Parked      int            `json:"parked_hosts,omitempty"`  // want no request for a week, or their wall lasts
	Walls       map[string]int `json:"walls,omitempty"`         // hosts behind a wall, by its kind
	// the same by its maker; UnknownMaker: nobody knows
	WallMakers map[string]int `json:"wall_makers,omitempty"`
	// seeds that nothing will come of, by the last look at all of them; nil: there are none
	DeadSeeds *DeadSeeds `json:"dead_seeds,omitempty"`
	// addresses whose hosts got slower together; the first 50
	Slowdowns    []Slowdown `json:"slowdowns,omitempty"`
	DataDir      string     `json:"data_dir"`
	OutputDir    string     `json:"output_dir,omitempty"`
	ProductToken string     `json:"product_token"`
}

// UnknownMaker is in Status.WallMakers for walls that nobody is known to have made.
const UnknownMaker = survey.UnknownMaker

// Rates are the counts of one run.
type Rates = tally.Rates

// Limits are the limits of the crawl as a whole, 0 where there is none, and for how long they have
// held it in this run.
type Limits struct {
	MaxRate       float64 `json:"max_rate"`               // requests a second
	RateWait      float64 `json:"rate_wait_seconds"`      // in which hosts were due and max_rate held them
	Bandwidth     int64   `json:"bandwidth"`              // bytes a second
	HostBandwidth int64   `json:"host_bandwidth"`         // bytes a second of each host; overrides may say otherwise
	BandwidthWait float64 `json:"bandwidth_wait_seconds"` // that requests have waited for either, all together
	Received      uint64  `json:"received_bytes"`         // over the connections of this run, TLS and headers included
	ExitWhenDone  bool    `json:"exit_when_done"`         // false: the process stays up
}

// limits are the limits in force.
func (v *views) limits(rateWait float64) Limits {
	force := v.live.Load()
	perSecond, bandwidth := v.shared.quota.InForce()
	received, waited := v.shared.client.Received()
	return Limits{
		MaxRate: perSecond, RateWait: rateWait,
		Bandwidth: bandwidth, HostBandwidth: force.Politeness.Bandwidth, BandwidthWait: waited.Seconds(),
		Received: uint64(received), ExitWhenDone: force.ExitWhenDone,
	}
}

// SlowHost is a host that takes long to be done.
type SlowHost = survey.SlowHost

// DeadSeeds is the seeds that nothing will come of.
type DeadSeeds = seedbook.Dead

// Slowdown is an address whose hosts have become slower together.
type Slowdown = slowdown.Slowdown

// observe takes how long a response took to begin.
func (r *reporter) observe(res *work.Result) {
	if q := &res.Request; !q.FirstByte.IsZero() {
		r.slow.Observe(q.Address, res.Lease.HostName, q.FirstByte.Sub(q.Connected), q.End)
	}
}

// Postponed is a host with URLs that could not be fetched in this run.
type Postponed struct {
	Host   string    `json:"host"`
	URLs   int       `json:"urls"`
	Until  time.Time `json:"until,omitzero"`
	Reason string    `json:"reason"`
	Cause  string    `json:"cause,omitempty"`  // why the last request to it, or the last lookup of its name, failed
	Failed bool      `json:"failed,omitempty"` // it could not be reached, or its robots.txt lets nothing be fetched
}

// Status returns the latest snapshot.
func (v *views) Status() Status { return *v.status.Load() }

// publish completes a snapshot and makes it the latest.
func (v *views) publish(s Status) {
	c := v.store.Counters()
	s.At, s.DataDir = v.o.Now(), v.o.DataDir
	s.OutputDir, s.ProductToken = v.o.Archive.Dir, v.o.Frontier.Tokens[0]
	s.Hosts, s.Requests, s.Bytes = int(c.Hosts), c.Requests, c.Bytes
	s.URLs, s.Requisites = c.ByName(), c.RequisitesByName()
	if s.HostStates == nil {
		s.HostStates = map[string]int{}
	}
	t := &v.tally
	s.Run, s.Traps, s.Failed = t.Rates(), t.Traps(), t.Failed()
	s.Limits = v.limits(s.Limits.RateWait)
	if scope := v.scope.Load(); scope != nil {
		s.OptOuts = scope.OptOuts().Len()
	}
	s.Statuses, s.Errors, s.Pace = t.Statuses(), t.Errors(), t.Pace()
	v.status.Store(&s)
}

// reporter publishes what a run does. The dispatcher owns it.
type reporter struct {
	send       func(Status)
	tally      *tally.Tally
	surveyor   survey.Surveyor
	dead       seedbook.DeadFinder
	started    time.Time
	state      string // as last reported
	stateSince time.Time
	meter      tally.Meter
	slow       slowdown.Finder
}

// publish publishes a snapshot of the run, with what the last survey found.
func (r *reporter) publish(s Status, now time.Time) {
	found := r.surveyor.Found()
	s.Started, s.HostStates, s.Held = r.started, found.States, found.Held
	s.Finish, s.Slowest, s.Parked = found.FinishIn(s.Limits.MaxRate), found.Slowest, found.Parked
	s.RequisitesFinish = found.Requisites
	s.Walls, s.WallMakers, s.Slowdowns = found.Walls, found.Makers, r.slow.Found
	s.DeadSeeds = r.dead.Found()
	if s.State != r.state {
		r.state, r.stateSince = s.State, now
	}
	s.Since = r.stateSince
	s.PagesPerSec, s.BytesPerSec = r.meter.Rates(now, r.tally.Rates())
	r.send(s)
}

// report publishes a snapshot of the run. state is running, stopping or finished; the snapshot says
// more precisely what holds.
func (oc *outcomes) report(state string) {
	switch state {
	case "running":
		oc.surveyor.Begin(oc.postponedAfter())
		oc.dead.Step(oc.f.Scope().Seeds(), oc.o.Now())
	case "finished":
		oc.surveyor.All(oc.postponedAfter())
	}
	now := oc.o.Now()
	s := Status{State: state, InFlight: oc.flights.busy + oc.remote.Len(), Fetchers: oc.remote.Fetchers()}
	if oc.shuttingDown && oc.failed == nil {
		s.End = cmp.Or(oc.end, EndStopped)
	}
	perSecond, _ := oc.shared.quota.InForce()
	s.Limits = Limits{MaxRate: perSecond, RateWait: oc.quota.Waited(now).Seconds()}
	switch {
	case state == "finished":
	case oc.stall.Why() != nil:
		s.State, s.Reason = "stalled", oc.stall.Why().Error()
	case oc.shuttingDown:
		s.State = "stopping"
	case !oc.pausedSince.IsZero():
		s.State, s.Reason = "paused", "by the operator since "+oc.pausedSince.UTC().Format(time.DateTime)+" UTC"
	case oc.draining:
		s.State = "draining"
	case oc.waitsForURLs():
		s.Reason = waitsForURLs
	}
	oc.publish(s, now)
}

// postponedAfter is the longest wait for which this run does not postpone a host.
func (pm *permits) postponedAfter() time.Duration {
	if pm.endsWhenDone() {
		return pm.live.Load().GiveUpAfter
	}
	return math.MaxInt64
}

// waitsForURLs is the reason of a run that stays up and has nothing to do.
const waitsForURLs = "nothing is left to fetch: it waits for URLs (amble seed add, amble import, POST /api/v1/urls), " +
	"or for recrawls that are due"

// waitsForURLs reports whether the run has nothing to do, by the last survey: all hosts are empty
// or have recrawls only.
func (oc *outcomes) waitsForURLs() bool {
	if oc.endsWhenDone() || oc.flights.busy+oc.remote.Len() > 0 || !oc.sweeps.isEmpty() ||
		oc.surveyor.Found().States == nil || oc.surveyor.Found().Working > 0 {
		return false
	}
	c := oc.store.Counters()
	return c.Of(storage.Queued)+c.Of(storage.Retrying) == 0
}

// summary returns what the run came to, but for its seeds.
func (oc *outcomes) summary(ctx context.Context, status func() Status) Summary {
	s := Summary{Status: status(), End: oc.end}
	if ctx.Err() != nil || oc.stopped {
		s.End = EndStopped
	}
	oc.f.Waiting(oc.o.Now(), func(w frontier.View) {
		if w.Left > 0 {
			s.Postponed = append(s.Postponed, postponed(oc.store, &w))
		}
	})
	slices.SortFunc(s.Postponed, func(a, b Postponed) int { return cmp.Compare(b.URLs, a.URLs) })
	return s
}

// End is why a run is over.
type End = ends.End

// The ends of a run without an error.
const EndDone, EndStopped = ends.Done, ends.Stopped
const EndMaxPages, EndMaxBytes, EndMaxTime = ends.MaxPages, ends.MaxBytes, ends.MaxTime

// Stopped reports whether somebody has stopped the run.
func (s *Summary) Stopped() bool { return s.End == EndStopped }

// maxUnlisted is how many hosts may be listed from the store while no dispatcher runs.
const maxUnlisted = 100_000
