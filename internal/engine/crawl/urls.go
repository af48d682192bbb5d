//go:build !core

package crawl

import (
	"context"
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// MaxCheck is the most URLs of one Check.
const MaxCheck = 1000

// URLCheck says whether a URL may be requested now.
type URLCheck struct {
	URL    string    `json:"url"`
	Scope  bool      `json:"in_scope"`
	Robots string    `json:"robots" enum:"allowed,disallowed,held,unknown"` // unknown: none of its origin is in force
	Line   int       `json:"line,omitempty"`                                // of the robots.txt that gave the verdict
	May    bool      `json:"may"`                                           // it may be requested now
	Until  time.Time `json:"until,omitzero"`                                // when the robots verdict ends
	// when its host may be; absent: now, or not known
	Earliest time.Time `json:"earliest,omitzero"`
	Reason   string    `json:"reason,omitempty"` // why it may not be requested now
}

// Check says of URLs whether they may be requested now: they are in scope, the robots.txt in force
// allows them, and their hosts may be requested from. With take, each host of a URL that may is
// charged at once as for a request, so that of several URLs of a host with a delay one may. The
// error is ErrNotRunning or that of ctx. Any goroutine may call it.
func (v *views) Check(ctx context.Context, urls []weburl.URL, take bool) ([]URLCheck, error) {
	all := make([]URLCheck, len(urls))
	hosts := make([]storage.HostID, len(urls))
	read := make(map[weburl.Origin]*originRules)
	for i, u := range urls {
		c := &all[i]
		c.URL, hosts[i] = u.String(), storage.NoHost
		if c.Scope, c.Reason = isInScope(v.scope.Load(), u, new(storage.Entry)); c.Scope {
			c.Reason = ""
		}
		if h, err := v.store.HostByName(u.Host()); err == nil {
			hosts[i] = h.ID
		}
		o := u.Origin()
		if read[o] == nil {
			read[o] = v.rulesInForce(o)
		}
		read[o].check(u, v.o.Frontier.Obey, c)
	}
	err := v.mailbox.Load().call(ctx, func(d *dispatcher) {
		for i := range all {
			d.check(hosts[i], urls[i].Host(), &all[i], take)
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
func (v *views) rulesInForce(o weburl.Origin) *originRules {
	unknown := &originRules{decision: robots.Decision{Kind: robots.DecisionFetch}}
	encoded, err := v.store.Policy(o)
	if err != nil || len(encoded) == 0 {
		return unknown
	}
	record, err := robots.DecodeRecord(encoded)
	if err != nil {
		return unknown
	}
	in := &originRules{decision: v.o.Frontier.Robots.Decide(record, 0, v.o.Now())}
	if in.decision.Kind == robots.DecisionMatch {
		if in.rules, err = v.rulesReader().Compile(&record); err != nil {
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

// check decides whether a URL of a host may be requested now.
func (pm *permits) check(host storage.HostID, name string, c *URLCheck, take bool) {
	switch {
	case c.Reason != "": // it is out of scope
		return
	case c.Robots != "allowed":
		c.Reason = "robots.txt: " + c.Robots
		return
	case pm.isPaused():
		c.Reason = "the crawl gives out nothing at the moment"
		return
	}
	now := pm.o.Now()
	at, may := pm.f.MayRequest(host, name, now, take)
	c.May = may
	if !may {
		c.Reason = "its host may not be requested from now"
		if at.After(now) {
			c.Earliest = at
		}
	}
}
