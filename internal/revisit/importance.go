package revisit

import "math"

// Importance is how much the freshness of one page counts against that of another, in steps: four steps are a
// factor of two. 0 is that of a seed without a priority of its own.
type Importance int8

// The ends of the scale, a factor of a thousand each from the middle.
const (
	leastImportance Importance = -40
	mostImportance  Importance = 40
	importances                = int(mostImportance-leastImportance) + 1
)

// deepest is the number of links from a seed beyond which pages are not less important.
const deepest = 8

// ImportanceOf weighs a page by its priority and its depth: a priority higher by four doubles it, and so does being two
// links nearer to a seed.
func ImportanceOf(priority int8, depth uint16) Importance {
	i := int(priority) - 2*int(min(depth, deepest))
	return Importance(min(max(i, int(leastImportance)), int(mostImportance)))
}

// Weight is the importance as a factor.
func (i Importance) Weight() float64 { return math.Exp2(float64(i) / 4) }
