// Package gates keeps the limits of hosts over all engines of a process.
package gates

import (
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// Gates are those of all engines of a process. They are safe for concurrent use.
type Gates struct {
	mu     sync.Mutex // of the keeper and its members; nothing blocks under it
	keeper *frontier.Keeper
	now    func() time.Time
}

// New returns the gates in front of a keeper, which nobody else uses from then on.
func New(keeper *frontier.Keeper, now func() time.Time) *Gates {
	return &Gates{keeper: keeper, now: now}
}

// Gate is that of one engine's frontier.
type Gate struct {
	of     *Gates
	member *frontier.Member
	reopen bool // only the engine's goroutine has it
}

// Add returns the gate of one more engine. wake is called when something is woken.
func (g *Gates) Add(wake func()) *Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	return &Gate{of: g, member: g.keeper.Join(wake)}
}

// Begin is part of frontier.Gate.
func (g *Gate) Begin(r *frontier.GateRequest) frontier.Admission {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	return g.member.Begin(r)
}

// Adopt is part of frontier.Gate.
func (g *Gate) Adopt(r *frontier.GateRequest) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Adopt(r)
}

// End is part of frontier.Gate.
func (g *Gate) End(r *frontier.GateRequest, end frontier.GateEnd) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.End(r, end)
}

// Know is part of frontier.Gate.
func (g *Gate) Know(host string, k frontier.Knowledge, now time.Time) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Know(host, k, now)
}

// Forget is part of frontier.Gate.
func (g *Gate) Forget(host string, now time.Time) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Forget(host, now)
}

// TakeWoken returns the hosts whose requests may be admitted now.
func (g *Gate) TakeWoken() []storage.HostID {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	return g.member.Woken()
}

// Leave ends the part of an engine. With reopen the next process has to open its crawl.
func (g *Gate) Leave(reopen bool, now time.Time) {
	g.reopen = g.reopen || reopen
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Leave(now)
}

// MustReopen reports whether a call of Leave has said that the next process has to open the crawl.
func (g *Gate) MustReopen() bool { return g.reopen }

// Delete has the engine, whose part has ended, count as if it had never been there.
func (g *Gate) Delete(now time.Time) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Delete(now)
}
