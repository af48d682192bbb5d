package recrawl

import "math"

// The harmonic index. A copy that has missed j changes costs 1 + 1/2 + ... + 1/j. The first missed
// change counts most, and none is free, so that no page is given up however fast it changes
// (Kolobov et al., Staying up to date with online content changes, NeurIPS 2019). Over a wait of x
// expected changes, another visit gains (weight/rate)(x - 1 + exp(-x)); the page is due when that
// reaches the price.

// wait returns the x at which x - 1 + exp(-x) is c, to full precision also for small c.
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

// shortestWait is the least number of expected changes between two visits. With any budget, no page
// is fetched more than twenty times as often as it changes.
const shortestWait = 0.05

// indexWait returns the wait for a page in seconds, at a price in seconds.
func indexWait(rate Rate, weight, price float64) float64 {
	x := shortestWait
	if c := price * float64(rate) / weight; c > shortestWait*shortestWait/2 {
		x = max(x, wait(c))
	}
	return x / float64(rate)
}

// Freshness returns the share of time in which a copy equals its page, if the page changes at a
// rate and is fetched every so many seconds.
func Freshness(rate Rate, every float64) float64 {
	x := float64(rate) * every
	if x < 1e-9 {
		return 1
	}
	return -math.Expm1(-x) / x
}
