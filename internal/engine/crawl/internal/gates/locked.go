//go:build !core

package gates

import (
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// locked are the gates in front of a shared gate.
type locked struct {
	mu         sync.Mutex // of the shared gate and its members; nothing blocks under it
	sharedGate *frontier.SharedGate
	now        func() time.Time
}

// New returns the gates in front of a shared gate, which nobody else uses from then on.
func New(sharedGate *frontier.SharedGate, now func() time.Time) Gates {
	return &locked{sharedGate: sharedGate, now: now}
}

// lockedGate is the Gate of one member.
type lockedGate struct {
	of     *locked
	member *frontier.Member
	reopen bool // only the engine's goroutine has it
}

// Add is part of Gates.
func (g *locked) Add(wake func()) Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	return &lockedGate{of: g, member: g.sharedGate.Join(wake)}
}

// Granted is part of Gates.
func (g *locked) Granted(k frontier.LimitKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sharedGate.Granted(k, g.now())
}

// Begin is part of frontier.Gate.
func (g *lockedGate) Begin(r *frontier.GateRequest) frontier.Admission {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	return g.member.Begin(r)
}

// Adopt is part of frontier.Gate.
func (g *lockedGate) Adopt(r *frontier.GateRequest) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Adopt(r)
}

// End is part of frontier.Gate.
func (g *lockedGate) End(r *frontier.GateRequest, end frontier.GateEnd) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.End(r, end)
}

// Tell is part of frontier.Gate.
func (g *lockedGate) Tell(host string, k frontier.HostTerms, now time.Time) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Tell(host, k, now)
}

// Forget is part of frontier.Gate.
func (g *lockedGate) Forget(host string, now time.Time) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Forget(host, now)
}

// TakeWoken is part of Gate.
func (g *lockedGate) TakeWoken() []storage.HostID {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	return g.member.Woken()
}

// Leave is part of Gate.
func (g *lockedGate) Leave(reopen bool, now time.Time) {
	g.reopen = g.reopen || reopen
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Leave(now)
}

// MustReopen is part of Gate.
func (g *lockedGate) MustReopen() bool { return g.reopen }

// Delete is part of Gate.
func (g *lockedGate) Delete(now time.Time) {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.member.Delete(now)
}
