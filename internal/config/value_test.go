package config

import (
	"strings"
	"testing"
	"time"
)

func TestParseByteSize(t *testing.T) {
	good := map[string]ByteSize{
		"0": 0, "1": 1, "4096": 4096, "7B": 7, "1KB": 1000, "1KiB": 1024, "2 MiB": 2 * MiB, "10mib": 10 * MiB,
		"3GB": 3e9, "1GiB": GiB, "2TiB": 2 * TiB, "1TB": 1e12, "9223372036854775807": 1<<63 - 1,
	}
	for text, want := range good {
		got, err := ParseByteSize(text)
		if err != nil || got != want {
			t.Errorf("ParseByteSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "+1", "1.5MiB", "1M", "1 2", "1MiBs", "9223372036854775808",
		"9007199254740992KiB", "1e3", "1\nKiB"} {
		if got, err := ParseByteSize(text); err == nil {
			t.Errorf("ParseByteSize(%q) = %d, want an error", text, got)
		}
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
		if size < 0 {
			t.Fatalf("ParseByteSize(%q) = %d", text, size)
		}
		if again, err := ParseByteSize(size.String()); err != nil || again != size {
			t.Errorf("%d is written %q and read back as %d, %v", size, size, again, err)
		}
	})
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", time.Minute: "1m", time.Hour: "1h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", 250 * time.Millisecond: "250ms", 100 * time.Minute: "1h40m",
		20 * time.Second: "20s",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("formatDuration(%v) = %q, want %q", d, got, want)
		}
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
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := distance(tt.b, tt.a); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

func TestShownIsBounded(t *testing.T) {
	if got := shown(strings.Repeat("ü", 100)); got != `"`+strings.Repeat("ü", 30)+`"... (200 bytes)` {
		t.Errorf("shown = %s", got)
	}
}
