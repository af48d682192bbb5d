package revisit

import "math"

// Forecast is what a budget comes to for the pages that are on the plan now, if they go on changing as they are
// believed to, and every renewal is made when it is due.
type Forecast struct {
	Budget    float64 // renewals a day; 0: no limit
	Visits    float64 // renewals a day that are made: less than the budget where there is nothing more to gain
	Freshness float64 // part of the time in which copies are the same as their pages, by importance; of pages planned by the index
}

// Forecast foretells what a budget would come to. It looks at the census only, so that it takes no longer for many pages
// than for few.
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

// Planned counts the pages that the index plans, and those of plain policies.
func (p *Plan) Planned() (indexed, plain int) { return int(p.census.pages), int(p.census.plain) }
