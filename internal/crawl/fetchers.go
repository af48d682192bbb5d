package crawl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// MaxCheck is the most URLs of one Check.
const MaxCheck = 1000

// URLCheck says whether a URL may be requested now.
type URLCheck struct {
	URL      string    `json:"url"`
	Scope    bool      `json:"in_scope"`
	Robots   string    `json:"robots" enum:"allowed,disallowed,held,unknown"` // unknown: no robots.txt of its origin is in force
	Line     int       `json:"line,omitempty"`                                // of the robots.txt that gave the verdict
	May      bool      `json:"may"`                                           // it may be requested now
	Until    time.Time `json:"until,omitzero"`                                // when the robots verdict ends
	Earliest time.Time `json:"earliest,omitzero"`                             // when its host may be requested from; absent: now, or not known
	Reason   string    `json:"reason,omitempty"`                              // why it may not be requested now
}

// Check says of URLs whether they may be requested now: they are in scope, the robots.txt in force
// allows them, and their hosts may be requested from. With take, each host of a URL that may is
// charged at once as for a request, so that of several URLs of a host with a delay one may. The
// error is ErrNotRunning or that of ctx. Any goroutine may call it.
func (e *Engine) Check(ctx context.Context, urls []weburl.URL, take bool) ([]URLCheck, error) {
	all := make([]URLCheck, len(urls))
	hosts := make([]storage.HostID, len(urls))
	read := make(map[weburl.Origin]*originRules)
	for i, u := range urls {
		c := &all[i]
		c.URL, hosts[i] = u.String(), storage.NoHost
		if c.Scope, c.Reason = isInScope(e.scope.Load(), u); c.Scope {
			c.Reason = ""
		}
		if h, err := e.store.HostByName(u.Host()); err == nil {
			hosts[i] = h.ID
		}
		o := u.Origin()
		if read[o] == nil {
			read[o] = e.rulesInForce(o)
		}
		read[o].check(u, e.o.Frontier.Obey, c)
	}
	err := e.mailbox.Load().call(ctx, func(d *dispatcher) {
		for i := range all {
			d.check(hosts[i], &all[i], take)
		}
	})
	return all, err
}

// originRules is what the robots.txt of an origin means now.
type originRules struct {
	decision robots.Decision
	rules    *robots.Rules // of DecisionMatch
}

// rulesInForce reads the robots.txt of an origin.
func (e *Engine) rulesInForce(o weburl.Origin) *originRules {
	unknown := &originRules{decision: robots.Decision{Kind: robots.DecisionFetch}}
	encoded, err := e.store.Policy(o)
	if err != nil || len(encoded) == 0 {
		return unknown
	}
	record, err := robots.DecodeRecord(encoded)
	if err != nil {
		return unknown
	}
	in := &originRules{decision: e.o.Frontier.Robots.Decide(record, 0, e.o.Now())}
	if in.decision.Kind == robots.DecisionMatch {
		if in.rules, err = e.rulesReader().Compile(&record); err != nil {
			return unknown
		}
	}
	return in
}

// check sets what robots.txt says of a URL.
func (r *originRules) check(u weburl.URL, obey bool, c *URLCheck) {
	switch r.decision.Kind {
	case robots.DecisionMatch:
		v := r.rules.Match(u.RequestURI())
		c.Robots, c.Line, c.Until = "disallowed", v.Line, r.decision.Until
		if v.Allowed || !obey {
			c.Robots = "allowed"
		}
	case robots.DecisionHold:
		c.Robots, c.Until = "held", r.decision.Until
	default:
		c.Robots = "unknown"
	}
}

// check decides whether a URL may be requested now.
func (d *dispatcher) check(host storage.HostID, c *URLCheck, take bool) {
	switch {
	case c.Reason != "": // it is out of scope
		return
	case c.Robots != "allowed":
		c.Reason = "robots.txt: " + c.Robots
		return
	case d.isPaused():
		c.Reason = "the crawl gives out nothing at the moment"
		return
	}
	now := d.o.Now()
	at, may := d.f.Ask(host, now, take)
	c.May = may
	if !may {
		c.Reason = "its host may not be requested from now"
		if at.After(now) {
			c.Earliest = at
		}
	}
}

// fetcher returns a fetcher, and makes one that is not known. Of too many, the one that was seen
// first and holds nothing is forgotten.
func (r *remoteLeases) fetcher(name string, now time.Time) *Fetcher {
	f := r.fetchers[name]
	if f == nil {
		if len(r.fetchers) >= maxFetchers {
			var oldest *Fetcher
			for _, other := range r.fetchers {
				idle := other.Leases == 0 && !other.CutOff
				if idle && (oldest == nil || other.LastSeen.Before(oldest.LastSeen)) {
					oldest = other
				}
			}
			if oldest != nil {
				delete(r.fetchers, oldest.Name)
			}
		}
		f = &Fetcher{Name: name}
		r.fetchers[name] = f
	}
	f.LastSeen = now.Round(0)
	return f
}

// checkFetcher takes note of a fetcher that calls. The error is ErrCutOff.
func (r *remoteLeases) checkFetcher(name string, now time.Time) error {
	if r.fetcher(name, now).CutOff {
		return fmt.Errorf("fetcher %s: %w", name, ErrCutOff)
	}
	return nil
}

// list returns the fetchers by name.
func (r *remoteLeases) list() []Fetcher {
	all := make([]Fetcher, 0, len(r.fetchers))
	for _, name := range slices.Sorted(maps.Keys(r.fetchers)) {
		all = append(all, *r.fetchers[name])
	}
	return all
}

// setCutOff cuts a fetcher off, or ends that.
func (d *dispatcher) setCutOff(name string, on bool) error {
	now := d.o.Now()
	f := d.remote.fetcher(name, now)
	var mark []byte
	if f.CutOff = on; on {
		mark = []byte(now.UTC().Format(time.RFC3339))
		for _, w := range slices.Clone(d.remote.waiters) {
			if w.request.Fetcher == name {
				w.err = fmt.Errorf("fetcher %s: %w", name, ErrCutOff)
				d.remote.removeWaiter(w)
			}
		}
	}
	d.pending.setMark(markCutOff+name, mark)
	d.log.Info("the operator cuts a fetcher off or admits it", "fetcher", name, "cut_off", on)
	d.report("running")
	return nil
}

// restoreCutOffs takes over which fetchers are cut off.
func (d *dispatcher) restoreCutOffs() error {
	marks, err := d.store.Marks(markCutOff)
	for name := range marks {
		d.remote.fetcher(strings.TrimPrefix(name, markCutOff), time.Time{}).CutOff = true
	}
	return err
}
