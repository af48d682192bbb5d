package httpfield

import (
	"strings"
	"time"
)

// Caching has the fields of a response that say for how long it may be used.
type Caching struct{ CacheControl, Expires, Date, Age string }

// Freshness returns how long a response that arrived at now may be used: max-age minus Age, else
// Expires minus Date (RFC 9111, section 4.2). It may be negative. known is false if the fields do
// not say.
func (c Caching) Freshness(now time.Time) (d time.Duration, known bool) {
	maxAge, stale := cacheControl(c.CacheControl)
	switch {
	case stale:
		return 0, true
	case maxAge >= 0:
		return maxAge - c.age(), true
	case c.Expires == "":
		return 0, false
	}
	expires, ok := Date(c.Expires, now)
	if !ok {
		return 0, true // "0" and the like mean: already expired (RFC 9111 section 5.3)
	}
	if date, ok := Date(c.Date, now); ok {
		return max(expires.Sub(date), 0) - c.age(), true
	}
	return expires.Sub(now), true
}

// age returns for how long a response has been on its way.
func (c Caching) age() time.Duration {
	d, _ := Seconds(c.Age)
	return d
}

// cacheControl returns max-age, or -1, and whether the response may only be used once.
func cacheControl(value string) (maxAge time.Duration, stale bool) {
	maxAge = -1
	for value != "" {
		var directive string
		directive, value, _ = strings.Cut(value, ",")
		name, arg, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "no-store", "no-cache":
			stale = true
		case "max-age":
			if d, ok := Seconds(strings.Trim(arg, "\" \t")); ok && (maxAge < 0 || d < maxAge) {
				maxAge = d
			}
		}
	}
	return maxAge, stale
}
