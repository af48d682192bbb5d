package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/extract"
)

func TestExtractAndSitemapOptions(t *testing.T) {
	c := Default()
	o, err := c.CrawlOptions("1")
	if err != nil {
		t.Fatal(err)
	}
	if usual := crawl.DefaultOptions(); !reflect.DeepEqual(o.Extract, usual.Extract) || o.Sitemaps != usual.Sitemaps || o.NoFollow != usual.NoFollow {
		t.Errorf("%+v, %+v, nofollow %v are not the defaults", o.Extract, o.Sitemaps, o.NoFollow)
	}
	other, err := inFile(t, "", []string{"extract.media=true", "extract.forms=true", "extract.max_links=7", "extract.max_depth=8", "robots.obey_nofollow=false",
		"sitemaps.follow=false", "sitemaps.guess=true", "sitemaps.feeds=false", "sitemaps.max_urls=9", "sitemaps.max_size=2MiB"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err = other.CrawlOptions("1")
	want := crawl.SitemapOptions{Guess: true, Lists: extract.ListOptions{MaxItems: 9, MaxBytes: 2 << 20, Media: true}}
	if err != nil || !o.Extract.Media || !o.Extract.Forms || o.Extract.MaxLinks != 7 || o.Extract.MaxDepth != 8 || o.Sitemaps != want || o.NoFollow {
		t.Errorf("%v, %+v, %+v", err, o.Extract, o.Sitemaps)
	}
	if warnings := other.Warnings(); len(warnings) == 0 || !strings.Contains(warnings[0], "robots.obey_nofollow is false: ") {
		t.Errorf("warnings %q", warnings)
	}
}
