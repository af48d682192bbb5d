package recrawl

import "math"

// Importance is the weight of one page's freshness relative to another's, in steps: four steps are
// a factor of two. A seed without a priority of its own has 0.
type Importance int8

// The bounds of the scale, a factor of a thousand each from the middle.
const (
	leastImportance Importance = -40
	mostImportance  Importance = 40
	importances                = int(mostImportance-leastImportance) + 1
)

// deepest is the number of links from a seed beyond which the importance no longer falls.
const deepest = 8

// ImportanceOf returns the importance of a page from its priority and its depth: four more steps of
// priority double it, and so do two fewer links from a seed.
func ImportanceOf(priority int8, depth uint16) Importance {
	i := int(priority) - 2*int(min(depth, deepest))
	return Importance(min(max(i, int(leastImportance)), int(mostImportance)))
}

// Weight returns the importance as a factor.
func (i Importance) Weight() float64 { return math.Exp2(float64(i) / 4) }
