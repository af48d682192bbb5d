package config

import (
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestParseByteSize(t *testing.T) {
	good := map[string]ByteSize{
		"0": 0, "1": 1, "4096": 4096, "7B": 7, "1KB": 1000, "1KiB": 1024, "2 MiB": 2 * MiB, "10mib": 10 * MiB,
		"3GB": 3e9, "1GiB": GiB, "2TiB": 2 * TiB, "1TB": 1e12, "9223372036854775807": 1<<63 - 1,
	}
	for text, want := range good {
		got, err := ParseByteSize(text)
		assert.True(t, err == nil && got == want, "ParseByteSize(%q) = %d, %v; want %d", text, got, err, want)
	}
	for _, text := range []string{"", "MiB", "-1", "+1", "1.5MiB", "1M", "1 2", "1MiBs", "9223372036854775808",
		"9007199254740992KiB", "1e3", "1\nKiB"} {
		assert.Fails(ParseByteSize(text))(t, nil, "ParseByteSize", text)
	}
}

func FuzzParseByteSize(f *testing.F) {
	for _, seed := range []string{"10MiB", "0", "1 TB", "99999999999999999999", "1023KiB", "5b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		size, err := ParseByteSize(text)
		if err != nil {
			return
		}
		must.True(t, size >= 0, "ParseByteSize(%q) = %d", text, size)
		assert.Returns(ParseByteSize(size.String()))(t, size, "is written and read back as")
	})
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", time.Minute: "1m", time.Hour: "1h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", 250 * time.Millisecond: "250ms", 100 * time.Minute: "1h40m",
		20 * time.Second: "20s",
	} {
		assert.Equal(t, formatDuration(d), want, "formatDuration", d)
		if back, err := time.ParseDuration(formatDuration(d)); err != nil || back != d {
			t.Errorf("%q is read back as %v, %v", formatDuration(d), back, err)
		}
	}
}

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"delay", "delay", 0}, {"Delay", "delay", 0}, {"dealy", "delay", 1}, {"dely", "delay", 1},
		{"delays", "delay", 1}, {"dolay", "delay", 1}, {"", "abc", 3}, {"kitten", "sitting", 3},
		{strings.Repeat("a", 65), "a", longestSuggestible},
	}
	for _, tt := range tests {
		assert.Equal(t, distance(tt.a, tt.b), tt.want, "distance", tt.a, tt.b)
		assert.Equal(t, distance(tt.b, tt.a), tt.want, "distance", tt.b, tt.a)
	}
}

func TestShownIsBounded(t *testing.T) {
	assert.Equal(t, shown(strings.Repeat("ü", 100)), `"`+strings.Repeat("ü", 30)+`"... (200 bytes)`, "shown")
}
