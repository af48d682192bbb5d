package revisit

import (
	"math"
	"time"
)

// Rate is how often a page changes: changes a second on average.
type Rate float64

// perDay gives a rate in changes a day.
const perDay = 24 * 60 * 60

// PerDay is the rate in changes a day.
func (r Rate) PerDay() float64 { return float64(r) * perDay }

// RateOf is that of one change in so long on average.
func RateOf(mean time.Duration) Rate { return Rate(1 / max(mean.Seconds(), shortest)) }

// mean is the time between changes in seconds.
func (r Rate) mean() float64 { return 1 / float64(r) }

// Bounds of an estimate: those of the levels.
const (
	slowestRate = 1 / longest
	fastestRate = 1 / shortest
)

// evidence is what the observations of a page come to. In the likelihood of a rate, times
// without a change add up, and so do dated changes; only changes within an interval stay apart.
type evidence struct {
	calm    float64   // seconds without a change
	dated   float64   // changes of which the time is known
	visits  float64   // visits with an answer that knows such times
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

// priorSpread is the variance of the logarithm of rates around the prior: one deviation is a factor of five and a half.
const priorSpread = 3.0

// estimate is the most likely rate of changes, if they come independently, after observations at irregular intervals
// (Cho and Garcia-Molina, Estimating frequency of change, TOIT 2003). Without a prior it solves
//
//	sum over changes within d of d/(exp(rate d)-1) + dated/rate = calm
//
// The prior is lognormal, as rates of pages are; on the scale of its logarithm the equation is that below. So an estimate is
// finite whatever was seen. Dated changes are corrected for what their number overrates, as the same paper does.
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
	for range 20 { // the excess falls with the rate; the last half is a millionth of the range
		middle := (low + high) / 2
		if excess(math.Exp(middle)) > 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return Rate(math.Exp((low + high) / 2))
}

// hidden is d/(exp(rate d)-1): how long after the begin of an interval with a change in it the rate expects
// the time since the last one to have begun.
func hidden(rate, d float64) float64 { return d / math.Expm1(rate*d) }

// correctDated takes off what counting the last change of each visit overrates a rate by:
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
