package politeness

import (
	"time"

	"github.com/amble-crawler/amble/internal/httpfield"
)

// ParseRetryAfter reads the value of a Retry-After header (RFC 9110, section 10.2.3): seconds, or a date
// in any of the three forms of section 5.6.7, which counts from now. It returns how long to wait and whether
// the value was understood. A date in the past is 0; what no Duration can hold is the longest Duration.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	return httpfield.RetryAfter(value, now)
}
