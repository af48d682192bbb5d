package httpfield

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// blanks may surround a value (RFC 9110, section 5.6.3).
const blanks = " \t"

// Seconds reads a number of seconds, 0 or more. It rounds a fraction up, which no field should have
// but some do. A number beyond the range of Duration is the longest Duration.
func Seconds(value string) (time.Duration, bool) {
	whole, fraction, _ := strings.Cut(strings.Trim(value, blanks), ".")
	if whole == "" || strings.Trim(whole, "0123456789") != "" || strings.Trim(fraction, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n >= math.MaxInt64/int64(time.Second) {
		return math.MaxInt64, true
	}
	if strings.Trim(fraction, "0") != "" {
		n++
	}
	return time.Duration(n) * time.Second, true
}

// Date reads a date in any of the three forms of RFC 9110, section 5.6.7. now decides the century
// of a year of two digits. UTC counts as GMT; other zones are invalid.
func Date(value string, now time.Time) (time.Time, bool) {
	value = strings.Trim(value, blanks)
	if value == "" { // as most fields
		return time.Time{}, false
	}
	if before, ok := strings.CutSuffix(value, " UTC"); ok {
		value = before + " GMT"
	}
	if t, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", value); err == nil { // IMF-fixdate
		return t, true
	}
	if t, err := time.Parse("Monday, 02-Jan-06 15:04:05 GMT", value); err == nil { // RFC 850
		return century(t, now), true
	}
	t, err := time.Parse(time.ANSIC, value) // asctime
	return t, err == nil
}

// century chooses the century of a year of two digits: a date more than 50 years ahead is in the
// past (RFC 9110, section 5.6.7).
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

// RetryAfter reads the value of Retry-After (RFC 9110, section 10.2.3): seconds, or a date,
// relative to now. It returns the time to wait and whether the value is valid. A date before now is
// 0. A time beyond the range of Duration is the longest Duration.
func RetryAfter(value string, now time.Time) (time.Duration, bool) {
	if d, ok := Seconds(value); ok {
		return d, true
	}
	t, ok := Date(value, now)
	if !ok {
		return 0, false
	}
	return max(t.Sub(now), 0), true
}

// IsRedirect reports whether a status is a redirect to the target in Location (RFC 9110, section
// 15.4).
func IsRedirect(status int) bool {
	switch status {
	case 301, 302, 303, 307, 308:
		return true
	}
	return false
}

// IsTemporary reports whether the same request may get another status later.
func IsTemporary(status int) bool {
	return status >= 500 || status == 429 || status == 408 || status == 425
}
