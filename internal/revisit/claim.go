package revisit

import (
	"math"
	"time"
)

// mostClaimed is the factor by which a claim makes a rate higher or lower at most.
const mostClaimed = 4

// claimed moves the rate that is expected of a page towards what its site claims of it: half of the way on the scale of logarithms, and
// not far. It is for the wait after the first visit of a page, of which nothing else is known. No claim enters what is
// believed of the page, of its host or of all pages: it would count for pages that nobody has seen change.
func (r Rate) claimed(every time.Duration) Rate {
	if every <= 0 {
		return r
	}
	move := math.Sqrt(float64(RateOf(every) / r))
	return r * Rate(min(max(move, 1.0/mostClaimed), mostClaimed))
}
