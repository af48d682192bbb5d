//go:build !core

// Package plan forecasts the recrawls of a crawl: amble plan, and the operation of the API behind it.
// docs/FRESHNESS.md describes it.
package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// RecrawlPlan is the recrawl plan of the fetched pages.
type RecrawlPlan struct {
	// Once says that no page is recrawled: crawl.exit_when_done is true, or recrawl.policy is never. Then only
	// requisites are counted.
	Once  bool `json:"once,omitempty"`
	Pages int  `json:"pages"` // pages in the plan
	// of these, the pages with the policies fixed, nutch and stormcrawler
	Plain int `json:"plain"`
	// Requisites are the fetched URLs that are no pages, but what pages are made of. Each is a request of its own:
	// those of one host take at most so long, at the delay in force.
	Requisites     int     `json:"requisites,omitempty"`
	RequisitesTake float64 `json:"requisites_take_seconds,omitempty"`
	// RequisitesWaiting are those that wait to be fetched.
	RequisitesWaiting int     `json:"requisites_waiting,omitempty"`
	RequisitesFinish  float64 `json:"requisites_finish_seconds,omitempty"`

	Hosts   int     `json:"hosts"`          // hosts in the plan
	Overdue int     `json:"overdue_hosts"`  // hosts with an overdue recrawl
	Budget  float64 `json:"budget_per_day"` // of all shards of a cluster; 0: no limit
	Visits  float64 `json:"visits_per_day"` // recrawls a day
	// part of the time in which copies are up to date, by importance; of pages with the policy
	// harmonic
	Freshness *float64         `json:"freshness,omitempty"`
	Yield     recrawl.Yield    `json:"yield"`         // of the recrawls of all runs
	Budgets   []BudgetForecast `json:"budgets"`       // the effect of other budgets
	Largest   []HostRecrawls   `json:"largest_hosts"` // the hosts with the most pages
	Next      []Recrawl        `json:"next"`          // the next recrawls
	// hosts with fetched pages that are not in the plan; the crawl adds them when it runs
	Unplanned int `json:"unplanned"`
	Known     int `json:"known_hosts"`
	// if fewer than Known, the counts of hosts are estimates, and the lists are of the inspected
	// hosts
	Inspected int       `json:"hosts_looked_at"`
	At        time.Time `json:"at"`
}

// BudgetForecast is the effect of a budget.
type BudgetForecast struct {
	Factor    float64  `json:"factor"` // of the budget in force
	Budget    float64  `json:"budget_per_day"`
	Visits    float64  `json:"visits_per_day"`
	Freshness *float64 `json:"freshness,omitempty"`
}

// HostRecrawls are the recrawls of a host. Visits and freshness are extrapolated from a sample of
// its pages.
type HostRecrawls struct {
	Host      string    `json:"host"`
	Pages     int       `json:"pages"`
	Next      time.Time `json:"next"`
	Visits    float64   `json:"visits_per_day"`
	Freshness *float64  `json:"freshness,omitempty"`
	Sample    int       `json:"sample"`

	Yield recrawl.Yield `json:"yield"` // of the recrawls of all runs
}

// Recrawl is one recrawl to come.
type Recrawl struct {
	URL     string    `json:"url"`
	Due     time.Time `json:"due"`
	Fetched time.Time `json:"fetched"`
	Changes *float64  `json:"changes_per_day,omitempty"` // estimated changes of the page
}

// Bounds of a RecrawlPlan.
const (
	MaxHosts     = 1000 // largest hosts
	sampleSize   = 64   // pages of a host that are inspected
	nextRecrawls = 20
	maxInspected = 1 << 16 // hosts; of more hosts an even sample is inspected
	stretch      = 256     // hosts that are read together; maxInspected is a multiple of it
)

// factors are the budgets that are compared with the one in force.
var factors = [...]float64{0.25, 0.5, 1, 2, 4, 8}

// View is the part of an [inspect.View] that is read.
type View interface {
	Records() (inspect.Store, *seeds.Set)
	Options() inspect.Options
}

// forecaster makes a RecrawlPlan.
type forecaster struct {
	store    inspect.Store
	o        inspect.Options
	maxHosts int // hosts that are inspected
}

// Of forecasts the recrawls of a crawl, with at most so many of its largest hosts. It inspects at most 65,536 hosts,
// evenly spread over all, and a sample of the pages of those it lists; the rest comes from sums that the crawl keeps.
// So its time and memory are bounded for any number of hosts and pages.
func Of(ctx context.Context, v View, hosts int) (RecrawlPlan, error) {
	store, _ := v.Records()
	return (&forecaster{store, v.Options(), maxInspected}).recrawlPlan(ctx, hosts)
}

func (fc *forecaster) recrawlPlan(ctx context.Context, hosts int) (RecrawlPlan, error) {
	r := RecrawlPlan{Once: fc.o.Recrawl == nil, At: fc.o.Now(),
		Budgets: []BudgetForecast{}, Largest: []HostRecrawls{}, Next: []Recrawl{}}
	if r.Once {
		return r, fc.someHosts(ctx, &r, func(h *storage.Host) error { return fc.addRequisites(&r, h) })
	}
	plan, err := fc.plan()
	if err != nil {
		return RecrawlPlan{}, err
	}
	indexed, plain := plan.Planned()
	r.Pages, r.Plain, r.Budget, r.Yield = indexed+plain, plain, fc.o.Recrawl.Budget, plan.Yield()
	now := plan.Forecast(plan.Budget())
	r.Visits, r.Freshness = now.Visits, known(now.Freshness)
	if r.Budget > 0 {
		for _, factor := range factors {
			f := plan.Forecast(plan.Budget() * factor)
			r.Budgets = append(r.Budgets, BudgetForecast{Factor: factor, Budget: r.Budget * factor, Visits: f.Visits,
				Freshness: known(f.Freshness)})
		}
	}
	largest, soonest, err := fc.recrawlHosts(ctx, &r, min(hosts, MaxHosts))
	if err != nil {
		return r, err
	}
	for i := range largest {
		h, err := fc.sample(&largest[i])
		if err != nil {
			return r, err
		}
		r.Largest = append(r.Largest, h)
	}
	return r, fc.nextOf(&r, soonest)
}

// plan returns the crawl's plan as last committed.
func (fc *forecaster) plan() (*recrawl.Plan, error) {
	plan, err := recrawl.New(*fc.o.Recrawl)
	if err != nil {
		return nil, err
	}
	if fc.o.RecrawlPart != nil {
		plan.SetBudget(fc.o.RecrawlPart())
	}
	encoded, err := fc.store.Mark(marks.Plan)
	if err != nil {
		return nil, err
	}
	return plan, plan.Restore(encoded)
}

// known returns the address of a number, or nil if it is not a number.
func known(n float64) *float64 {
	if math.IsNaN(n) {
		return nil
	}
	return &n
}

// recrawlHosts finds the hosts with the most recrawls and those with the next ones.
func (fc *forecaster) recrawlHosts(ctx context.Context, r *RecrawlPlan, most int) (largest, soonest []storage.Host,
	err error) {
	byPages := func(a, b storage.Host) int {
		return cmp.Or(cmp.Compare(b.Backlog().Recrawls, a.Backlog().Recrawls), cmp.Compare(a.ID, b.ID))
	}
	byTime := func(a, b storage.Host) int {
		return cmp.Or(cmp.Compare(a.Backlog().NextRecrawl, b.Backlog().NextRecrawl), cmp.Compare(a.ID, b.ID))
	}
	err = fc.someHosts(ctx, r, func(h *storage.Host) error {
		b := h.Backlog()
		if err := fc.addRequisites(r, h); err != nil {
			return err
		}
		if h.Of(storage.Fetched) > b.Recrawls {
			r.Unplanned++
		}
		if b.Recrawls == 0 {
			return nil
		}
		r.Hosts++
		if int64(b.NextRecrawl) < r.At.Unix() {
			r.Overdue++
		}
		largest, soonest = keepFirst(largest, *h, most, byPages), keepFirst(soonest, *h, nextRecrawls, byTime)
		return nil
	})
	return largest, soonest, err
}

// addRequisites counts the requisites of a host.
func (fc *forecaster) addRequisites(r *RecrawlPlan, h *storage.Host) error {
	fetched, waiting := int(h.Requisites[storage.Fetched]), int(h.Waiting())
	if fetched+waiting == 0 {
		return nil
	}
	state, err := politeness.DecodeState(h.Politeness)
	if err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	delay := politeness.NewHost(fc.o.Politeness(h.Name), state, r.At).Delay(r.At).Seconds()
	r.Requisites, r.RequisitesTake = r.Requisites+fetched, max(r.RequisitesTake, float64(fetched)*delay)
	r.RequisitesWaiting += waiting
	r.RequisitesFinish = max(r.RequisitesFinish, float64(waiting)*delay)
	return nil
}

// someHosts calls f for all hosts, or for evenly spread stretches of them; it extrapolates their counts.
func (fc *forecaster) someHosts(ctx context.Context, r *RecrawlPlan, f func(*storage.Host) error) error {
	inspect := func(h *storage.Host) error {
		r.Inspected++
		return f(h)
	}
	r.Known = int(fc.store.Counters().Hosts)
	sampled := r.Known > fc.maxHosts
	for n, next := 1, storage.HostID(1); next != storage.NoHost && (!sampled || n <= fc.maxHosts/stretch); n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if next, err = fc.store.HostsFrom(next, stretch, inspect); err != nil {
			return err
		}
		if sampled { // ids are consecutive
			next = storage.HostID(1 + uint64(r.Known-stretch)*uint64(n)/uint64(fc.maxHosts/stretch-1))
		}
	}
	r.Known = max(r.Known, r.Inspected) // the crawl goes on
	for _, count := range []*int{&r.Unplanned, &r.Hosts, &r.Overdue, &r.Requisites, &r.RequisitesWaiting} {
		if r.Inspected < r.Known {
			*count = int(math.Round(float64(*count) * float64(r.Known) / float64(r.Inspected)))
		}
	}
	return nil
}

// keepFirst inserts a host into the first hosts of an order.
func keepFirst(first []storage.Host, h storage.Host, most int, compare func(a, b storage.Host) int) []storage.Host {
	i, _ := slices.BinarySearchFunc(first, h, compare)
	if i == most {
		return first
	}
	first = slices.Insert(first, i, h)
	return first[:min(len(first), most)]
}

// sample inspects some pages of a host, evenly spread.
func (fc *forecaster) sample(h *storage.Host) (HostRecrawls, error) {
	b := h.Backlog()
	r := HostRecrawls{Host: h.Name, Pages: int(b.Recrawls), Next: time.Unix(int64(b.NextRecrawl), 0).UTC()}
	whole, err := fc.store.HostByID(h.ID)
	if err != nil {
		return r, err
	}
	site, err := recrawl.DecodeSite(whole.Site)
	if err != nil {
		return r, err
	}
	r.Yield = site.Yield()
	fresh, weights, visits := 0.0, 0.0, 0.0
	urls := h.Tail - h.First
	parts := min(urls, sampleSize)
	for n := range parts {
		from := h.First + uint32(uint64(urls)*uint64(n)/uint64(parts))
		_, err := fc.store.URLs(h.ID, from, 1, func(head storage.Head) {
			every := head.Last.Due.Sub(head.Last.At).Seconds()
			if head.Last.Due.IsZero() || head.Last.State == storage.Retrying || every <= 0 {
				return
			}
			r.Sample++
			visits += 24 * 60 * 60 / every
			if rate, ok := recrawl.History(head.Last.History).Rate(); ok {
				w := recrawl.ImportanceOf(head.Priority, head.Depth).Weight()
				fresh += w * recrawl.Freshness(rate, every)
				weights += w
			}
		})
		if err != nil {
			return r, err
		}
	}
	if r.Sample > 0 {
		r.Visits = visits / float64(r.Sample) * float64(b.Recrawls)
	}
	if weights > 0 {
		r.Freshness = known(fresh / weights)
	}
	return r, nil
}

// nextOf finds the next recrawls of some hosts.
func (fc *forecaster) nextOf(r *RecrawlPlan, hosts []storage.Host) error {
	for i := range hosts {
		h := &hosts[i]
		for origin := range h.Queues {
			err := fc.store.Recrawls(h.ID, uint8(origin), nextRecrawls, func(head storage.Head) {
				next := Recrawl{URL: h.Queues[origin].Origin.URL(head.RequestURI).String(), Due: head.Last.Due.UTC(),
					Fetched: head.Last.At.UTC()}
				if rate, ok := recrawl.History(head.Last.History).Rate(); ok {
					next.Changes = known(rate.PerDay())
				}
				r.Next = append(r.Next, next)
			})
			if err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(r.Next, func(a, b Recrawl) int { return a.Due.Compare(b.Due) })
	r.Next = r.Next[:min(len(r.Next), nextRecrawls)]
	return nil
}
