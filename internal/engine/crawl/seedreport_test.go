package crawl

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/disk"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestSeedReport: a run whose seeds all failed says so, and of each why; one seed that was fetched,
// or may yet be, is enough.
func TestSeedReport(t *testing.T) {
	t.Parallel()
	sites := []testweb.Site{
		{Host: "fine.test",
			Handler: testweb.Routes{"/": testweb.Page("fine"), "/moved": testweb.Redirect(301, "/"),
				"/astray": testweb.Redirect(301, "/gone")}},
		site("closed.test", "User-agent: *\nDisallow: /\n", nil, nil),
		site("denied.test", "User-agent: *\nDisallow: /x\n", []string{"/x"}, nil),
		{Host: "robots.test", Handler: testweb.Routes{"/robots.txt": testweb.Status(500)}},
		site("broken.test", "", nil, testweb.Routes{"/": testweb.Status(503)}),
	}
	for _, c := range []struct {
		name  string
		seeds []string // those of the sites without scheme and port
		want  string   // the first reason; empty: the seeds have not failed
		state string
	}{
		{"fetched", []string{"fine.test/"}, "", ""},
		{"redirected", []string{"fine.test/moved"}, "", ""},
		{"redirected to nothing", []string{"fine.test/astray"}, "", "redirected"},
		{"404", []string{"fine.test/gone"}, "status 404", "failed"},
		{"one of two", []string{"fine.test/gone", "fine.test/"}, "", ""},
		{"two of two", []string{"fine.test/gone", "denied.test/x"}, "status 404", "failed"},
		{"denied", []string{"denied.test/x"}, "robots", "denied"},
		{"held", []string{"closed.test/"}, "robots.txt: rule", "queued"},
		{"robots.txt fails", []string{"robots.test/"}, "status 500", "queued"},
		{"503", []string{"broken.test/"}, "status 503", "retrying"},
		{"refused", []string{"http://127.0.0.1:8099/"}, "refused", "queued"},
		{"no such name", []string{"http://nowhere.invalid/"}, "dns_not_found", "queued"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				web := serve(sites...)
				o := testOptions(t, web)
				o.GiveUpAfter = 500 * time.Millisecond
				var seeds []string
				for _, text := range c.seeds {
					if !strings.Contains(text, "://") {
						host, path, _ := strings.Cut(text, "/")
						text = web.URL(host, "/"+path)
					}
					seeds = append(seeds, text)
				}
				sum := crawl(t, o, seeds...)
				again := crawl(t, o) // a later run without seeds says the same of those that are known
				for _, s := range []SeedReport{sum.Seeds, again.Seeds} {
					failed := c.want != "" || c.state != ""
					must.True(t, s.Failed == failed, "%+v", s)
					if failed &&
						(s.Total != len(c.seeds) ||
							!slices.ContainsFunc(s.First,
								func(f SeedResult) bool { return f.Reason == c.want && f.State == c.state })) {
						t.Errorf("%+v, want %q, %q", s, c.state, c.want)
					}
				}
			})
		})
	}
}

// TestFirstErrors: the log says the first error of each kind at once, with its cause, and no other.
func TestFirstErrors(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(
			testweb.Site{Host: "a.test", Handler: testweb.Routes{"/robots.txt": testweb.Status(503)}},
			testweb.Site{Host: "b.test", Handler: testweb.Routes{"/robots.txt": testweb.Status(503)}},
			site("fine.test", "", nil, nil))
		o := testOptions(t, web)
		o.GiveUpAfter = time.Minute
		var text bytes.Buffer
		e := must.Get(Open(o, slog.New(slog.NewTextHandler(&text, nil))))(t)
		runToEnd(t, e, web.URL("a.test", "/"), web.URL("b.test", "/"), web.URL("fine.test", "/"),
			web.URL("fine.test", "/404"), "http://nowhere.invalid/", "http://noname.invalid/",
			"http://127.0.0.1:8099/", "http://127.0.0.2:8099/")
		var said []string
		for line := range strings.Lines(text.String()) {
			if strings.Contains(line, "a request failed") || strings.Contains(line, "cannot resolve") {
				said = append(said, line)
			}
		}
		all := strings.Join(said, "")
		assert.True(t, len(said) == 3 && strings.Contains(all, "status=503") &&
			strings.Contains(all, "dns not found") && strings.Contains(all, "refused"), "the log says\n%s", all)
	})
}

// TestGivenUpByReason counts the URLs that a run gave up.
func TestGivenUpByReason(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		routes := testweb.Routes{"/": testweb.Page("root", "/1", "/2", "/410", "/loop"), "/410": testweb.Status(410),
			"/loop": testweb.Redirect(301, "/loop")}
		web := serve(testweb.Site{Host: "a.test", Handler: routes})
		sum := crawl(t, testOptions(t, web), web.URL("a.test", "/"))
		got := sum.Status.Failed
		assert.True(t, len(got) == 3 && got["status 404"] == 2 && got["status 410"] == 1 && got["loop"] == 1, "%v", got)
	})
}

// TestCrawlWithoutSeeds waits, says for what, and takes URLs.
func TestCrawlWithoutSeeds(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", nil, nil))
		o := testOptions(t, web)
		assert.Fails(crawlFor(t, o, time.Minute))(t, ErrNothing, "one that is to end")
		o.Mode = 3 // any
		e, stop := daemon(t, o)
		testkit.Until(t, "it waits",
			func() bool { s := e.Status(); return s.State == "running" && s.Reason == waitsForURLs })
		sum, err := e.Add(t.Context(), additions(t, web.URL("a.test", "/")))
		must.True(t, err == nil && sum.Added == 1, "%v %v", sum, err)
		testkit.Until(t, "the page is fetched", func() bool { return e.store.Counters().Of(storage.Fetched) == 1 })
		testkit.Until(t, "it waits again", func() bool { return e.Status().Reason == waitsForURLs })
		if sum := stop(); sum.Seeds.Failed {
			t.Errorf("%+v", sum.Seeds)
		}
	})
}

// TestStallHasABegin: the status of a crawl that stands still says since when it does.
func TestStallHasABegin(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", nil, nil))
		e, d := fillable(t, web)
		testkit.Until(t, "it is reported to run", func() bool { return e.Status().State == "running" })
		before := time.Now()
		d.full.Store(true)
		go func() { _, _ = e.Add(t.Context(), additions(t, web.URL("a.test", "/1"))) }()
		testkit.Until(t, "it stands still", func() bool { return e.Status().State == "stalled" })
		first := e.Status()
		assert.True(t, !first.Since.Before(before) && first.Since.After(first.Started),
			"started %v, full %v, stalled since %v", first.Started, before, first.Since)
		testkit.Until(t, "it is reported again", func() bool { return e.Status().At.After(first.At) })
		s := e.Status()
		assert.True(t, s.Since.Equal(first.Since), "stalled since %v, a moment later since %v", first.Since, s.Since)
		d.full.Store(false)
		testkit.Until(t, "it runs again",
			func() bool { s := e.Status(); return s.State == "running" && s.Since.After(first.Since) })
	})
}

// TestFullOutputNamesItself: what is said of an output file that cannot be written does not speak
// of the database.
func TestFullOutputNamesItself(t *testing.T) {
	var d testDisk
	d.full.Store(true)
	err := disk.OutputError(d.write())
	assert.True(t, errors.Is(err, storage.ErrNoSpace) && !strings.Contains(err.Error(), "database"), "%v", err)
}

// TestWhyAHostIsBusy: a host whose name is looked up says so, and one that cannot be reached says why.
func TestWhyAHostIsBusy(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", nil, nil))
		o := testOptions(t, web)
		o.Fetch.ResolveTimeout = time.Hour
		hang, err := net.ListenPacket("udp", "127.0.0.1:0") // answers nothing
		must.Do(t, err)
		defer hang.Close()
		o.Fetch.Resolver = hang.LocalAddr().String()
		o.ShutdownGrace = 0
		e, _ := daemon(t, o, web.URL("a.test", "/"))
		testkit.Until(t, "the name is looked up", func() bool {
			h, err := e.View().Host(t.Context(), "a.test")
			return err == nil && h.State == inspect.HostBusy && h.Reason == "lookup"
		})
		o = testOptions(t, web)
		e, stop := daemon(t, o, "http://nowhere.invalid/")
		failing := func(v *inspect.View) bool {
			h, err := v.Host(t.Context(), "nowhere.invalid")
			return err == nil && h.LastFailure == "dns_not_found" && !h.FailingSince.IsZero()
		}
		testkit.Until(t, "the lookup failed", func() bool { return failing(e.View()) })
		testkit.Until(t, "it is counted", func() bool { return e.Status().Errors["dns_not_found"] > 0 })
		stop()
		s := must.Get(storage.Open(o.DataDir, storage.Options{ReadOnly: true}))(t)
		defer s.Close()
		fo := o.Frontier
		if v := inspect.New(s,
			inspect.Options{Politeness: fo.HostPoliteness(), Robots: fo.Robots, Tokens: fo.Tokens, Obey: true,
				Now: time.Now}); !failing(v) {
			t.Error("the database does not say why")
		}
	})
}

// TestRecrawlsAreCounted apart from pages that are new.
func TestRecrawlsAreCounted(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 3), nil))
		o := recrawling(t, web)
		e, stop := daemon(t, o, web.URL("a.test", "/"))
		testkit.Until(t, "pages are requested again", func() bool { return e.tally.Recrawls.Load() >= 4 })
		sum := stop()
		pages := web.Requests().Pages()
		first := slices.Compact(slices.Sorted(func(yield func(string) bool) {
			for _, q := range pages {
				if !yield(q.Path) {
					return
				}
			}
		}))
		assert.Equal(t, int(sum.Status.Run.Recrawls), len(pages)-len(first), sum.Status.Run.Recrawls,
			"recrawls, the web saw")
	})
}
