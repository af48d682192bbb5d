package robots

import (
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/httpfield"
)

// lifetime returns how long a response that arrived at now may be used: max-age minus Age, else
// Expires minus Date, within the bounds of the options (RFC 9111 section 4.2). known is false if
// the headers do not say.
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
		return maxAge - age(h), true
	case h.Expires == "":
		return 0, false
	}
	expires, ok := httpfield.Date(h.Expires, now)
	if !ok {
		return 0, true // "0" and the like mean: already expired (RFC 9111 section 5.3)
	}
	if date, ok := httpfield.Date(h.Date, now); ok {
		return max(expires.Sub(date), 0) - age(h), true
	}
	return expires.Sub(now), true
}

// age returns for how long a response has been on its way.
func age(h Header) time.Duration {
	d, _ := httpfield.Seconds(h.Age)
	return d
}

// cacheControl returns max-age, or -1, and whether the response has to be fetched again for each
// use.
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
			if d, ok := httpfield.Seconds(strings.Trim(arg, "\" \t")); ok && (maxAge < 0 || d < maxAge) {
				maxAge = d
			}
		}
	}
	return maxAge, stale
}
