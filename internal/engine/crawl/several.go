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
	sharedGate := frontier.NewSharedGate(usual, before)
	if grants != nil {
		sharedGate.Share(grants)
	}
	return gates.New(sharedGate, o.Now)
}
