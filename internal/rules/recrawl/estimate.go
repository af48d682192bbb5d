package recrawl

import (
	"math"
	"time"
)

// Rate is how often a page changes, in changes a second on average.
type Rate float64

// perDay converts a rate to changes a day.
const perDay = 24 * 60 * 60

// PerDay returns the rate in changes a day.
func (r Rate) PerDay() float64 { return float64(r) * perDay }

// RateOf returns the rate of one change in mean on average.
func RateOf(mean time.Duration) Rate { return Rate(1 / max(mean.Seconds(), shortest)) }

// mean returns the time between changes in seconds.
func (r Rate) mean() float64 { return 1 / float64(r) }

// Bounds of an estimate, which are those of the levels.
const (
	slowestRate = 1 / longest
	fastestRate = 1 / shortest
)

// evidence sums up the observations of a page. In the likelihood of a rate, times without a change
// add up, and so do dated changes. Only changes within an interval stay separate.
type evidence struct {
	calm    float64   // seconds without a change
	dated   float64   // changes whose time is known
	visits  float64   // visits whose response had such a time
	within  []float64 // intervals in which there was a change, seconds
	storage [observations]float64
}

func (h History) evidence() (e evidence) {
	e.within = e.storage[:0]
	if h.isPlain() {
		return e
	}
	for _, b := range h[1:] {
		switch {
		case b == 0:
		case b >= exact:
			e.calm += levelSeconds(b - exact)
			e.dated++
			e.visits++
		case b >= changed:
			e.within = append(e.within, levelSeconds(b-changed))
		default:
			e.calm += levelSeconds(b - unchanged)
			e.visits++
		}
	}
	return e
}

// priorSpread is the variance of the logarithm of rates around the prior: one standard deviation is
// a factor of five and a half.
const priorSpread = 3.0

// estimate returns the most likely rate of changes, if they are independent, after observations at
// irregular intervals (Cho and Garcia-Molina, Estimating frequency of change, TOIT 2003). Without a
// prior it solves
//
//	sum over changes within d of d/(exp(rate d)-1) + dated/rate = calm
//
// The prior is lognormal, as rates of pages are. On the scale of its logarithm, the equation is
// that below. So an estimate is finite for any observations. Dated changes are corrected for the
// overestimate of their number, as in the same paper.
func (h History) estimate(prior Rate) Rate {
	e := h.evidence()
	dated := correctDated(e.dated, e.visits)
	excess := func(rate float64) float64 {
		sum := dated - rate*e.calm - math.Log(rate/float64(prior))/priorSpread
		for _, d := range e.within {
			sum += rate * hidden(rate, d)
		}
		return sum
	}
	low, high := math.Log(slowestRate), math.Log(fastestRate)
	for range 20 { // the excess falls with the rate; the last step is a millionth of the range
		middle := (low + high) / 2
		if excess(math.Exp(middle)) > 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return Rate(math.Exp((low + high) / 2))
}

// hidden is d/(exp(rate d)-1): the expected time from the start of an interval with a change in it
// to the last change.
func hidden(rate, d float64) float64 { return d / math.Expm1(rate*d) }

// correctDated subtracts the overestimate that comes from counting only the last change of each
// visit:
// X' = (X-1) - X/(n ln(1-X/n)).
func correctDated(changes, visits float64) float64 {
	switch {
	case changes == 0:
		return 0
	case changes >= visits:
		return max(changes-1, changes/2)
	}
	return max((changes-1)-changes/(visits*math.Log1p(-changes/visits)), changes/2)
}
