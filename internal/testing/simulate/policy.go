package main

import (
	"math"
	"sort"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
)

// policy is one of the compared policies.
type policy struct {
	Name   string
	Oracle bool // the policy knows the rates of the pages
	Dates  bool // pages say when they changed last
	make   func(all []*page, budget float64) (frontier.Recrawler, error)
}

// policies returns the compared policies, in the order of the tables.
func policies() []policy {
	plain := func(p recrawl.Policy, interval, least, most time.Duration) func([]*page, float64) (frontier.Recrawler,
		error) {
		return func(_ []*page, budget float64) (frontier.Recrawler, error) {
			o := recrawl.DefaultOptions()
			o.Policy, o.Interval, o.Min, o.Max, o.Budget = p, interval, least, most, budget
			if interval == 0 {
				o.Interval = time.Duration(pages / budget * float64(day))
			}
			return recrawl.New(o)
		}
	}
	learned := plain(recrawl.Harmonic, 7*day, time.Hour, 5*365*day)
	return []policy{
		{"uniform", false, false, plain(recrawl.Fixed, 0, time.Hour, 365*day)},
		{"Nutch", false, false, plain(recrawl.Nutch, 30*day, time.Minute, 365*day)},
		{"StormCrawler", false, false, plain(recrawl.StormCrawler, day, time.Hour, 14*day)},
		{"harmonic", false, false, learned},
		{"harmonic, dates given", false, true, learned},
		{"harmonic, rates known", true, false, oracle(indexInterval)},
		{"freshness optimum, rates known", true, false, oracle(freshInterval)},
	}
}

// known is a policy with a fixed interval for each page, computed from rates that no crawler can
// know.
type known struct {
	budget    float64
	intervals map[string]time.Duration // by host and path
}

func (k *known) Answered(v *recrawl.Visit, _ *recrawl.Site) recrawl.Memory {
	m := recrawl.Memory{At: v.At, History: recrawl.History{1}}
	if every := k.intervals[v.Host+v.RequestURI]; every > 0 {
		m.Due = v.At.Add(every)
	}
	return m
}

func (k *known) Gone(v *recrawl.Visit, s *recrawl.Site) recrawl.Memory { return k.Answered(v, s) }

func (k *known) Unanswered(v *recrawl.Visit, _ *recrawl.Site) recrawl.History {
	return v.Memory.History
}

func (k *known) Adjust(_, _ float64) {}

func (k *known) Budget() float64 { return k.budget }

// oracle makes a policy of a rule for the wait in days for a page at a price. At the policy's
// price, all pages together use the budget.
func oracle(interval func(rate, weight, price float64) float64) func([]*page, float64) (frontier.Recrawler, error) {
	return func(all []*page, budget float64) (frontier.Recrawler, error) {
		visits := func(logPrice float64) (sum float64) {
			for _, p := range all {
				if p.rate > 0 {
					sum += 1 / interval(p.rate, p.weight, math.Exp(logPrice))
				}
			}
			return sum
		}
		price := math.Exp(-60 + float64(sort.Search(100_000,
			func(i int) bool { return visits(-60+float64(i)/1000) <= budget }))/1000)
		k := &known{budget: budget, intervals: make(map[string]time.Duration, len(all))}
		for _, p := range all {
			if p.rate > 0 {
				if days := interval(p.rate, p.weight, price); days < 100*365 {
					k.intervals[p.url.Host()+p.url.RequestURI()] = time.Duration(days * float64(day))
				}
			}
		}
		return k, nil
	}
}

// indexInterval returns the wait of the harmonic index.
func indexInterval(rate, weight, price float64) float64 {
	c := price * rate / weight
	return solve(func(x float64) float64 { return x + math.Expm1(-x) }, c) / rate
}

// freshInterval returns the fixed interval with the greatest freshness (Cho and Garcia-Molina,
// Effective page refresh policies, TODS 2003). Pages that change too fast for their importance are
// not visited.
func freshInterval(rate, weight, price float64) float64 {
	c := price * rate / weight
	if c >= 1 {
		return math.Inf(1)
	}
	return solve(func(x float64) float64 { return 1 - (1+x)*math.Exp(-x) }, c) / rate
}

// solve returns the x at which a rising function reaches a value.
func solve(f func(float64) float64, value float64) float64 {
	low, high := 0.0, 1.0
	for f(high) < value && high < 1e15 {
		high *= 2
	}
	for range 50 {
		if middle := (low + high) / 2; f(middle) < value {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}
