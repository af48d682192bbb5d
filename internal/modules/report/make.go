//go:build !core

package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/storage"
)

// Options bound a report.
type Options struct {
	Limit     int // of the rows of each list
	Referrers int // listed of a link
	// HostPages is limits.host_pages, for a crawl that does not run; 0: there is no limit.
	HostPages uint32
	Now       time.Time

	part bool // of a crawl: all seeds that it knows, and no others
}

// The bounds of Options.
const (
	MaxLimit     = 10_000
	MaxReferrers = 10_000
)

// Source is the crawl that a report is about: an [inspect.View].
type Source interface {
	Records() (inspect.Store, *seeds.Set)
	Hosts(context.Context, inspect.HostQuery, func(*inspect.Host) error) (int, error)
}

// The causes for which something is left out. Those of single links are the names of traps (storage.Trap).
const (
	causeRobots     = "robots"      // robots.txt disallows it
	causeWall       = "wall"        // the host is behind a wall
	causeOptOut     = "opt-out"     // its site opted out
	causeUsage      = "usage"       // consent.policy
	causeScope      = "scope"       // it left the scope after it was found
	causeDepth      = "depth"       // crawl.max_depth fell after it was found
	causeOperator   = "operator"    // the operator dropped it
	causeSitemaps   = "sitemaps"    // more sitemaps than sitemaps.max_files
	causeSeedPages  = "seed_pages"  // max_pages of the seed is reached
	causeMaze       = "maze"        // a part of a host that goes on for ever
	causeHeld       = "held"        // robots.txt holds all that waits of the host
	causeWalled     = "walled"      // what waits of a host behind a wall
	causeBudget     = "budget"      // limits.host_pages, limits.domain_pages
	causePaused     = "paused"      // the operator paused the host
	causeFailing    = "failing"     // the host fails
	causeNotReached = "not reached" // the crawl ended before its turn
)

// stateUnknown is the state of a seed that is not in the database.
const stateUnknown = inspect.StateUnknown

// maxSeedCounts bounds the seeds whose URLs are counted.
const maxSeedCounts = 100_000

// maker makes a report. One goroutine uses it.
type maker struct {
	o     Options
	r     *Summary
	store inspect.Store
	set   *seeds.Set
	runs  bool // the crawl does

	seeds  map[string]*Seed   // by URL
	hosts  map[string][]*Seed // those that wait, by host
	host   *storage.Host      // of the URL before
	left   map[string]*HostLeft
	causes map[string]*Cause
}

// Make makes the report of what a source has in its database, without what the output has. state is that of the crawl;
// runs says that it is the state of one that runs.
func Make(ctx context.Context, s Source, state string, runs bool, o Options) (*Summary, error) {
	m := maker{o: o, r: newSummary(), runs: runs, seeds: map[string]*Seed{}, hosts: map[string][]*Seed{},
		left: map[string]*HostLeft{}, causes: map[string]*Cause{}}
	m.store, m.set = s.Records()
	m.r.At, m.r.State = o.Now.UTC(), state
	n := m.store.Counters()
	m.r.Hosts, m.r.Requests, m.r.Bytes = uint64(n.Hosts), n.Requests, n.Bytes
	if err := m.totals(); err != nil {
		return nil, err
	}
	if err := m.readSeeds(); err != nil {
		return nil, fmt.Errorf("look up the seeds: %w", err)
	}
	if _, err := m.store.Walk(ctx, storage.Position{}, 0, m.take); err != nil {
		return nil, fmt.Errorf("read the URLs: %w", err)
	}
	if err := m.endHost(); err != nil {
		return nil, err
	}
	_, err := s.Hosts(ctx, inspect.HostQuery{Sort: inspect.SortFound}, m.takeHost)
	if err == nil {
		err = m.complete()
	}
	if err != nil {
		return nil, fmt.Errorf("read the hosts: %w", err)
	}
	return m.r, nil
}

// totals reads what the crawl counts of what it does not keep.
func (m *maker) totals() error {
	encoded, err := m.store.Mark(marks.Sums)
	if err != nil {
		return err
	}
	t, err := marks.DecodeTotals(encoded)
	if err != nil {
		return err
	}
	m.r.NotKept.Outside, m.r.NotKept.Deep = t.Outside, t.Deep
	for name, n := range t.Types {
		m.r.Types = append(m.r.Types, Type{name, n.Responses, n.Bytes})
	}
	sortTypes(m.r.Types)
	return nil
}

// readSeeds looks all seeds up.
func (m *maker) readSeeds() error {
	if m.set == nil {
		return nil
	}
	for member := range m.set.All() {
		if member.Root != member.URL { // where a redirect of a seed led
			continue
		}
		s := &Seed{URL: member.URL.String(), State: stateUnknown, Source: member.Source}
		head, host, err := m.store.Lookup(member.URL)
		given := member.Seed()
		missing := errors.Is(err, storage.ErrNotFound) || head.Last.State == storage.Failed
		if plain, bare := given.Plain(); bare && missing {
			if other, of, wrong := m.store.Lookup(plain); wrong == nil {
				head, host, err = other, of, nil
			}
		}
		switch {
		case err == nil:
			s.State, s.Status = head.Last.State.String(), int(head.Last.Status)
			s.Reason = causeOf(&head.Last)
			if head.Last.State == storage.Queued || head.Last.State == storage.Retrying {
				m.hosts[host.Name] = append(m.hosts[host.Name], s)
			}
		case !errors.Is(err, storage.ErrNotFound):
			return err
		}
		if len(m.seeds) < maxSeedCounts {
			m.seeds[s.URL] = s
		} else {
			m.r.Seeds.Uncounted++
		}
	}
	return nil
}

// causeOf says why a URL is in its state, in one word or two.
func causeOf(o *storage.Outcome) string {
	if o.Reason == storage.ReasonStatus {
		return inspect.CauseName(storage.StatusCause(int(o.Status)))
	}
	return inspect.ReasonName(o.Reason)
}

// take counts a URL.
func (m *maker) take(l *storage.Located) error {
	if l.Host == nil {
		return nil
	}
	if m.host == nil || m.host.ID != l.Host.ID {
		if err := m.endHost(); err != nil {
			return err
		}
		m.host = l.Host
	}
	o := &l.Last
	m.r.URLs[o.State.String()]++
	if o.Status > 0 {
		m.r.Statuses[strconv.Itoa(int(o.Status))]++
	}
	var of *Seed
	if m.set != nil {
		if member := m.set.Of(l.URL(), seeds.Ref(l.From)); member != nil {
			if of = m.seeds[member.Root.String()]; of != nil {
				of.count(o.State)
			}
		}
	}
	switch o.State {
	case storage.Failed:
		m.r.Failures[cmp.Or(causeOf(o), "unknown")]++
		if o.Reason == storage.ReasonWall {
			m.leave(causeWall, l)
		}
		m.addLink(&m.r.Broken, l, of)
	case storage.Redirected:
		m.addLink(&m.r.Redirects, l, of)
	case storage.Denied, storage.Excluded:
		if o.Reason == storage.ReasonChecked {
			break
		}
		m.leave(leftBy(o.Reason), l)
	}
	return nil
}

// leftBy returns the cause of a URL that is denied or excluded.
func leftBy(r storage.Reason) string {
	switch r {
	case storage.ReasonRobots:
		return causeRobots
	case storage.ReasonOptOut:
		return causeOptOut
	case storage.ReasonUsage:
		return causeUsage
	case storage.ReasonDepth:
		return causeDepth
	case storage.ReasonOperator:
		return causeOperator
	case storage.ReasonSitemaps:
		return causeSitemaps
	case storage.ReasonSeedPages:
		return causeSeedPages
	case storage.ReasonMaze:
		return causeMaze
	case storage.ReasonWall:
		return causeWall
	}
	return causeScope
}

// leave counts a URL of the host at hand that was left out.
func (m *maker) leave(cause string, l *storage.Located) {
	h := m.left[cause]
	if h == nil {
		h = &HostLeft{Host: l.Host.Name, Cause: cause, Like: l.URL().String()}
		m.left[cause] = h
	}
	h.URLs++
}

// endHost adds what was left out of the host at hand.
func (m *maker) endHost() error {
	if m.host == nil {
		return nil
	}
	traps, err := m.store.Traps(m.host.ID)
	if err != nil {
		return fmt.Errorf("host %s: %w", m.host.Name, err)
	}
	for i := range traps {
		t := &traps[i]
		m.r.NotKept.Traps[t.Reason.String()] += t.Count
		h := HostLeft{Host: m.host.Name, Cause: t.Reason.String(), URLs: t.Count, Why: "links that were refused"}
		if len(t.Samples) > 0 {
			h.Like = t.Samples[0]
		}
		m.add(h)
	}
	for _, h := range m.left {
		m.add(*h)
	}
	clear(m.left)
	return nil
}

// add adds what was left out of a host.
func (m *maker) add(h HostLeft) {
	c := m.causes[h.Cause]
	if c == nil {
		c = &Cause{Cause: h.Cause}
		m.causes[h.Cause] = c
	}
	c.Hosts, c.URLs = c.Hosts+1, c.URLs+h.URLs
	l := &m.r.LeftOut
	if l.Hosts = append(l.Hosts, h); len(l.Hosts) > 2*m.o.Limit+100 {
		l.sort(m.o.Limit)
	}
}

// addLink adds a link while there is room.
func (m *maker) addLink(to *Links, l *storage.Located, of *Seed) {
	if to.Total++; len(to.List) >= m.o.Limit {
		return
	}
	link := Link{URL: l.URL().String(), Status: int(l.Last.Status), Note: l.Last.Note, Depth: int(l.Depth)}
	if to == &m.r.Broken {
		link.Reason = causeOf(&l.Last)
	}
	if !l.Last.At.IsZero() {
		link.Fetched = l.Last.At.UTC()
	}
	if of != nil {
		link.Seed = of.URL
	}
	if l.ViaHost != storage.NoHost {
		u, err := m.store.URL(l.ViaHost, l.ViaOrdinal)
		if err == nil { // else the page was deleted
			link.Via, link.Referrers = u.String(), 1
		}
	}
	to.List = append(to.List, link)
}

// takeHost counts what waits of a host that is not fetched from.
func (m *maker) takeHost(h *inspect.Host) error {
	if h.Waiting == 0 {
		return nil
	}
	cause := ""
	switch {
	case h.State == inspect.HostHeld:
		cause = causeHeld
	case h.State == inspect.HostWalled:
		cause = causeWalled
	case h.State == inspect.HostPaused:
		cause = causePaused
	case h.FrontierState == frontier.OverBudget,
		m.o.HostPages > 0 && h.URLs[storage.Fetched] >= m.o.HostPages:
		cause = causeBudget
	case h.State == inspect.HostFailing, h.Parked:
		cause = causeFailing
	case !m.runs:
		cause = causeNotReached
	default:
		return nil
	}
	why := h.Reason
	if h.WallKind != "" {
		why = h.WallKind
		if h.WallMaker != "" {
			why += " of " + h.WallMaker
		}
	}
	if h.LastFailure != "" {
		why = cmp.Or(why, h.State) + "; last failure: " + h.LastFailure
	}
	for _, s := range m.hosts[h.Host] {
		s.Reason = cmp.Or(s.Reason, cause) // it waits with its host
	}
	m.add(HostLeft{Host: h.Host, Cause: cause, URLs: uint64(h.Waiting), Why: why})
	return nil
}

// complete makes lists of what was gathered.
func (m *maker) complete() error {
	for _, s := range m.seeds {
		if !m.o.part || s.State != stateUnknown || s.Known > 0 {
			m.r.Seeds.List = append(m.r.Seeds.List, *s)
		}
	}
	if !m.o.part {
		m.r.Seeds.finish(m.o.Limit)
	}
	for _, c := range m.causes {
		m.r.LeftOut.Causes = append(m.r.LeftOut.Causes, *c)
	}
	m.r.LeftOut.sort(m.o.Limit)
	m.r.Broken.sort()
	m.r.Redirects.sort()
	return nil
}
