package httpfield

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 13, 0, 0, 500_000_000, time.UTC)
	const s = time.Second
	tests := []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"120", 120 * s, true},
		{" \t120 ", 120 * s, true},
		{"0", 0, true},
		{"00010", 10 * s, true},
		{"3600.0", 3600 * s, true},
		{"1.5", 2 * s, true},
		{"1.", s, true},
		{"9223372035", 9223372035 * s, true},
		{"9223372036", math.MaxInt64, true},
		{"9223372035.9", 9223372036 * s, true},
		{"1000000000000", math.MaxInt64, true},
		{"99999999999999999999999999", math.MaxInt64, true},
		{strings.Repeat("9", 1<<16), math.MaxInt64, true},
		{"Fri, 20 Nov 2026 13:01:00 GMT", 59*s + s/2, true},
		{"Fri, 20 Nov 2026 13:01:00 UTC", 59*s + s/2, true},
		{"Friday, 20-Nov-26 13:01:00 GMT", 59*s + s/2, true},
		{"Fri Nov 20 13:01:00 2026", 59*s + s/2, true},
		{"Sun Nov  8 13:01:00 2026", 0, true},
		{"Tue Dec  1 13:00:00 2026", 11*24*time.Hour - s/2, true},
		{"Fri, 20 Nov 2026 12:59:59 GMT", 0, true},
		{"Thu, 01 Jan 1970 00:00:00 GMT", 0, true},
		{"Sunday, 06-Nov-94 08:49:37 GMT", 0, true},                    // 1994: 2094 is more than 50 years ahead
		{"Saturday, 20-Nov-70 13:00:00 GMT", 1388534399*s + s/2, true}, // 2070, not 1970
		{"Fri, 31 Dec 9999 23:59:59 GMT", math.MaxInt64, true},
		{"", 0, false},
		{"-", 0, false},
		{"-5", 0, false},
		{"-0", 0, false},
		{"+5", 0, false},
		{".5", 0, false},
		{"1.5.0", 0, false},
		{"1.-5", 0, false},
		{"1e3", 0, false},
		{"0x10", 0, false},
		{"12 0", 0, false},
		{"120s", 0, false},
		{"soon", 0, false},
		{"٣", 0, false},
		{"Fri, 20 Nov 2026 13:01:00 CET", 0, false},
		{"Friday, 20-Nov-26 13:01:00 CET", 0, false},
		{"Fri, 20 Nov 2026 13:01:00", 0, false},
		{"Fri, 32 Nov 2026 13:01:00 GMT", 0, false},
		{"2026-11-20T13:01:00Z", 0, false},
	}
	for _, tt := range tests {
		got, ok := RetryAfter(tt.value, now)
		assert.True(t, got == tt.want && ok == tt.ok, "%.60q: %v %v, want %v %v", tt.value, got, ok, tt.want, tt.ok)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, v := range []string{"120", "-1", "1.5", "Fri, 20 Nov 2026 13:01:00 GMT", "Friday, 20-Nov-26 13:01:00 GMT",
		"Fri Nov 20 13:01:00 2026", "x"} {
		f.Add(v, int64(1_795_179_600))
	}
	f.Fuzz(func(t *testing.T, value string, seconds int64) {
		now := time.Unix(seconds%(1<<36), 0)
		d, ok := RetryAfter(value, now)
		must.True(t, d >= 0 && (ok || d == 0), "%q at %v: %v %v", value, now, d, ok)
		h := http.Header{"Retry-After": {value, "60"}, "Expires": {value, "0"}, "Content-Type": {value, "text/html"},
			"Location": {value, "/"}}
		Settle(h, now)
		if got, _ := RetryAfter(h.Get("Retry-After"), now); got < max(d, time.Minute) {
			t.Errorf("%q and 60 came to %q", value, h.Get("Retry-After"))
		}
	})
}

func TestIsRedirect(t *testing.T) {
	var got []int
	for status := range 1000 {
		if IsRedirect(status) {
			got = append(got, status)
		}
	}
	assert.Slice(t, got, []int{301, 302, 303, 307, 308})
}

// The strictest line counts, in any order of the lines.
func TestSettle(t *testing.T) {
	now := time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name  string
		lines []string
		want  string // "": none is left
	}{
		{"Retry-After", []string{"1", "120"}, "120"},
		{"Retry-After", []string{"1", "Fri, 20 Nov 2026 14:00:00 GMT", "60"}, "Fri, 20 Nov 2026 14:00:00 GMT"},
		{"Retry-After", []string{"soon", "0"}, "0"},
		{"Retry-After", []string{"99999999999999999999", "5"}, "99999999999999999999"},
		{"Age", []string{"5", "7200"}, "7200"},
		{"Expires", []string{"Fri, 20 Nov 2026 14:00:00 GMT", "Fri, 20 Nov 2026 13:30:00 GMT"},
			"Fri, 20 Nov 2026 13:30:00 GMT"},
		{"Expires", []string{"Fri, 20 Nov 2026 14:00:00 GMT", "0"}, "0"},
		{"Location", []string{"/a", "/b"}, ""},
		{"Location", []string{"/a", "/a"}, "/a"},
		{"Etag", []string{`"a"`, `"b"`}, ""},
		{"Etag", []string{`"a"`, `"a"`}, `"a"`},
		{"Last-Modified", []string{"Fri, 20 Nov 2026 14:00:00 GMT", "Fri, 20 Nov 2026 15:00:00 GMT"}, ""},
		{"Date", []string{"Fri, 20 Nov 2026 14:00:00 GMT", "Fri, 20 Nov 2026 15:00:00 GMT"}, ""},
	} {
		lines := slices.Clone(tt.lines)
		for range 2 {
			h := http.Header{tt.name: slices.Clone(lines)}
			Settle(h, now)
			got := h.Get(tt.name)
			assert.True(t, got == tt.want && len(h[tt.name]) <= 1, "%s: %q, want %q", tt.name, h[tt.name], tt.want)
			slices.Reverse(lines)
		}
	}
	for _, tt := range []struct{ name, first, second, want string }{
		{"Cache-Control", "max-age=60", "no-store", "max-age=60, no-store"},
		{"Content-Type", "text/plain", "text/html; charset=utf-8", "text/html; charset=utf-8"},
		{"Content-Type", "text/html", "what", "text/html"},
		{"Content-Type", "one", "two", "one"},
	} {
		h := http.Header{tt.name: {tt.first, tt.second}}
		if Settle(h, now); h.Get(tt.name) != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, h.Get(tt.name), tt.want)
		}
	}
	h := http.Header{"Set-Cookie": {"a=1", "b=2"}, "X-Robots-Tag": {"noindex", "nofollow"}, "Link": {"<a>", "<b>"},
		"Content-Type": {"text/html"}}
	want := maps.Clone(h)
	if Settle(h, now); !maps.EqualFunc(h, want, slices.Equal) {
		t.Errorf("%v, want %v", h, want)
	}
}
