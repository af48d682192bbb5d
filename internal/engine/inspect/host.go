package inspect

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// The states of a host.
const (
	HostEmpty   = "idle"    // none of its URLs waits
	HostReady   = "ready"   // may be fetched from now
	HostBusy    = "busy"    // has requests in flight, or is being resolved or read
	HostWaiting = "waiting" // may not be fetched from before an instant
	HostFailing = "failing" // waiting after failures, and not yet recovered
	HostHeld    = "held"    // its robots.txt disallows everything
	HostPaused  = "paused"  // the operator paused it
	HostWalled  = "walled"  // a wall stands in place of its pages

	// HostSuspected selects hosts with evidence for a wall, in whatever state: they are crawled as without.
	HostSuspected = "suspected"

	oldFailing = "trouble" // an earlier name of HostFailing, for queries
)

// HostStates returns all states. A host is in one of them.
func HostStates() []string {
	return []string{HostEmpty, HostReady, HostBusy, HostWaiting, HostFailing, HostHeld, HostPaused, HostWalled}
}

// HostFilters returns what HostQuery.State may be, besides empty.
func HostFilters() []string { return append(HostStates(), HostSuspected) }

// Host is one host in a list. Seconds are those of the delays in force.
type Host struct {
	Host     string  `json:"host"`
	State    string  `json:"state"`
	Known    uint32  `json:"known"` // URLs
	URLs     Counts  `json:"urls"`  // by state
	Waiting  uint32  `json:"waiting"`
	Requests uint32  `json:"requests"`
	Bytes    uint64  `json:"bytes"`
	Delay    float64 `json:"delay_seconds"` // between requests
	// when it is fetched from next; absent: now, or an event decides, or no URL waits
	Next   time.Time `json:"next,omitzero"`
	Reason string    `json:"reason,omitempty"` // why it waits, or what is under way
	// Suspected says that there is evidence for a wall. The host is crawled as without.
	Suspected bool `json:"suspected,omitempty"`
	// the kind of the wall that it is behind, and who makes such walls, if that is known
	WallKind  string `json:"wall_kind,omitempty"`
	WallMaker string `json:"wall_maker,omitempty"`
	// FailureShare is the part of the URLs with a final outcome that failed, from 0 to 1.
	FailureShare float64 `json:"failure_share"`
	// why the last request to it, or the last lookup of its name, failed, while it is failing; see
	// CauseName
	LastFailure   string    `json:"trouble,omitempty"`
	Parked        bool      `json:"parked,omitempty"` // it wants no request for a week, or its wall did not end
	FailingSince  time.Time `json:"trouble_since,omitzero"`
	Finish        float64   `json:"finish_seconds"`           // until its last URL is fetched, at the delay in force
	FrontierState string    `json:"frontier_state,omitempty"` // its host state in the running crawl
	// of politeness.groups; by CNAME record only while the crawl is at it
	Group string `json:"group,omitempty"`
}

// hostView is a host with the facts that explain it.
type hostView struct {
	Host
	id     storage.HostID
	polite politeness.Explanation
	due    time.Time      // when the first waiting URL is due
	walled bool           // as of the last commit
	live   *frontier.View // nil: no running crawl knows the host
}

// newHostView reads a host from the store.
func (v *View) newHostView(h *storage.Host, now time.Time) (hostView, error) {
	state, err := politeness.DecodeState(h.Politeness)
	if err != nil {
		return hostView{}, err
	}
	waiting := h.Backlog()
	s := hostView{id: h.ID, polite: politeness.NewHost(v.o.Politeness(h.Name), state, now).Explain(now)}
	if waiting.Queued == 0 && waiting.Due > 0 {
		s.due = time.Unix(int64(waiting.NextDue), 0)
	}
	s.Host = Host{
		Host: h.Name, Known: h.Tail - h.First, URLs: Counts(h.Counts), Waiting: waiting.Queued + waiting.Due,
		Requests: h.Requests, Bytes: h.Bytes, Delay: s.polite.Delay.Seconds()}
	if decided := h.Counts[storage.Fetched] + h.Counts[storage.Redirected] + h.Counts[storage.Failed]; decided > 0 {
		s.FailureShare = math.Round(1000*float64(h.Counts[storage.Failed])/float64(decided)) / 1000
	}
	if v.o.Group != nil {
		s.Group = v.o.Group(h.Name)
	}
	return s, s.seeWall(h)
}

// seeWall adds what the store has of a wall. The hosts of a walk over the store have nothing of it.
func (s *hostView) seeWall(h *storage.Host) error {
	if len(h.Wall) == 0 {
		return nil
	}
	seen, err := wall.DecodeState(h.Wall)
	if err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	v := seen.Verdict()
	s.walled, s.Suspected = seen.Walled(), v.Stand == wall.Suspected
	if s.walled {
		s.WallKind, s.WallMaker = v.Kind.String(), KnownMarks().Name(v.Wall)
	}
	return nil
}

// setState sets the state of the host from the crawl and the store.
func (s *hostView) setState(now time.Time) {
	next := s.polite.Until
	if s.due.After(next) {
		next = s.due
	}
	if l := s.live; l != nil {
		s.FrontierState, next = l.State, l.Next
		s.Delay = l.Delay.Seconds()
		s.Group = cmp.Or(s.Group, l.Group)
		if l.Active {
			s.polite = l.Polite
		}
	}
	if s.Waiting > 0 && next.After(now) && !s.polite.Forever {
		s.Next = next.UTC()
	}
	s.Parked = s.polite.Parked && s.polite.Until.After(now)
	if s.FailingSince = s.polite.FailingSince.UTC(); !s.FailingSince.IsZero() {
		s.LastFailure = CauseName(storage.Cause(s.polite.Cause))
	}
	s.State = s.state()
	s.Reason = s.reason()
	if s.Waiting > 0 && !s.polite.Forever {
		s.Finish = float64(s.Waiting-1)*s.Delay + max(next.Sub(now).Seconds(), 0)
	}
}

func (s *hostView) state() string {
	switch {
	case s.live != nil && isBusy(s.live.State):
		return HostBusy
	case s.paused():
		return HostPaused
	case s.live != nil && s.live.Wall != wall.KindNone, s.live == nil && s.walled:
		return HostWalled
	case s.Waiting == 0:
		return HostEmpty
	case s.live != nil && s.live.Robots != robots.ReasonNone:
		return HostHeld
	case !s.FailingSince.IsZero():
		return HostFailing
	case !s.Next.IsZero():
		return HostWaiting
	}
	return HostReady
}

// isBusy reports whether a host in a host state of the frontier has requests in flight, or is being
// resolved or read.
func isBusy(state string) bool {
	switch state {
	case "loading", "resolving", "limited", "leased":
		return true
	}
	return false
}

// paused reports whether the operator paused the host.
func (s *hostView) paused() bool {
	return s.polite.Forever || s.polite.Reason == politeness.ReasonPause && !s.Next.IsZero()
}

// busyReason says what is under way with a host in a host state of the frontier.
func busyReason(state string) string {
	switch state {
	case "loading":
		return "loading"
	case "resolving":
		return "lookup"
	case "limited":
		return politeness.ReasonLimit.String()
	}
	return "request"
}

// reason says why the host waits, or what is under way, in one word or two.
func (s *hostView) reason() string {
	switch {
	case s.State == HostBusy:
		return busyReason(s.FrontierState)
	case s.paused():
		return politeness.ReasonPause.String()
	case s.Parked && s.Waiting > 0:
		return "parked: " + s.polite.Reason.String()
	case s.live != nil && s.live.Robots != robots.ReasonNone:
		return "robots.txt: " + s.live.Robots.String()
	case s.Next.IsZero():
		return ""
	case s.due.After(s.polite.Until):
		return "due"
	case s.polite.Reason != politeness.ReasonNone:
		return s.polite.Reason.String()
	}
	return ""
}

// hold finds out whether robots.txt closes everything that a host has to do, if no crawl knows it.
func (v *View) hold(s *hostView, h *storage.Host, now time.Time) error {
	if s.live != nil || s.Waiting == 0 || s.paused() || s.walled {
		return nil
	}
	why, until := "", time.Time{}
	for _, q := range h.Queues {
		if q.Queued+q.Due == 0 {
			continue
		}
		p, err := v.policy(q.Origin)
		if err != nil {
			return err
		}
		if !v.o.Obey || !p.closes() {
			return nil
		}
		if until.IsZero() || p.hostView.Until.Before(until) {
			why, until = p.why(), p.hostView.Until
		}
	}
	s.State, s.Reason = HostHeld, "robots.txt: "+why
	if until.After(now) && until.After(s.Next) {
		s.Next = until.UTC()
	}
	return nil
}

// oneHost returns a host with everything known of it.
func (v *View) oneHost(ctx context.Context, h *storage.Host) (Host, error) {
	s, err := v.hostView(ctx, h)
	return s.Host, err
}

func (v *View) hostView(ctx context.Context, h *storage.Host) (hostView, error) {
	now := v.o.Now()
	s, err := v.newHostView(h, now)
	if err != nil {
		return s, err
	}
	if s.live, err = v.live(ctx, h.ID); err != nil {
		return s, err
	}
	s.setState(now)
	return s, v.hold(&s, h, now)
}

// HostStory is everything known of a host.
type HostStory struct {
	Host
	Politeness Politeness `json:"politeness"`
	InFlight   int        `json:"in_flight"`         // requests; only a running crawl has some
	Address    string     `json:"address,omitempty"` // the address that the running crawl uses
	Origins    []Origin   `json:"origins"`
	Traps      []Trap     `json:"traps,omitempty"`
	Wall       *Wall      `json:"wall,omitempty"`
	OptOut     string     `json:"opt_out,omitempty"` // why nothing of it is fetched
	// Slowdown says that the hosts of its address became slower together.
	Slowdown string `json:"slowdown,omitempty"`

	Yield  recrawl.Yield     `json:"yield"`            // of the recrawls of all runs
	Errors map[string]uint32 `json:"errors,omitempty"` // failed requests over all runs, by the names of docs/ERRORS.md
}

// Trap is one kind of trap of a host: URLs that were refused because they lead into it.
type Trap struct {
	Reason  string   `json:"reason"`
	Refused uint64   `json:"refused"`
	Samples []string `json:"samples"` // a few of them
}

// nextURLs is how many of the next URLs are listed.
const nextURLs = 10

// Host returns everything known of a host, or ErrUnknown if it is not in the store.
func (v *View) Host(ctx context.Context, name string) (HostStory, error) {
	h, err := v.host(name)
	if err != nil {
		return HostStory{}, err
	}
	s, err := v.hostView(ctx, &h)
	if err != nil {
		return HostStory{}, err
	}
	story := HostStory{Host: s.Host, Politeness: explained(&s.polite), Origins: []Origin{}, Errors: errorCounts(&h)}
	if s.live != nil {
		story.InFlight = s.live.InFlight
		if s.live.Address.IsValid() {
			story.Address = s.live.Address.String()
		}
	}
	if v.o.OptOut != nil {
		story.OptOut = v.o.OptOut(h.Name, story.Address)
	}
	if v.o.Slowdown != nil {
		story.Slowdown = v.o.Slowdown(story.Address)
	}
	for i, q := range h.Queues {
		o, err := v.origin(h.ID, uint8(i), &q)
		if err != nil {
			return story, err
		}
		story.Origins = append(story.Origins, o)
	}
	if story.Politeness.Source, err = v.source(s.polite.Source, &h); err != nil {
		return story, err
	}
	if story.Politeness.DelaySource, err = v.source(s.polite.DelaySource, &h); err != nil {
		return story, err
	}
	if story.Wall, err = wallOf(&h); err != nil {
		return story, err
	}
	if story.Yield, err = yieldOf(&h); err != nil {
		return story, err
	}
	story.Traps, err = v.traps(h.ID)
	return story, err
}

// yieldOf returns what the recrawls of a host have brought.
func yieldOf(h *storage.Host) (recrawl.Yield, error) {
	site, err := recrawl.DecodeSite(h.Site)
	return site.Yield(), err
}

func errorCounts(h *storage.Host) map[string]uint32 {
	if len(h.Errors) == 0 {
		return nil
	}
	m := make(map[string]uint32, len(h.Errors))
	for _, e := range h.Errors {
		m[ReasonName(e.Reason)] = e.Count
	}
	return m
}

func (v *records) traps(id storage.HostID) ([]Trap, error) {
	counts, err := v.store.Traps(id)
	if err != nil {
		return nil, err
	}
	var traps []Trap
	for _, c := range counts {
		traps = append(traps, Trap{Reason: c.Reason.String(), Refused: c.Count, Samples: c.Samples})
	}
	return traps, nil
}

// source names the source of a limit for people. It quotes the line of robots.txt.
func (v *View) source(s politeness.Source, h *storage.Host) (string, error) {
	switch {
	case s.Header != "":
		return "Retry-After: " + s.Header, nil
	case s.Line.Number == 0 || int(s.Line.Origin) >= len(h.Queues):
		return s.String(), nil
	}
	origin := h.Queues[s.Line.Origin].Origin
	p, err := v.policy(origin)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s/robots.txt line %d: %s", origin, s.Line.Number,
		robots.LineText(p.record.Body, int(s.Line.Number))), nil
}
