//go:build !core

package plan

import (
	"cmp"
	"slices"

	"github.com/amble-crawler/amble/internal/service/server"
)

// planOfAll is the recrawl plan of a crawl, or of all shards.
type planOfAll struct {
	RecrawlPlan
	Incomplete *server.Incomplete `json:"incomplete,omitempty"`
}

// Begin implements server.Merged.
func (p *planOfAll) Begin() {
	p.Budgets, p.Largest, p.Next = []BudgetForecast{}, []HostRecrawls{}, []Recrawl{}
}

// Add implements server.Merged.
func (p *planOfAll) Add(more *planOfAll) { addPlan(&p.RecrawlPlan, &more.RecrawlPlan) }

// Lacks implements server.Merged.
func (p *planOfAll) Lacks(m *server.Incomplete) { p.Incomplete = m }

// addPlan adds the plan of another shard.
func addPlan(to, more *RecrawlPlan) {
	to.Freshness = meanFreshness(to.Freshness, to.Pages-to.Plain, more.Freshness, more.Pages-more.Plain)
	for i := range more.Budgets {
		if i == len(to.Budgets) {
			to.Budgets = append(to.Budgets, BudgetForecast{Factor: more.Budgets[i].Factor})
		}
		b, m := &to.Budgets[i], &more.Budgets[i]
		b.Freshness = meanFreshness(b.Freshness, to.Pages-to.Plain, m.Freshness, more.Pages-more.Plain)
		b.Budget, b.Visits = m.Budget, b.Visits+m.Visits
	}
	to.Yield.Add(&more.Yield)
	to.Pages, to.Plain, to.Hosts, to.Overdue = to.Pages+more.Pages, to.Plain+more.Plain, to.Hosts+more.Hosts,
		to.Overdue+more.Overdue
	to.Budget, to.Visits = more.Budget, to.Visits+more.Visits
	to.Once = to.Once || more.Once
	to.RequisitesWaiting += more.RequisitesWaiting
	to.RequisitesFinish = max(to.RequisitesFinish, more.RequisitesFinish)
	to.Requisites, to.RequisitesTake = to.Requisites+more.Requisites, max(to.RequisitesTake, more.RequisitesTake)
	to.Unplanned, to.Known, to.Inspected = to.Unplanned+more.Unplanned, to.Known+more.Known, to.Inspected+more.Inspected
	to.Largest = append(to.Largest, more.Largest...)
	slices.SortStableFunc(to.Largest, func(a, b HostRecrawls) int { return cmp.Compare(b.Pages, a.Pages) })
	most := max(len(more.Next), nextRecrawls)
	to.Next = append(to.Next, more.Next...)
	slices.SortStableFunc(to.Next, func(a, b Recrawl) int { return a.Due.Compare(b.Due) })
	to.Next = to.Next[:min(len(to.Next), most)]
	if to.At.IsZero() || more.At.Before(to.At) {
		to.At = more.At
	}
}

// meanFreshness is the mean of two, by their numbers of pages.
func meanFreshness(a *float64, pagesA int, b *float64, pagesB int) *float64 {
	switch {
	case a == nil || pagesA <= 0:
		return b
	case b == nil || pagesB <= 0:
		return a
	}
	mean := (*a*float64(pagesA) + *b*float64(pagesB)) / float64(pagesA+pagesB)
	return &mean
}
