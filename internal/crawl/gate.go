package crawl

import (
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// gates keep the limits of hosts over all engines of a process. They are safe for concurrent use.
type gates struct {
	mu     sync.Mutex // of the keeper and its members; nothing blocks under it
	keeper *frontier.Keeper
	now    func() time.Time
}

// Granted says that what this process has of a limit that others share may have changed.
func (s *Shared) Granted(k frontier.LimitKey) {
	s.gates.mu.Lock()
	defer s.gates.mu.Unlock()
	s.gates.keeper.Granted(k, s.gates.now())
}

// gate is that of one engine's frontier.
type gate struct {
	of     *gates
	member *frontier.Member
}

// add returns the gate of one more engine. wake is called when something is woken.
func (g *gates) add(wake func()) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	return &gate{g, g.keeper.Join(wake)}
}

// Begin is part of frontier.Gate.
func (g *gate) Begin(r *frontier.GateRequest) frontier.Admission {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	return g.member.Begin(r)
}

// Adopt is part of frontier.Gate.
func (g *gate) Adopt(r *frontier.GateRequest) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Adopt(r)
}

// End is part of frontier.Gate.
func (g *gate) End(r *frontier.GateRequest, end frontier.GateEnd) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.End(r, end)
}

// Know is part of frontier.Gate.
func (g *gate) Know(host string, k frontier.Knowledge, now time.Time) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Know(host, k, now)
}

// Forget is part of frontier.Gate.
func (g *gate) Forget(host string, now time.Time) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Forget(host, now)
}

// takeWoken returns the hosts whose requests may be admitted now.
func (g *gate) takeWoken() []storage.HostID {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	return g.member.Woken()
}

// leave ends the part of an engine.
func (g *gate) leave(now time.Time) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Leave(now)
}

// Forget has the other engines of the process forget what this one, whose run has ended, has requested:
// its crawl is deleted, and its fetchers decide everything. Of any other crawl that still counts.
func (e *Engine) Forget() {
	if e.share.gate == nil || !e.o.IgnoreRobots {
		return
	}
	g := e.share.gate
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Delete(e.o.Now())
}

// LeasesOut returns how many leases fetchers had at the end of the run. It may be called when Run has
// returned.
func (e *Engine) LeasesOut() int { return e.share.out }

// mayBegin takes note of the requests that were refused and may be admitted now.
func (d *dispatcher) mayBegin() {
	if d.share.gate == nil {
		return
	}
	for _, host := range d.share.gate.takeWoken() {
		d.f.Admissible(host, d.o.Now())
	}
	d.collect()
}

// leaveGate ends the part of the engine. A fetcher may work on a lease until its deadline.
func (d *dispatcher) leaveGate() {
	d.share.out = len(d.remote.out)
	if d.share.gate == nil {
		return
	}
	for _, x := range d.remote.out {
		d.f.Abandon(x.frontierID, x.deadline)
	}
	d.share.gate.leave(d.o.Now())
}
