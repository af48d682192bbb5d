package main

import (
	"testing"
	"time"
)

func TestUnits(t *testing.T) {
	tests := []struct{ got, want string }{
		{grouped(0), "0"}, {grouped(-5), "0"}, {grouped(999), "999"}, {grouped(1000), "1,000"},
		{grouped(uint64(1234567)), "1,234,567"},
		{plural(1, "page"), "1 page"}, {plural(0, "page"), "0 pages"}, {plural(uint64(1200), "URL"), "1,200 URLs"},
		{size(uint64(0)), "0 B"}, {size(uint64(1023)), "1023 B"}, {size(uint64(1024)), "1.0 KiB"},
		{size(uint64(1 << 20)), "1.0 MiB"},
		{size(1<<20 - 1.0), "1.0 MiB"}, {size(uint64(5 << 50)), "5120.0 TiB"},
		{span(-time.Second), "0s"}, {span(1400 * time.Millisecond), "1s"}, {span(59600 * time.Millisecond), "1m 0s"},
		{span(125 * time.Second), "2m 5s"},
		{span(3840 * time.Second), "1h 4m"}, {span(74 * time.Hour), "3d 2h"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.Local)
	if got := instantText(now.Add(time.Hour), now); got != "13:00:00" {
		t.Error(got)
	}
	if got := instantText(now.Add(24*time.Hour), now); got != "2026-11-22 12:00" {
		t.Error(got)
	}
}
