//go:build !core

package recrawl

import (
	"math"
	"time"
)

// Of returns the encoded state of a plan with other pages, whose recrawls have brought nothing yet. each calls add with
// the history of each of them.
func Of(encoded []byte, each func(add func(History, Importance)) error) ([]byte, error) {
	var p Plan
	if err := p.Restore(encoded); err != nil {
		return nil, err
	}
	p.census, p.yield = census{}, Yield{}
	if err := each(p.census.add); err != nil {
		return nil, err
	}
	return p.AppendBinary(nil)
}

// Without returns the encoded state of a plan without pages that are no longer known. each calls
// remove with the history of each of them.
func Without(encoded []byte, each func(remove func(History, Importance)) error) ([]byte, error) {
	var p Plan
	if err := p.Restore(encoded); err != nil {
		return nil, err
	}
	if err := each(p.census.remove); err != nil {
		return nil, err
	}
	return p.AppendBinary(nil)
}

// Observation is what one visit, or several without a change, showed about a page.
type Observation struct {
	Change Change        // Same or Changed
	Span   time.Duration // the approximate time that it is about
	Dated  bool          // Span is the age of the change at the visit, by Last-Modified
}

// Observations returns the observations of a page, the newest first.
func (h History) Observations() (all []Observation) {
	if h.isPlain() {
		return nil
	}
	for _, b := range h[1:] {
		span := func(from byte) time.Duration { return time.Duration(levelSeconds(b-from) * float64(time.Second)) }
		switch {
		case b == 0:
		case b >= exact:
			all = append(all, Observation{Change: Changed, Span: span(exact), Dated: true})
		case b >= changed:
			all = append(all, Observation{Change: Changed, Span: span(changed)})
		default:
			all = append(all, Observation{Change: Same, Span: span(unchanged)})
		}
	}
	return all
}

// Demand returns the price, and the visits a day that the pages would need at another price, in seconds. So
// many pages were fetched in all. Those that are not on the plan count as rarely visited: they may get on it.
func (p *Plan) Demand(at float64, fetched uint64) (price, perDayVisits float64) {
	price, b := p.currentPrice(), p.o.bounds()
	visits := p.census.demand(at, b) + float64(p.census.fixed)/fixedUnit
	if planned := p.census.pages + p.census.plain; fetched > planned {
		visits += float64(fetched-planned) / b.most
	}
	return price, visits * perDay * math.Exp(-p.trim)
}

// Pages returns the number of pages with a planned visit.
func (p *Plan) Pages() int { return int(p.census.pages + p.census.plain) }
