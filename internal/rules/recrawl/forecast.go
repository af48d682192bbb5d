//go:build !core

package recrawl

import "math"

// Forecast is the effect of a budget on the pages that are on the plan now, if they change at their
// estimated rates and every recrawl is made when it is due.
type Forecast struct {
	Budget    float64 // recrawls a day; 0: no limit
	Visits    float64 // recrawls a day; less than the budget if more would gain nothing
	Freshness float64 // part of the time in which copies equal their pages, by importance; index only
}

// Forecast returns the effect of a budget. It reads only the census, so its time does not depend on
// the number of pages.
func (p *Plan) Forecast(budget float64) Forecast {
	f := Forecast{Budget: budget, Visits: float64(p.census.fixed) / fixedUnit * perDay}
	price, b := p.priceAt(budget), p.o.bounds()
	weights := 0.0
	p.census.each(func(rate Rate, i Importance, pages float64) {
		every := b.clamp(indexWait(rate, i.Weight(), price))
		f.Visits += pages / every * perDay
		f.Freshness += pages * i.Weight() * Freshness(rate, every)
		weights += pages * i.Weight()
	})
	if weights > 0 {
		f.Freshness /= weights
	} else {
		f.Freshness = math.NaN()
	}
	return f
}

// Planned returns the number of pages that the index plans, and of those of plain policies.
func (p *Plan) Planned() (indexed, plain int) { return int(p.census.pages), int(p.census.plain) }

// Yield returns what the recrawls of the plan have brought.
func (p *Plan) Yield() Yield { return p.yield }
