package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

func TestExtractAndSitemapOptions(t *testing.T) {
	c := Default()
	o, err := c.CrawlOptions("1")
	must.Do(t, err)
	if usual := crawl.DefaultOptions(); !reflect.DeepEqual(o.Extract, usual.Extract) ||
		o.Sitemaps != usual.Sitemaps || o.NoFollow != usual.NoFollow {
		t.Errorf("%+v, %+v, nofollow %v are not the defaults", o.Extract, o.Sitemaps, o.NoFollow)
	}
	other, err := inFile(t, "", []string{"extract.media=true", "extract.forms=true", "extract.max_links=7",
		"extract.max_depth=8", "robots.obey_nofollow=false",
		"sitemaps.follow=false", "sitemaps.guess=true", "sitemaps.feeds=false", "sitemaps.max_urls=9",
		"sitemaps.max_size=2MiB"}, nil)
	must.Do(t, err)
	o, err = other.CrawlOptions("1")
	want := crawl.SitemapOptions{Guess: true, Lists: extract.ListOptions{MaxItems: 9, MaxBytes: 2 << 20, Media: true}}
	assert.True(t, err == nil && o.Extract.Media && o.Extract.Forms && o.Extract.MaxLinks == 7 &&
		o.Extract.MaxDepth == 8 && o.Sitemaps == want && !o.NoFollow, "%v, %+v, %+v", err, o.Extract, o.Sitemaps)
	warnings := other.Warnings()
	assert.True(t, len(warnings) != 0 && strings.Contains(warnings[0], "robots.obey_nofollow is false: "),
		"warnings %q", warnings)
}

func TestExtractRules(t *testing.T) {
	const text = `[{hosts: ["*.Example.COM"], pattern: "^/item", links: ["main a, b"], ignore: [nav], fields: {Price: ".price", tags: "a[rel=\"tag\"]*"}}, {pattern: a, ignore: ["x"]}]`
	for name, load := range map[string]func() (*Config, error){
		"set":  func() (*Config, error) { return inFile(t, "", []string{"extract.rules=" + text}, nil) },
		"file": func() (*Config, error) { return inFile(t, "extract: {rules: "+text+"}", nil, nil) },
		"patch": func() (*Config, error) {
			patch, err := PatchOf([]string{"extract.rules=" + text})
			if err != nil {
				return nil, err
			}
			body, err := json.Marshal(patch)
			if err != nil {
				return nil, err
			}
			return LoadPatched(writeFile(t, ""), nil, nil, body)
		},
	} {
		c, err := load()
		must.Do(t, err, name)
		want := []ExtractRule{
			{Hosts: []string{"*.Example.COM"}, Pattern: "^/item", Links: []string{"main a, b"}, Ignore: []string{"nav"},
				Fields: map[string]string{"Price": ".price", "tags": `a[rel="tag"]*`}},
			{Pattern: "a", Ignore: []string{"x"}},
		}
		assert.Deep(t, c.Extract.Rules, want, name)
		o, err := c.CrawlOptions("1")
		must.True(t, err == nil && len(o.Extract.Rules) == 2, "%s: %v, %d rules", name, err, len(o.Extract.Rules))
		base := must.Get(weburl.Parse("http://www.example.com/item"))(t)
		p, err := extract.HTML([]byte("<p class=price>9"), nil, base, nil, o.Extract)
		assert.True(t, err == nil && p.Fields["Price"] == "9", "%s: %v, fields %v", name, err, p.Fields)
	}
}
