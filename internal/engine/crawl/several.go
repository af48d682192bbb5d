//go:build !core

package crawl

import (
	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/gates"
)

// ownGates returns the gates of an engine that makes its own Shared.
func (o *Options) ownGates() gates.Gates { return newGates(o, nil) }

// newGates returns the gates of the engines of a process; nil: there is one. With grants, other processes share limits
// with them. A crawl that is not open may have known of a robots.txt, and its last request may just have ended.
func newGates(o *Options, grants frontier.Grants) gates.Gates {
	if !o.Several {
		return nil
	}
	usual, before := o.Frontier.Politeness.Delay, frontier.Before{}
	switch {
	case o.IgnoreRobots && o.Earlier:
		before.Until = o.Now().Add(usual)
	case o.Earlier:
		before.LastEnd = o.Now()
		before.Until = before.LastEnd.Add(frontier.RestartDelay)
	}
	if o.IgnoreRobots {
		usual = 0 // clients may have set less for some hosts
	}
	keeper := frontier.NewKeeper(usual, before)
	if grants != nil {
		keeper.Share(grants)
	}
	return gates.New(keeper, o.Now)
}

// Forget has the other engines of the process forget what this one, whose run has ended, has requested:
// its crawl is deleted, and its fetchers decide everything. Of any other crawl that still counts.
func (e *Engine) Forget() {
	if e.gate == nil || !e.o.IgnoreRobots {
		return
	}
	e.gate.Delete(e.o.Now())
}

// MustReopen reports whether the next process has to open the crawl, because at the end of the run fetchers
// had leases of it, or hosts had holds that other crawls keep too. It is false if there are no other crawls.
// It may be called when Run has returned.
func (e *Engine) MustReopen() bool { return e.gate != nil && e.gate.MustReopen() }

// mayBegin takes note of the requests that were refused and may be admitted now.
func (g *gathering) mayBegin() {
	if g.gate == nil {
		return
	}
	for _, host := range g.gate.TakeWoken() {
		g.f.Admissible(host, g.o.Now())
	}
	g.collect()
}

// leaveGate ends the part of the engine. A fetcher may work on a lease until its deadline.
func (pm *permits) leaveGate() {
	if pm.gate == nil {
		return // no other engine has to know
	}
	now := pm.o.Now()
	reopen := pm.remote.Len() > 0 || pm.f.Holds(now)
	for x := range pm.remote.All() {
		pm.f.Abandon(x.FrontierID, x.Ends)
	}
	pm.gate.Leave(reopen, now)
}
