package main

import (
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/node"
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
		o := node.DefaultOptions(crawl.DefaultOptions())
		o.Crawl.Workers, o.Crawl.Fetch.MaxIdleConns = 4, 256
		text := ""
		err := checkDescriptors(limit, &o, func(s string) { text = s })
		if o.MaxOpen != want.open || !strings.Contains(text, want.text) || (text == "") != (want.text == "") ||
			(err != nil) != want.failed {
			t.Errorf("with %d: %d may be open, %q, %v; want %+v", limit, o.MaxOpen, text, err, want)
		}
	}
}
