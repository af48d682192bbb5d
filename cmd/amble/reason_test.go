package main

import (
	"testing"

	"github.com/amble-crawler/amble/internal/inspect"
)

// Every reason has words.
func TestReasonTexts(t *testing.T) {
	texts := reasonTexts()
	for _, name := range inspect.ReasonNames() {
		if texts[name] == "" {
			t.Errorf("%s has no text", name)
		}
		delete(texts, name)
	}
	if len(texts) > 0 {
		t.Errorf("no reasons: %v", texts)
	}
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
		if got := countsText(tt.counts); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.counts, got, tt.want)
		}
	}
}
