//go:build core

package crawl

import "github.com/amble-crawler/amble/internal/engine/crawl/internal/gates"

// This program has one engine in a process, and no gate.

func (o *Options) ownGates() gates.Gates { return nil }

// Forget does nothing.
func (e *Engine) Forget() {}

// MustReopen returns false.
func (e *Engine) MustReopen() bool { return false }

func (g *gathering) mayBegin() {}

func (pm *permits) leaveGate() {}
