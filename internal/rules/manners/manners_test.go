package manners

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// at is a moment in seconds since the first request began.
type at float64

func (t at) Sub(u at) (time.Duration, bool) { return time.Duration(float64(t-u) * 1e9), true }

// IsZero reports whether there is no such moment: that of no request is.
func (t at) IsZero() bool { return t == 0 }

// TestJudge: the verdict on the last request of each list.
func TestJudge(t *testing.T) {
	const second = time.Second
	for name, c := range map[string]struct {
		requests []Request[at]
		want     Verdict
	}{
		"the first":  {[]Request[at]{{1, 2, second, 0}}, Verdict{}},
		"in time":    {[]Request[at]{{1, 2, second, 0}, {3, 4, second, 0}}, Verdict{Gap: second}},
		"too soon":   {[]Request[at]{{1, 2, second, 0}, {2.5, 4, second, 0}}, Verdict{Gap: second / 2, Short: true}},
		"no delay":   {[]Request[at]{{1, 2, 0, 0}, {2, 4, 0, 0}}, Verdict{}},
		"in flight":  {[]Request[at]{{1, 3, second, 0}, {2, 4, second, 0}}, Verdict{Gap: -second, Short: true}},
		"latest end": {[]Request[at]{{1, 5, 0, 0}, {2, 3, 0, 0}, {5, 6, second, 0}}, Verdict{Short: true}},
		"overtaken": {[]Request[at]{{3, 4, second, 0}, {1, 5, second, 0}},
			Verdict{Gap: -3 * second, Overtaken: true, Delay: second}},
		"before one that was listed first": {[]Request[at]{{5, 6, second, 0}, {1, 4, second, 0}},
			Verdict{Gap: -5 * second, Delay: second}},
		"before Retry-After": {[]Request[at]{{1, 2, 0, 5 * second}, {3, 4, 0, 0}, {6, 7, 0, 0}},
			Verdict{Gap: 2 * second, Early: second, EarlyExact: true}},
		"the longer one counts": {[]Request[at]{{1, 2, 0, 9 * second}, {2, 3, 0, second}, {9, 10, 0, 0}},
			Verdict{Gap: 6 * second, Early: 2 * second, EarlyExact: true}},
		"after Retry-After": {[]Request[at]{{1, 2, 0, 5 * second}, {7, 8, 0, 0}},
			Verdict{Gap: 5 * second}},
		"in flight when it arrived": {[]Request[at]{{1, 3, 0, 5 * second}, {2, 4, 0, 0}}, Verdict{Gap: -second}},
	} {
		var h Host[at]
		last := len(c.requests) - 1
		for _, q := range c.requests[:last] {
			h.Pass(q)
		}
		c.want.HasGap, c.want.Exact = last > 0, last > 0
		assert.Equal(t, h.Judge(c.requests[last]), c.want, name)
	}
}
