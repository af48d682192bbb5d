package config

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/rules/expensive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// The defaults of this package are those of the engine and of the frontier.
func TestDefaultsAgreeWithTheEngine(t *testing.T) {
	c := Default()
	got := must.Get(c.CrawlOptions("1.2"))(t)
	want := crawl.DefaultOptions()
	want.Frontier.Politeness.AdaptiveFactor = adaptiveFactor // the engine has no default that depends on the delay
	want.Frontier.Politeness.IPRate = ipRate                 // nor one that depends on who calls it
	assert.True(t, got.Frontier.Deliver != nil && got.Frontier.Deliver(netip.MustParseAddr("104.16.0.1")),
		"the delivery networks are unknown")
	got.Frontier.Deliver = nil
	want.Version, want.DataDir, want.Archive.Dir, want.Fetch.UserAgent = "1.2", "./data", "data/output", "amble/1.2"
	want.Archive = c.ArchiveOptions("1.2")           // held to its package's by a test of its own
	got.Archive.Known, want.Archive.Known = nil, nil // functions are not compared
	got.Requisites.Find, want.Requisites.Find = nil, nil
	assert.Deep(t, got, want, "crawl its own defaults")
	got.Archive = c.ArchiveOptions("1.2")
	must.Do(t, got.Validate())
}

// What passes the check of a config file passes the engine's, at both ends of what is allowed, and
// no number is cut on the way.
func TestEndsReachTheEngine(t *testing.T) {
	least := must.Get(inFile(t, "", []string{"crawl.workers=0", "crawl.give_up_after=0", "crawl.shutdown_grace=0",
		"crawl.max_pages=0",
		"fetch.max_redirects=0", "retry.max_attempts=1", "retry.delay=1ms"}, nil))(t)
	o, err := least.CrawlOptions("1")
	assert.True(t, err == nil && o.Validate() == nil, "least: %v, %v", err, o.Validate())
	most := must.Get(inFile(t, "", []string{"crawl.workers=4096", "crawl.max_rate=100000",
		"fetch.bandwidth=1TiB", "politeness.host_bandwidth=1TiB", "crawl.max_pages=1000000000000000",
		"crawl.max_depth=65535",
		"fetch.max_redirects=50", "retry.max_attempts=100", "retry.delay=24h"}, nil))(t)
	if o, err = most.CrawlOptions("1"); err != nil || o.Validate() != nil {
		t.Errorf("most: %v, %v", err, o.Validate())
	}
	f := o.Frontier
	assert.True(t, o.Workers == 4096 && o.MaxPages == 1e15 && f.MaxDepth == 65535 && f.MaxRedirects == 50 &&
		f.MaxAttempts == 100 && f.RetryDelay == 24*time.Hour, "%+v", o)
}

func TestCrawlOptionsCarryTheSettings(t *testing.T) {
	c := must.Get(inFile(t, "", []string{"data_dir=/d", "crawl.exit_when_done=false", "crawl.give_up_after=3s",
		"crawl.shutdown_grace=4s",
		"scope.mode=prefix", "scope.include=^http,\\.html$", "scope.exclude=/private/",
		"robots.product_token=shopbot", "robots.obey=false",
		"politeness.delay=5s", "output.dir=/o", "output.format=none", "fetch.timeout=6s",
		"limits.host_pages=7", "limits.domain_pages=8", "limits.session=9", "traps.path_depth=10",
		"traps.repeated_segments=11", "traps.query_parameters=12",
		"traps.calendar=false", "traps.refresh=false", "traps.expensive=last", "traps.maze_pages=16",
		"traps.session_names=visitid,sess*", "traps.queries_per_path=13",
		"traps.same_digest=14",
		"limits.host_urls=15", "storage.max_size=1GiB", "storage.min_free=2GiB", "audit.max_size=3GiB", "audit.keep=4h",
		"crawl.max_rate=2.5", "fetch.bandwidth=3MiB", "politeness.host_bandwidth=4KiB"}, nil))(t)
	o := must.Get(c.CrawlOptions("1.2"))(t)
	f := o.Frontier
	switch {
	case o.DataDir != "/d", o.ExitWhenDone, o.GiveUpAfter != 3*time.Second, o.ShutdownGrace != 4*time.Second,
		o.Mode != frontier.ModePrefix, len(o.Include) != 2, o.Include[1].String() != `\.html$`, len(o.Exclude) != 1,
		f.Tokens[0] != "shopbot", f.Obey, f.Politeness.Delay != 5*time.Second,
		o.Archive.Dir != "/o", o.Archive.Formats[0] != "none", o.Fetch.Timeout != 6*time.Second,
		o.Fetch.UserAgent != "shopbot/1.2":
		t.Errorf("%+v", o)
	}
	assert.True(t, o.MaxRate == 2.5 && o.Bandwidth == 3<<20 && f.Politeness.Bandwidth == 4<<10, "%+v", o)
	names := append(frontier.SessionNames(), "visitid", "sess*")
	switch {
	case o.Requests != (requestlog.Options{MaxSize: 3 << 30, Keep: 4 * time.Hour}), f.HostBudget != 7,
		f.DomainBudget != 8, f.Session != 9,
		!reflect.DeepEqual(o.Storage, storage.Options{MaxBytes: 1 << 30, MaxHostURLs: 15, MaxQueries: 13,
			MaxSameDigest: 14}), o.MinFree != 2<<30,
		o.Traps != frontier.TrapOptions{PathDepth: 10, RepeatedSegments: 11, QueryParameters: 12,
			MazePages: 16, Expensive: expensive.Last},
		!slices.Equal(o.SessionNames, names):
		t.Errorf("%+v", o)
	}
}

func TestSessionIDsSwitchedOff(t *testing.T) {
	c := Default()
	c.Traps.SessionIDs, c.Traps.SessionNames = false, []string{"visitid"}
	o, err := c.CrawlOptions("1")
	assert.True(t, err == nil && len(o.SessionNames) == 0, "%q, %v", o.SessionNames, err)
}

// A Config that did not come from Load is refused, not misunderstood.
func TestCrawlOptionsRefuse(t *testing.T) {
	tests := []struct {
		spoil func(*Config)
		want  string
	}{
		{func(c *Config) { c.Scope.Mode = "galaxy" }, "galaxy"},
		{func(c *Config) { c.Scope.Include = []string{"a", "("} }, "scope.include, item 2"},
		{func(c *Config) { c.Scope.Exclude = []string{"["} }, "scope.exclude, item 1"},
	}
	for _, tt := range tests {
		c := Default()
		tt.spoil(&c)
		if _, err := c.CrawlOptions("1"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want an error that names %s", err, tt.want)
		}
	}
}

func TestURLRules(t *testing.T) {
	c := must.Get(inFile(t, "", []string{"urls.strip_parameters=utm_*,gclid", "urls.sort_query=true",
		"urls.drop_empty_query=true", "urls.collapse_slashes=true",
		"urls.normalize_escapes=true", "urls.max_length=100"}, nil))(t)
	o, err := c.CrawlOptions("1")
	want := weburl.Rules{StripParameters: []string{"utm_*", "gclid"}, SortQuery: true, DropEmptyQuery: true,
		CollapseSlashes: true, NormalizeEscapes: true, MaxLength: 100}
	assert.True(t, err == nil && reflect.DeepEqual(o.URLs, want), "%v, %+v", err, o.URLs)
	usual := Default()
	if o, err := usual.CrawlOptions("1"); err != nil ||
		!reflect.DeepEqual(o.URLs, weburl.Rules{MaxLength: weburl.MaxLength}) {
		t.Errorf("%v, %+v", err, o.URLs)
	}
}
