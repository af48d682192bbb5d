package inspect

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/storage"
)

// RenewalPlan is what is to come of the pages that were fetched.
type RenewalPlan struct {
	Pages     int              `json:"pages"`               // that are to be asked for again
	Plain     int              `json:"plain"`               // of these, those of plain policies: fixed, nutch, stormcrawler
	Hosts     int              `json:"hosts"`               // that they are on
	Overdue   int              `json:"overdue_hosts"`       // hosts with a renewal that is overdue
	Budget    float64          `json:"budget_per_day"`      // 0: no limit
	Visits    float64          `json:"visits_per_day"`      // that the plan asks for
	Freshness *float64         `json:"freshness,omitempty"` // part of the time in which copies are up to date, by importance; of pages that harmonic plans
	Budgets   []BudgetForecast `json:"budgets"`             // what other budgets would come to
	Largest   []HostRenewals   `json:"largest_hosts"`       // the hosts with the most pages
	Next      []Renewal        `json:"next"`                // the renewals that come first
	Unplanned int              `json:"unplanned"`           // hosts with pages that were fetched without a plan and are put on it when the crawl runs
	Known     int              `json:"known_hosts"`
	LookedAt  int              `json:"hosts_looked_at"` // where these are fewer, the counts of hosts are estimates, and the lists are of the hosts that were looked at
	At        time.Time        `json:"at"`
}

// BudgetForecast is what a budget would come to.
type BudgetForecast struct {
	Factor    float64  `json:"factor"` // of the budget in force
	Budget    float64  `json:"budget_per_day"`
	Visits    float64  `json:"visits_per_day"`
	Freshness *float64 `json:"freshness,omitempty"`
}

// HostRenewals are the renewals of a host. Visits and freshness are those of a sample of its pages, taken for all.
type HostRenewals struct {
	Host      string    `json:"host"`
	Pages     int       `json:"pages"`
	Next      time.Time `json:"next"`
	Visits    float64   `json:"visits_per_day"`
	Freshness *float64  `json:"freshness,omitempty"`
	Sample    int       `json:"sample"`
}

// Renewal is one visit to come.
type Renewal struct {
	URL     string    `json:"url"`
	Due     time.Time `json:"due"`
	Fetched time.Time `json:"fetched"`
	Changes *float64  `json:"changes_per_day,omitempty"` // as the page is believed to change
}

// Bounds of a RenewalPlan.
const (
	MaxPlanHosts = 1000 // largest hosts
	sampleSize   = 64   // pages of a host that are looked at
	nextRenewals = 20
	maxLookedAt  = 1 << 16 // hosts; of more of them an even sample is taken
	stretch      = 256     // hosts that are read together, of which maxLookedAt is a multiple
)

// markPlan is the name of the mark in which a crawl keeps its plan.
const markPlan = "plan"

// factors are the budgets that are compared with the one in force.
var factors = [...]float64{0.25, 0.5, 1, 2, 4, 8}

// RenewalPlan foretells the renewals of the crawl, with at most so many of its largest hosts. It looks at 65,536 hosts at most, evenly
// over all, and at a sample of the pages of those it lists; the rest is known from sums that the crawl keeps. So its time and memory
// are bounded however many hosts and pages there are. ErrQuery: no page is asked for again, by the settings.
func (v *View) RenewalPlan(ctx context.Context, hosts int) (RenewalPlan, error) {
	if v.o.Renew == nil {
		return RenewalPlan{}, fmt.Errorf("%w: no page is recrawled, because crawl.exit_when_done is true or recrawl.policy is never", ErrQuery)
	}
	plan, err := v.plan()
	if err != nil {
		return RenewalPlan{}, err
	}
	indexed, plain := plan.Planned()
	r := RenewalPlan{
		Pages: indexed + plain, Plain: plain, Budget: plan.Budget(), At: v.o.Now(),
		Budgets: []BudgetForecast{}, Largest: []HostRenewals{}, Next: []Renewal{},
	}
	now := plan.Forecast(r.Budget)
	r.Visits, r.Freshness = now.Visits, known(now.Freshness)
	if r.Budget > 0 {
		for _, factor := range factors {
			f := plan.Forecast(r.Budget * factor)
			r.Budgets = append(r.Budgets, BudgetForecast{Factor: factor, Budget: f.Budget, Visits: f.Visits, Freshness: known(f.Freshness)})
		}
	}
	largest, soonest, err := v.renewingHosts(ctx, &r, min(hosts, MaxPlanHosts))
	if err != nil {
		return r, err
	}
	for i := range largest {
		h, err := v.sample(&largest[i])
		if err != nil {
			return r, err
		}
		r.Largest = append(r.Largest, h)
	}
	return r, v.nextOf(&r, soonest)
}

// plan is the crawl's, as it was last committed.
func (v *View) plan() (*revisit.Plan, error) {
	plan, err := revisit.New(*v.o.Renew)
	if err != nil {
		return nil, err
	}
	encoded, err := v.store.Mark(markPlan)
	if err != nil {
		return nil, err
	}
	return plan, plan.Restore(encoded)
}

// known is a number that may be none.
func known(n float64) *float64 {
	if math.IsNaN(n) {
		return nil
	}
	return &n
}

// renewingHosts looks for the hosts with the most renewals and those with the next ones.
func (v *View) renewingHosts(ctx context.Context, r *RenewalPlan, most int) (largest, soonest []storage.Host, err error) {
	byPages := func(a, b storage.Host) int {
		n, _ := a.Renewing()
		m, _ := b.Renewing()
		return cmp.Or(cmp.Compare(m, n), cmp.Compare(a.ID, b.ID))
	}
	byTime := func(a, b storage.Host) int {
		_, n := a.Renewing()
		_, m := b.Renewing()
		return cmp.Or(cmp.Compare(n, m), cmp.Compare(a.ID, b.ID))
	}
	err = v.someHosts(ctx, r, func(h *storage.Host) error {
		n, next := h.Renewing()
		if h.Of(storage.Fetched) > n {
			r.Unplanned++
		}
		if n == 0 {
			return nil
		}
		r.Hosts++
		if int64(next) < r.At.Unix() {
			r.Overdue++
		}
		largest, soonest = keepFirst(largest, *h, most, byPages), keepFirst(soonest, *h, nextRenewals, byTime)
		return nil
	})
	if r.LookedAt < r.Known {
		for _, count := range []*int{&r.Unplanned, &r.Hosts, &r.Overdue} {
			*count = int(math.Round(float64(*count) * float64(r.Known) / float64(r.LookedAt)))
		}
	}
	return largest, soonest, err
}

// someHosts calls f for all hosts, or for stretches of them that lie evenly among all.
func (v *View) someHosts(ctx context.Context, r *RenewalPlan, f func(*storage.Host) error) error {
	look := func(h *storage.Host) error {
		r.LookedAt++
		return f(h)
	}
	r.Known = int(v.store.Counters().Hosts)
	sampled := r.Known > v.lookAt
	for n, next := 1, storage.HostID(1); next != storage.NoHost && (!sampled || n <= v.lookAt/stretch); n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if next, err = v.store.HostsFrom(next, stretch, look); err != nil {
			return err
		}
		if sampled { // ids are given out one after the other
			next = storage.HostID(1 + uint64(r.Known-stretch)*uint64(n)/uint64(v.lookAt/stretch-1))
		}
	}
	r.Known = max(r.Known, r.LookedAt) // the crawl goes on
	return nil
}

// keepFirst puts a host among the first of an order.
func keepFirst(first []storage.Host, h storage.Host, most int, order func(a, b storage.Host) int) []storage.Host {
	i, _ := slices.BinarySearchFunc(first, h, order)
	if i == most {
		return first
	}
	first = slices.Insert(first, i, h)
	return first[:min(len(first), most)]
}

// sample looks at some pages of a host, evenly over those it has.
func (v *View) sample(h *storage.Host) (HostRenewals, error) {
	pages, next := h.Renewing()
	r := HostRenewals{Host: h.Name, Pages: int(pages), Next: time.Unix(int64(next), 0).UTC()}
	fresh, weights, visits := 0.0, 0.0, 0.0
	parts := min(h.Tail, sampleSize)
	for n := range parts {
		from := uint32(uint64(h.Tail) * uint64(n) / uint64(parts))
		_, err := v.store.URLs(h.ID, from, 1, func(head storage.Head) {
			every := head.Last.Due.Sub(head.Last.At).Seconds()
			if head.Last.Due.IsZero() || head.Last.State == storage.Retrying || every <= 0 {
				return
			}
			r.Sample++
			visits += 24 * 60 * 60 / every
			if rate, ok := revisit.History(head.Last.History).Rate(); ok {
				w := revisit.ImportanceOf(head.Priority, head.Depth).Weight()
				fresh += w * revisit.Freshness(rate, every)
				weights += w
			}
		})
		if err != nil {
			return r, err
		}
	}
	if r.Sample > 0 {
		r.Visits = visits / float64(r.Sample) * float64(pages)
	}
	if weights > 0 {
		r.Freshness = known(fresh / weights)
	}
	return r, nil
}

// nextOf finds the renewals that come first, among those of the hosts that have the next ones.
func (v *View) nextOf(r *RenewalPlan, hosts []storage.Host) error {
	for i := range hosts {
		h := &hosts[i]
		for origin := range h.Queues {
			err := v.store.Renewals(h.ID, uint8(origin), nextRenewals, func(head storage.Head) {
				next := Renewal{URL: h.Queues[origin].Origin.URL(head.RequestURI).String(), Due: head.Last.Due.UTC(), Fetched: head.Last.At.UTC()}
				if rate, ok := revisit.History(head.Last.History).Rate(); ok {
					next.Changes = known(rate.PerDay())
				}
				r.Next = append(r.Next, next)
			})
			if err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(r.Next, func(a, b Renewal) int { return a.Due.Compare(b.Due) })
	r.Next = r.Next[:min(len(r.Next), nextRenewals)]
	return nil
}
