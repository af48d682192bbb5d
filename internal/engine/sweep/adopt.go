package sweep

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/storage"
)

// IsUnplanned reports whether a host has pages that were fetched by a run without a recrawl plan.
func IsUnplanned(h *storage.Host) bool {
	return h.Of(storage.Fetched) > h.Backlog().Recrawls
}

// Adopter makes the sweeps that plan the recrawls of pages that have none planned, host by host.
type Adopter struct {
	Store interface {
		Counters() storage.Counters
		HostByID(storage.HostID) (storage.Host, error)
	}
	Plan  *recrawl.Plan
	Rule  *recrawl.Rule
	Hosts []storage.HostID // left to do
}

// Next returns the sweep of the next host, and nil when there are no more. The first recrawls of
// its pages are spread over the time that one recrawl of each page of the crawl takes.
func (a *Adopter) Next() *Sweep {
	if len(a.Hosts) == 0 {
		return nil
	}
	id, fetched := a.Hosts[0], storage.In(storage.Fetched)
	a.Hosts = a.Hosts[1:]
	s := newHostSweep(fmt.Sprintf("%s%d", MarkAdopt, id), id, fetched, unbounded)
	s.ready = func() (decision, error) {
		host, err := a.Store.HostByID(id)
		spread := adoptionTime(a.Plan, a.Rule, a.Store.Counters().Of(storage.Fetched))
		return func(l *storage.Located, now time.Time) (storage.Done, bool) {
			page := recrawl.Page{Host: host.Name, RequestURI: l.RequestURI}
			if !l.Last.Due.IsZero() || l.Last.History != (recrawl.History{}) || !a.Plan.Plans(&page) {
				return storage.Done{}, false
			}
			const parts = 1009 // a prime, so that neighbours come far apart
			o := l.Last
			o.Due = now.Add(spread * time.Duration((int(id)*31+int(l.Ordinal)*397)%parts) / parts)
			return changeTo(l, fetched, o), true
		}, err
	}
	return s
}

// adoptionTime returns how long one recrawl of each page takes.
func adoptionTime(plan *recrawl.Plan, rule *recrawl.Rule, pages uint64) time.Duration {
	spread := rule.Interval
	if budget := plan.Budget(); budget > 0 {
		days := float64(pages) / budget
		spread = max(spread, time.Duration(days*float64(24*time.Hour)))
	}
	return min(max(spread, rule.Min), rule.Max)
}
