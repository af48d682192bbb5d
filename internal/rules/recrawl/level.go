package recrawl

import "math"

// Durations are rounded to one of 84 levels, each a quarter longer than the one before: from a
// second to seven and a half years. The rounding changes an estimate by a few percent, much less
// than chance does.
const (
	levels   = 84
	shortest = 1.0     // seconds
	longest  = 2.366e8 // seconds
)

// levelStep is the logarithm of the ratio of two neighbouring levels.
var levelStep = math.Log(longest/shortest) / (levels - 1)

// levelOf returns the level nearest to a duration in seconds.
func levelOf(seconds float64) uint8 {
	if !(seconds > shortest) {
		return 0
	}
	return uint8(min(math.Round(math.Log(seconds/shortest)/levelStep), levels-1))
}

// levelSeconds returns the duration of a level.
func levelSeconds(l uint8) float64 { return levelSecondsOf(float64(l)) }

// levelSecondsOf returns the duration between levels, for means of levels.
func levelSecondsOf(l float64) float64 { return shortest * math.Exp(l*levelStep) }
