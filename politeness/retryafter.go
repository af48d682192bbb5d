package politeness

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseRetryAfter reads the value of a Retry-After header (RFC 9110, section 10.2.3): seconds, or a date
// in any of the three forms of section 5.6.7, which counts from now. It returns how long to wait and whether
// the value was understood. What lies in the past is 0; what no Duration can hold is the longest Duration.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.Trim(value, " \t")
	if d, ok := parseSeconds(value); ok {
		return d, true
	}
	for _, layout := range [...]string{
		"Mon, 02 Jan 2006 15:04:05 GMT",  // IMF-fixdate
		"Monday, 02-Jan-06 15:04:05 GMT", // RFC 850
		time.ANSIC,                       // asctime
	} {
		if t, err := time.Parse(layout, value); err == nil {
			if strings.Contains(layout, "-06 ") {
				t = century(t, now)
			}
			return max(t.Sub(now), 0), true
		}
	}
	return 0, false
}

// parseSeconds reads a whole number of seconds.
func parseSeconds(value string) (time.Duration, bool) {
	digits := strings.TrimPrefix(value, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	if len(digits) < len(value) {
		return 0, true // negative
	}
	seconds, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || seconds > math.MaxInt64/int64(time.Second) {
		return math.MaxInt64, true
	}
	return time.Duration(seconds) * time.Second, true
}

// century chooses the century of a year of two digits: a date that seems to be more than 50 years
// ahead is in the past (RFC 9110, section 5.6.7).
func century(t, now time.Time) time.Time {
	limit := now.AddDate(50, 0, 0)
	for t.After(limit) {
		t = t.AddDate(-100, 0, 0)
	}
	for next := t.AddDate(100, 0, 0); !next.After(limit); next = t.AddDate(100, 0, 0) {
		t = next
	}
	return t
}
