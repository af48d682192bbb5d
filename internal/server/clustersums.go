package server

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/internal/inspect"
)

// planOfAll is the recrawl plan of all shards.
type planOfAll struct {
	inspect.RecrawlPlan
	Incomplete *Incomplete `json:"incomplete,omitempty"`
}

// planAll sums up the plans of all shards.
func (s *Server) planAll(w http.ResponseWriter, r *http.Request) {
	parts, lacking, err := fromShards[inspect.RecrawlPlan](r.Context(), s, 2*answerTimeout, partOf(r, nil))
	all := planOfAll{Incomplete: lacking, RecrawlPlan: inspect.RecrawlPlan{
		Budgets: []inspect.BudgetForecast{}, Largest: []inspect.HostRecrawls{}, Next: []inspect.Recrawl{},
	}}
	for _, shard := range s.allShards() {
		if one, ok := parts[shard]; ok {
			addPlan(&all.RecrawlPlan, &one)
		}
	}
	most := 20
	if text := r.URL.Query().Get("hosts"); text != "" {
		most, _ = strconv.Atoi(text) // the shards have read it too
	}
	all.Largest = all.Largest[:min(len(all.Largest), most)]
	writeObject(w, all, err)
}

// addPlan adds the plan of another shard.
func addPlan(to, more *inspect.RecrawlPlan) {
	to.Freshness = meanFreshness(to.Freshness, to.Pages-to.Plain, more.Freshness, more.Pages-more.Plain)
	for i := range more.Budgets {
		if i == len(to.Budgets) {
			to.Budgets = append(to.Budgets, inspect.BudgetForecast{Factor: more.Budgets[i].Factor})
		}
		b, m := &to.Budgets[i], &more.Budgets[i]
		b.Freshness = meanFreshness(b.Freshness, to.Pages-to.Plain, m.Freshness, more.Pages-more.Plain)
		b.Budget, b.Visits = m.Budget, b.Visits+m.Visits
	}
	to.Pages, to.Plain, to.Hosts, to.Overdue = to.Pages+more.Pages, to.Plain+more.Plain, to.Hosts+more.Hosts,
		to.Overdue+more.Overdue
	to.Budget, to.Visits = more.Budget, to.Visits+more.Visits
	to.Unplanned, to.Known, to.Inspected = to.Unplanned+more.Unplanned, to.Known+more.Known, to.Inspected+more.Inspected
	to.Largest = append(to.Largest, more.Largest...)
	slices.SortStableFunc(to.Largest, func(a, b inspect.HostRecrawls) int { return cmp.Compare(b.Pages, a.Pages) })
	most := max(len(more.Next), 20)
	to.Next = append(to.Next, more.Next...)
	slices.SortStableFunc(to.Next, func(a, b inspect.Recrawl) int { return a.Due.Compare(b.Due) })
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

// historyOfAll sums up the pasts of all nodes.
func (s *Server) historyOfAll(w http.ResponseWriter, r *http.Request) {
	window := max(0, slices.Index(windows(), r.URL.Query().Get("window")))
	parts, failed, err := fromNodes[History](r.Context(), s, answerTimeout, partOf(r, nil))
	all := historySum{History: sumHistory(parts, int64(steps()[window]/time.Second))}
	if len(failed) > 0 {
		all.Incomplete = s.unknown(s.ownedBy(failed), failed)
	}
	writeObject(w, all, err)
}

// historySum is the past of all nodes.
type historySum struct {
	History
	Incomplete *Incomplete `json:"incomplete,omitempty"`
}

// sumHistory adds the pasts of nodes, by instants that are a step apart. It ends with the newest instant
// that all nodes know of.
func sumHistory(parts map[string]History, step int64) (sum History) {
	at := make(map[int64]*Point)
	end := int64(math.MaxInt64)
	for _, h := range parts {
		seen := make(map[int64]bool)
		for i, instant := range h.At {
			slot := instant / step * step
			if seen[slot] { // two samples of a node in one step
				continue
			}
			seen[slot] = true
			p := at[slot]
			if p == nil {
				p = &Point{At: slot}
				at[slot] = p
			}
			p.Pages, p.Bytes, p.Errors = p.Pages+h.Pages[i], p.Bytes+h.Bytes[i], p.Errors+h.Errors[i]
			p.Known, p.Waiting = p.Known+h.Known[i], p.Waiting+h.Waiting[i]
			p.Fetched, p.InFlight = p.Fetched+h.Fetched[i], p.InFlight+h.InFlight[i]
		}
		if n := len(h.At); n > 0 {
			end = min(end, h.At[n-1]/step*step)
		}
	}
	slots := keysOf(at)
	slices.Sort(slots)
	sum = newHistory()
	for _, slot := range slots {
		if slot <= end {
			sum.add(at[slot])
		}
	}
	return sum
}
