package robots

import (
	"strconv"
	"strings"
	"time"
)

// lifetime returns how long an answer that came at now may be used: max-age less Age, else Expires less Date, within
// the bounds of the options (RFC 9111 section 4.2). known is false where the headers do not say.
func (o Options) lifetime(h Header, now time.Time) (d time.Duration, known bool) {
	d, known = freshness(h, now)
	if !known {
		return o.MaxLifetime, false
	}
	return min(max(d, o.MinLifetime), o.MaxLifetime), true
}

func freshness(h Header, now time.Time) (d time.Duration, known bool) {
	maxAge, stale := cacheControl(h.CacheControl)
	switch {
	case stale:
		return 0, true
	case maxAge >= 0:
		age, _ := seconds(h.Age)
		return maxAge - age, true
	case h.Expires == "":
		return 0, false
	}
	expires, ok := httpTime(h.Expires)
	if !ok {
		return 0, true // "0" and the like mean: already expired (RFC 9111 section 5.3)
	}
	if date, ok := httpTime(h.Date); ok {
		age, _ := seconds(h.Age)
		return expires.Sub(date) - age, true
	}
	return expires.Sub(now), true
}

// cacheControl returns max-age, or -1, and whether the answer must not be used without asking again.
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
			if d, ok := seconds(strings.Trim(arg, "\" \t")); ok && (maxAge < 0 || d < maxAge) {
				maxAge = d
			}
		}
	}
	return maxAge, stale
}

// longest is more than any header may ask for, and small enough to be added and subtracted.
const longest = 10 * 365 * 24 * time.Hour

// seconds reads a number of seconds; what is too large counts as longest.
func seconds(s string) (d time.Duration, ok bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n > uint64(longest/time.Second) {
		return longest, true
	}
	return time.Duration(n) * time.Second, true
}

// httpTime reads a date of an HTTP header in its three forms (RFC 9110 section 5.6.7).
func httpTime(s string) (time.Time, bool) {
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
		if t, err := time.Parse(layout, strings.TrimSpace(s)); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// retryAfter reads a Retry-After header in its two forms (RFC 9110 section 10.2.3).
func retryAfter(value string, now time.Time) (d time.Duration, ok bool) {
	if d, ok = seconds(value); ok {
		return d, true
	}
	if t, ok := httpTime(value); ok {
		return max(t.Sub(now), 0), true
	}
	return 0, false
}
