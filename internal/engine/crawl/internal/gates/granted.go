//go:build !core

package gates

import "github.com/amble-crawler/amble/frontier"

// Granted says that what this process has of a limit that others share may have changed.
func (g *Gates) Granted(k frontier.LimitKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keeper.Granted(k, g.now())
}
