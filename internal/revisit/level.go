package revisit

import "math"

// Durations are kept in one of 84 steps, each a quarter longer than the one
// before: from a second to seven and a half years. Rounding to them puts an
// estimate off by a few percent, much less than chance does.
const (
	levels   = 84
	shortest = 1.0     // seconds
	longest  = 2.366e8 // seconds
)

// levelStep is the logarithm of the ratio of two neighbours.
var levelStep = math.Log(longest/shortest) / (levels - 1)

// levelOf is the step next to a duration in seconds.
func levelOf(seconds float64) uint8 {
	if !(seconds > shortest) {
		return 0
	}
	return uint8(min(math.Round(math.Log(seconds/shortest)/levelStep), levels-1))
}

// levelSeconds is the duration of a step.
func levelSeconds(l uint8) float64 { return levelSecondsOf(float64(l)) }

// levelSecondsOf is the duration between steps, for means of them.
func levelSecondsOf(l float64) float64 { return shortest * math.Exp(l*levelStep) }
