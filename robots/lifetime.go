package robots

import (
	"time"

	"github.com/amble-crawler/amble/internal/web/httpfield"
)

// lifetime returns how long a response that arrived at now may be used: max-age minus Age, else Expires minus Date
// (RFC 9111 section 4.2), within the bounds of the options. known is false if the headers do not say.
func (o Options) lifetime(h Header, now time.Time) (d time.Duration, known bool) {
	d, known = httpfield.Caching{
		CacheControl: h.CacheControl, Expires: h.Expires, Date: h.Date, Age: h.Age,
	}.Freshness(now)
	switch {
	case !known:
		return o.MaxLifetime, false
	case d <= 0:
		return o.NoCacheLifetime, true
	}
	return min(max(d, o.MinLifetime), o.MaxLifetime), true
}
