package crawl

import (
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/testweb"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// liftStore has URLs of one host, each settled in another way; the path says how.
func liftStore(t *testing.T, dir string) store {
	t.Helper()
	s, err := storage.Open(dir, storage.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var b storage.Batch
	put := func(path string, depth uint16, redirects uint8, o storage.Outcome) {
		u := parse(t, "http://a.test"+path)
		b.Done = append(b.Done, storage.Done{Host: 1, Ordinal: uint32(len(b.Found)), Outcome: o})
		b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), Depth: depth, Redirects: redirects})
	}
	for k := fetch.Kind(0); !strings.HasPrefix(k.String(), "kind_"); k++ {
		attempts := uint8(0)
		if k.Temporary() {
			attempts = 3
		}
		put("/"+k.String(), 0, 0, storage.Outcome{State: storage.Failed, Reason: reasonOf(k), Attempts: attempts})
	}
	failed := func(r storage.Reason, status uint16, attempts uint8) storage.Outcome {
		return storage.Outcome{State: storage.Failed, Reason: r, Status: status, Attempts: attempts}
	}
	put("/401", 0, 0, failed(storage.ReasonStatus, 401, 0))
	put("/404", 0, 0, failed(storage.ReasonStatus, 404, 3)) // recrawls that found it gone
	put("/503", 0, 0, failed(storage.ReasonStatus, 503, 3))
	put("/503-often", 0, 0, failed(storage.ReasonStatus, 503, 9))
	put("/redirects", 0, 5, failed(storage.ReasonRedirects, 301, 0))
	put("/redirects-many", 0, 7, failed(storage.ReasonRedirects, 301, 0))
	put("/loop", 0, 0, failed(storage.ReasonLoop, 302, 0))
	put("/location", 0, 0, failed(storage.ReasonLocation, 302, 0))
	put("/denied/1", 0, 0, storage.Outcome{State: storage.Denied, Reason: storage.ReasonRobots})
	put("/news/1", 0, 0, storage.Outcome{State: storage.Denied, Reason: storage.ReasonRobots})
	put("/scope/1", 0, 0, storage.Outcome{State: storage.Excluded, Reason: storage.ReasonScope})
	put("/scope/x/1", 0, 0, storage.Outcome{State: storage.Excluded, Reason: storage.ReasonScope})
	put("/target", 0, 0, storage.Outcome{State: storage.Redirected, Reason: storage.ReasonScope, Status: 301})
	put("/depth3", 3, 0, storage.Outcome{State: storage.Excluded, Reason: storage.ReasonDepth})
	put("/depth9", 9, 0, storage.Outcome{State: storage.Excluded, Reason: storage.ReasonDepth})
	put("/dropped", 0, 0, storage.Outcome{State: storage.Excluded, Reason: storage.ReasonOperator})
	put("/fetched", 0, 0, storage.Outcome{State: storage.Fetched, Status: 200})
	put("/moved", 0, 0, storage.Outcome{State: storage.Redirected, Status: 301})
	record, _ := robots.DefaultOptions().Next(robots.Record{}, robots.Outcome{
		URL: "http://a.test/robots.txt", Status: 200, Body: []byte("User-agent: *\nDisallow: /\nUser-agent: news\nDisallow: /denied/\n"),
	}, time.Now())
	encoded, err := record.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Policies = []storage.Policy{{Origin: parse(t, "http://a.test/").Origin(), Record: encoded}}
	if _, err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLifts changes one setting after the other, and looks at which URLs are offered again.
func TestLifts(t *testing.T) {
	const (
		names   = "dns_not_found dns_failure dns_timeout blocked_address"
		reaches = names + " refused unreachable connect_timeout proxy"
	)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	writeCA := func(text string) {
		if err := os.WriteFile(ca, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ranges := func(texts ...string) (list []netip.Prefix) {
		for _, text := range texts {
			list = append(list, netip.MustParsePrefix(text))
		}
		return list
	}
	credential, err := fetch.ParseCredential("http://a.test basic me:secret")
	if err != nil {
		t.Fatal(err)
	}
	other, err := fetch.ParseCredential("http://b.test basic me:secret")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name          string
		before, after func(o *Options)
		want, back    string // paths that are offered by the change, and by the one back
	}{
		{"nothing", nil, nil, "", ""},
		{"allow_private", nil, func(o *Options) { o.Fetch.AllowPrivate = true }, "blocked_address", ""},
		{"allow_addresses", func(o *Options) { o.Fetch.AllowRanges = ranges("10.0.0.0/8") },
			func(o *Options) { o.Fetch.AllowRanges = ranges("10.0.0.0/8", "192.168.0.0/16") }, "blocked_address", ""},
		{"deny_addresses", func(o *Options) { o.Fetch.DenyRanges = ranges("10.0.0.0/8") }, nil, "blocked_address", ""},
		{"ports to all", func(o *Options) { o.Fetch.Ports = []uint16{80} }, nil, "blocked_address", "blocked_address"},
		{"another port", func(o *Options) { o.Fetch.Ports = []uint16{80} }, func(o *Options) { o.Fetch.Ports = []uint16{80, 443} }, "blocked_address", "blocked_address"},
		{"resolver", nil, func(o *Options) { o.Fetch.Resolver = "192.0.2.1:53" }, names, names},
		{"family", nil, func(o *Options) { o.Fetch.Family = fetch.IPv6Only }, reaches, reaches},
		{"proxy", nil, func(o *Options) { o.Fetch.Proxy = "http://192.0.2.1:3128" }, reaches, reaches},
		{"tls_ca_file", func(o *Options) { writeCA("one"); o.Fetch.CAFile = ca }, func(o *Options) { writeCA("two"); o.Fetch.CAFile = ca }, "certificate", "certificate"},
		{"auth of the host", nil, func(o *Options) { o.Fetch.Credentials = []fetch.Credential{credential} }, "401", ""},
		{"auth of another", nil, func(o *Options) { o.Fetch.Credentials = []fetch.Credential{other} }, "", ""},
		{"cookies", nil, func(o *Options) { o.Fetch.CookieHosts = []fetch.HostPattern{"a.test"} }, "loop", ""},
		{"content_types", func(o *Options) { o.Fetch.ContentTypes = []string{"text/*"} }, nil, "type_not_wanted", ""},
		{"max_header", nil, func(o *Options) { o.Fetch.MaxHeader *= 2 }, "header_too_large", ""},
		{"max_redirects", nil, func(o *Options) { o.Frontier.MaxRedirects = 6 }, "redirects", ""},
		{"timeout", nil, func(o *Options) { o.Fetch.Timeout *= 2 }, "connect_timeout tls_timeout header_timeout body_timeout", ""},
		{"connect_timeout", nil, func(o *Options) { o.Fetch.ConnectTimeout *= 2 }, "connect_timeout tls_timeout", ""},
		{"header_timeout", nil, func(o *Options) { o.Fetch.HeaderTimeout *= 2 }, "header_timeout", ""},
		{"idle_timeout", nil, func(o *Options) { o.Fetch.BodyIdleTimeout *= 2 }, "body_timeout", ""},
		{"min_rate", nil, func(o *Options) { o.Fetch.MinRate /= 2 }, "too_slow", ""},
		{"resolve_timeout", nil, func(o *Options) { o.Fetch.ResolveTimeout *= 2 }, "dns_timeout", ""},
		{"max_attempts", func(o *Options) { o.Frontier.MaxAttempts = 3 }, func(o *Options) { o.Frontier.MaxAttempts = 4 },
			"canceled dns_failure dns_timeout refused unreachable connect_timeout tls tls_timeout reset closed lost_on_reuse header_timeout body_timeout incomplete_body local proxy too_slow 503", ""},
		{"max_depth", func(o *Options) { o.Frontier.MaxDepth = 2 }, func(o *Options) { o.Frontier.MaxDepth = 4 }, "depth3", ""},
		{"max_depth to none", func(o *Options) { o.Frontier.MaxDepth = 2 }, nil, "depth3 depth9", ""},
		{"scope wider", func(o *Options) { o.Exclude = patternList("/scope/") }, func(o *Options) { o.Exclude = patternList("/scope/x/") }, "scope/1 target", "target"},
		{"scope.mode", func(o *Options) { o.Mode = frontier.ModePrefix }, func(o *Options) { o.Mode = frontier.ModeHost }, "scope/1 scope/x/1 target", "target"},
		{"obey", nil, func(o *Options) { o.Frontier.Obey = false }, "denied/1 news/1", ""},
		{"product_token", nil, func(o *Options) { o.Frontier.Tokens = []string{"news", "amble"} }, "news/1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := DefaultOptions()
			o.DataDir = t.TempDir()
			s := liftStore(t, o.DataDir)
			offered := func(kept settingValues, change func(*Options)) (paths []string, now settingValues) {
				o := o
				if change != nil {
					change(&o)
				}
				o.fill()
				initial, err := newInitialScope(s, &o, []Seed{{URL: parse(t, "http://a.test/seeds/")}})
				if err != nil {
					t.Fatal(err)
				}
				source := liftSource{
					o: &o, live: newInForce(&o, o.Live()), scope: initial.scope, seeds: initial.seeds,
					rules: &rulesReader{store: s, log: testLog(t), tokens: o.Frontier.Tokens},
				}
				lifts := source.lifts()
				lifted, _ := kept.lifted(lifts, s.Counters())
				w, err := newRetry(s, retryCommand{Lifted: lifted}, lifts)
				if err != nil {
					t.Fatal(err)
				}
				page, end, err := w.step(t.Context(), s, testLog(t), time.Now())
				if err != nil || !end {
					t.Fatal(end, err)
				}
				for i := range page {
					u, err := s.URL(1, page[i].Ordinal)
					if err != nil {
						t.Fatal(err)
					}
					paths = append(paths, u.RequestURI()[1:])
				}
				return paths, valuesOf(lifts)
			}
			_, first := offered(nil, c.before)
			paths, second := offered(first, c.after)
			back, _ := offered(second, c.before)
			for _, x := range []struct{ got, want []string }{{paths, strings.Fields(c.want)}, {back, strings.Fields(c.back)}} {
				if slices.Sort(x.got); !slices.Equal(x.got, slices.Sorted(slices.Values(x.want))) {
					t.Errorf("offered again: %q, want %q", x.got, x.want)
				}
			}
			if none, _ := offered(nil, c.after); len(none) > 0 {
				t.Errorf("a store that kept no settings offers %q", none)
			}
		})
	}
}

func patternList(texts ...string) (list []*regexp.Regexp) {
	for _, text := range texts {
		list = append(list, regexp.MustCompile(text))
	}
	return list
}

// TestEverySettingIsKept: the settings that decide are kept under their own names.
func TestEverySettingIsKept(t *testing.T) {
	o := DefaultOptions()
	source := liftSource{
		o: &o, live: newInForce(&o, o.Live()), scope: frontier.NewScope(frontier.ModeHost, nil, nil),
		rules: new(rulesReader),
	}
	if names := slices.Sorted(maps.Keys(valuesOf(source.lifts()))); len(names) != len(source.lifts()) {
		t.Errorf("two lifts have one name: %q", names)
	}
}

// TestLongLists: a list that is too long to be kept counts as another one when it is.
func TestLongLists(t *testing.T) {
	var ports []uint16
	for i := range uint16(2000) {
		ports = append(ports, i+1)
	}
	long, longer := listed(ports[:1999]), listed(ports)
	if len(long) > 100 || !gains(long, longer) || !gains(listed(ports[:3]), long) || !loses(long, longer) || opens("", long) {
		t.Errorf("%q, %q", long, longer)
	}
}

// TestSettingsOfferAgain: what a run could not reach is fetched by the next, once a setting allows it, and nothing is fetched twice.
func TestSettingsOfferAgain(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/", 5), nil))
		o := testOptions(t, web)
		o.Fetch.AllowPrivate = false
		sum := crawl(t, o, web.URL("a.test", "/"))
		if sum.Status.URLs["failed"] != 1 || len(web.Requests()) > 0 {
			t.Fatalf("URLs: %v, %d requests", sum.Status.URLs, len(web.Requests()))
		}
		if sum = crawl(t, o, web.URL("a.test", "/")); len(web.Requests()) > 0 || sum.Fresh {
			t.Fatalf("with the same settings: %+v", sum)
		}
		o.Fetch.AllowPrivate = true
		if sum = crawl(t, o, web.URL("a.test", "/")); sum.Status.URLs["fetched"] != 6 {
			t.Fatalf("URLs: %v", sum.Status.URLs)
		}
		crawl(t, o, web.URL("a.test", "/"))
		o.Fetch.AllowPrivate = false
		crawl(t, o, web.URL("a.test", "/"))
		for path, n := range pagesOf(web, "a.test") {
			if n != 1 {
				t.Errorf("%s was requested %d times", path, n)
			}
		}
		checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
		checkNoMarks(t, o)
	})
}

// TestSettingsForgiveRobots: an origin whose robots.txt could not be had because of a port that was not allowed is requested as soon as it is, and not
// when the file would be requested again.
func TestSettingsForgiveRobots(t *testing.T) {
	t.Parallel()
	web := startWeb(t, site("a.test", "", paths("/", 3), nil))
	o := testOptions(t, web)
	o.Fetch.Ports = []uint16{1}
	o.GiveUpAfter = time.Second
	if sum := crawl(t, o, web.URL("a.test", "/")); !sum.Seeds.Failed || sum.Seeds.First[0].Reason != "robots.txt, blocked address" || len(web.Requests()) > 0 {
		t.Fatalf("%+v", sum.Seeds)
	}
	if crawl(t, o, web.URL("a.test", "/")); len(web.Requests()) > 0 {
		t.Fatal("the same settings reach it")
	}
	o.Fetch.Ports = nil
	if sum := crawl(t, o, web.URL("a.test", "/")); sum.Status.URLs["fetched"] != 4 {
		t.Errorf("%v: %+v", sum.Status.URLs, sum.Postponed)
	}
	checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
}

// TestScopeOffersAgainLive: a scope that becomes wider while the crawl runs puts back what it had excluded.
func TestScopeOffersAgainLive(t *testing.T) {
	t.Parallel()
	web := startWeb(t, site("a.test", "", []string{"/in", "/out/1", "/out/2"}, testweb.Routes{"/": testweb.Page("root", "/in")}))
	o := testOptions(t, web)
	e, stop := daemon(t, o, web.URL("a.test", "/"))
	ctx, narrow := t.Context(), e.o.Live()
	narrow.Exclude = patternList("/out/")
	if err := e.Pause(ctx); err != nil {
		t.Fatal(err)
	}
	if sum, err := e.Add(ctx, additions(t, web.URL("a.test", "/out/1"), web.URL("a.test", "/out/2"))); err != nil || sum.Added != 2 {
		t.Fatal(sum, err)
	}
	if err := errors.Join(e.Change(ctx, narrow), e.Resume(ctx)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "they are excluded", func() bool { return e.store.Counters().Of(storage.Excluded) == 2 })
	if err := e.Change(ctx, e.o.Live()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "they are fetched", func() bool { return e.store.Counters().Of(storage.Fetched) == 4 })
	stop()
	for path, n := range pagesOf(web, "a.test") {
		if n != 1 {
			t.Errorf("%s was requested %d times", path, n)
		}
	}
	checkNoMarks(t, o)
}
