package politeness

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseRetryAfter(t *testing.T) {
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
		{"-5", 0, true},
		{"-0", 0, true},
		{"9223372036", 9223372036 * s, true},
		{"9223372037", math.MaxInt64, true},
		{"1000000000000", math.MaxInt64, true},
		{"99999999999999999999999999", math.MaxInt64, true},
		{strings.Repeat("9", 1<<16), math.MaxInt64, true},
		{"Fri, 20 Nov 2026 13:01:00 GMT", 59*s + s/2, true},
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
		{"+5", 0, false},
		{"1.5", 0, false},
		{"1e3", 0, false},
		{"0x10", 0, false},
		{"12 0", 0, false},
		{"120s", 0, false},
		{"soon", 0, false},
		{"٣", 0, false},
		{"Fri, 20 Nov 2026 13:01:00 CET", 0, false},
		{"Fri, 20 Nov 2026 13:01:00", 0, false},
		{"Fri, 32 Nov 2026 13:01:00 GMT", 0, false},
		{"2026-11-20T13:01:00Z", 0, false},
	}
	for _, tt := range tests {
		got, ok := ParseRetryAfter(tt.value, now)
		if got != tt.want || ok != tt.ok {
			t.Errorf("%.60q: %v %v, want %v %v", tt.value, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, v := range []string{"120", "-1", "Fri, 20 Nov 2026 13:01:00 GMT", "Friday, 20-Nov-26 13:01:00 GMT", "Fri Nov 20 13:01:00 2026", "x"} {
		f.Add(v, int64(1_795_179_600))
	}
	f.Fuzz(func(t *testing.T, value string, seconds int64) {
		now := time.Unix(seconds%(1<<36), 0)
		d, ok := ParseRetryAfter(value, now)
		if d < 0 || !ok && d != 0 {
			t.Fatalf("%q at %v: %v %v", value, now, d, ok)
		}
	})
}
