package httpfield

import (
	"testing"
	"time"
)

func TestFreshness(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	const date, later = "Fri, 20 Nov 2026 11:00:00 GMT", "Fri, 20 Nov 2026 14:00:00 GMT"
	for _, c := range []struct {
		fields Caching
		want   time.Duration
		known  bool
	}{
		{Caching{}, 0, false},
		{Caching{CacheControl: "public"}, 0, false},
		{Caching{CacheControl: "public, max-age=60"}, time.Minute, true},
		{Caching{CacheControl: "max-age=60", Age: "20"}, 40 * time.Second, true},
		{Caching{CacheControl: "max-age=60", Age: "80"}, -20 * time.Second, true},
		{Caching{CacheControl: "max-age=60, max-age=30"}, 30 * time.Second, true},
		{Caching{CacheControl: "max-age=60", Expires: later}, time.Minute, true},
		{Caching{CacheControl: "max-age=60, no-cache"}, 0, true},
		{Caching{CacheControl: "no-store"}, 0, true},
		{Caching{Expires: later}, 2 * time.Hour, true},
		{Caching{Expires: later, Date: date}, 3 * time.Hour, true},
		{Caching{Expires: later, Date: date, Age: "3600"}, 2 * time.Hour, true},
		{Caching{Expires: "0"}, 0, true},
		{Caching{Expires: date, Date: later}, 0, true},
	} {
		if got, known := c.fields.Freshness(now); got != c.want || known != c.known {
			t.Errorf("%+v: %v, %t, want %v, %t", c.fields, got, known, c.want, c.known)
		}
	}
}
