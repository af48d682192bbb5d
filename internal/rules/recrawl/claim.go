package recrawl

import (
	"math"
	"time"
)

// mostClaimed is the largest factor by which a claim raises or lowers a rate.
const mostClaimed = 4

// claimed moves the expected rate of a page towards the rate that its site claims: half of the way
// on the scale of logarithms, within mostClaimed. It applies to the wait after the first visit of a
// page, when nothing else is known. No claim changes the estimate for the page, its host or all
// pages: it would count for pages that nobody has seen change.
func (r Rate) claimed(every time.Duration) Rate {
	if every <= 0 {
		return r
	}
	move := math.Sqrt(float64(RateOf(every) / r))
	return r * Rate(min(max(move, 1.0/mostClaimed), mostClaimed))
}
