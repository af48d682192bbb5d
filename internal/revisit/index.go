package revisit

import "math"

// The harmonic index. A copy that has missed j changes costs 1 + 1/2 + ... + 1/j: the first
// missed change counts most, and none is ever free, so that no page is given up however fast it
// changes (Kolobov et al., Staying up to date with online content changes, NeurIPS 2019). Over a wait of x expected
// changes, another visit gains (weight/rate)(x - 1 + exp(-x)); the page is due when that reaches the price.

// wait is the x at which x - 1 + exp(-x) is c, to full precision also where it is small.
func wait(c float64) float64 {
	x := 1 + c
	if c < 1 {
		x = math.Sqrt(2 * c)
	}
	for range 4 {
		x -= (x + math.Expm1(-x) - c) / -math.Expm1(-x)
	}
	return x
}

// shortestWait is how few changes a page may be expected to have between two visits: however much budget there is,
// no page is asked for more than twenty times as often as it changes.
const shortestWait = 0.05

// indexWait is how long to wait for a page in seconds, at a price in seconds.
func indexWait(rate Rate, weight, price float64) float64 {
	x := shortestWait
	if c := price * float64(rate) / weight; c > shortestWait*shortestWait/2 {
		x = max(x, wait(c))
	}
	return x / float64(rate)
}

// Freshness is the share of time that a copy is the same as the page, when the page changes at a rate and is
// fetched anew every so many seconds.
func Freshness(rate Rate, every float64) float64 {
	x := float64(rate) * every
	if x < 1e-9 {
		return 1
	}
	return -math.Expm1(-x) / x
}
