package crawl

import (
	"context"
	"fmt"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
)

// lookup is the lease for a name on its way through a goroutine of its own, with what comes of it.
type lookup struct {
	ctx    context.Context
	lease  uint64
	host   string
	every  bool // the addresses of both families are wanted
	report frontier.ResolveReport
}

// apply ends the lease.
func (l *lookup) apply(d *dispatcher) {
	d.flights.lookups--
	d.quota.EndLookup()
	if err := d.f.CompleteResolve(l.lease, l.report); err != nil {
		d.fail(fmt.Errorf("complete the lookup of %s: %w", l.host, err))
	}
}

// lookUpNames begins the lookups that are due, each in a goroutine of its own: name servers take
// longest to say that there is no such name, and no worker waits for that.
func (pm *permits) lookUpNames() {
	for pm.f.WantsNames() && !pm.isPaused() && pm.quota.BeginLookup() {
		l, ok := pm.f.NextName(pm.o.Now())
		if !ok {
			pm.quota.EndLookup()
			return
		}
		pm.flights.lookups++
		pm.flights.startLookup(&lookup{ctx: pm.flights.naming, lease: l.ID, host: l.HostName, every: l.Every})
	}
}

// knownName is frontier.Options.Known.
func (e *Engine) knownName(name string, every bool) (frontier.ResolveReport, bool) {
	answer, err, known := e.shared.client.Known(name, every)
	return work.ResolveReport(answer, err), known
}
