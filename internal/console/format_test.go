package console

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/testing/assert"
)

func TestUnits(t *testing.T) {
	tests := []struct{ got, want string }{
		{Grouped(0), "0"}, {Grouped(-5), "0"}, {Grouped(999), "999"}, {Grouped(1000), "1,000"},
		{Grouped(uint64(1234567)), "1,234,567"},
		{Plural(1, "page"), "1 page"}, {Plural(0, "page"), "0 pages"}, {Plural(uint64(1200), "URL"), "1,200 URLs"},
		{Size(uint64(0)), "0 B"}, {Size(uint64(1023)), "1023 B"}, {Size(uint64(1024)), "1.0 KiB"},
		{Size(uint64(1 << 20)), "1.0 MiB"},
		{Size(1<<20 - 1.0), "1.0 MiB"}, {Size(uint64(5 << 50)), "5120.0 TiB"},
		{Span(-time.Second), "0s"}, {Span(1400 * time.Millisecond), "1s"}, {Span(59600 * time.Millisecond), "1m 0s"},
		{Span(125 * time.Second), "2m 5s"},
		{Span(3840 * time.Second), "1h 4m"}, {Span(74 * time.Hour), "3d 2h"},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.got, tt.want)
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.Local)
	assert.Equal(t, InstantText(now.Add(time.Hour), now), "13:00:00")
	assert.Equal(t, InstantText(now.Add(24*time.Hour), now), "2026-11-22 12:00")
}

// Every reason has words.
func TestReasonTexts(t *testing.T) {
	texts := reasonTexts()
	for _, name := range inspect.ReasonNames() {
		assert.Not(t, texts[name], "", name, "has no text")
		delete(texts, name)
	}
	assert.AtMost(t, len(texts), 0, "no reasons", texts)
}

func TestCountsText(t *testing.T) {
	for _, tt := range []struct {
		counts map[string]uint64
		want   string
	}{
		{nil, ""},
		{map[string]uint64{"dns_not_found": 1440}, "1,440 dns_not_found"},
		{map[string]uint64{"tls": 2, "reset": 2, "status 404": 7}, "7 status 404, 2 reset, 2 tls"},
		{map[string]uint64{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}, "6 f, 5 e, 4 d, 3 c, 2 other kinds"},
	} {
		assert.Equal(t, CountsText(tt.counts), tt.want, tt.counts)
	}
}
