package politeness

import (
	"time"

	"github.com/amble-crawler/amble/internal/web/httpfield"
)

// ParseRetryAfter reads the value of a Retry-After header (RFC 9110, section 10.2.3): seconds, or a
// date in any of the three forms of section 5.6.7, relative to now. It returns the time to wait,
// and whether the value is valid. A date before now is 0. A time beyond the range of Duration is
// the longest Duration.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	return httpfield.RetryAfter(value, now)
}
