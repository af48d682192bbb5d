//go:build !core

package main

import (
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// TestDescriptorsOfCrawls: no more crawls of clients may be open than there are descriptors for.
func TestDescriptorsOfCrawls(t *testing.T) {
	for limit, want := range map[int]struct {
		open   int
		text   string
		failed bool
	}{
		100_000: {open: 200},
		400:     {6, "6 crawls besides DEFAULT may be open at a time, and not 200; raise the limit", false},
		82:      {1, "1 crawl besides DEFAULT", false}, 81: {open: 1, failed: true},
	} {
		o, c := crawl.DefaultOptions(), new(clientCrawls)
		o.Workers, o.Fetch.MaxIdleConns = 4, 256
		text := ""
		err := checkDescriptors(limit, &o, c, func(s string) { text = s })
		if c.maxOpen != want.open || !strings.Contains(text, want.text) || (text == "") != (want.text == "") ||
			(err != nil) != want.failed {
			t.Errorf("with %d: %d may be open, %q, %v; want %+v", limit, c.maxOpen, text, err, want)
		}
	}
}
