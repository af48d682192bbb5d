package sweep

import (
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// testSettings are the settings of a crawl with one seed.
type testSettings struct {
	Fetch            fetch.Options
	Frontier         frontier.Options
	Mode             frontier.Mode
	Include, Exclude []*regexp.Regexp
}

func defaultSettings() testSettings {
	return testSettings{Fetch: fetch.DefaultOptions(), Frontier: frontier.DefaultOptions()}
}

// lifts returns the lifts of the settings, with the rules that are stored.
func (o *testSettings) lifts(t *testing.T, s *storage.Store) []Lift {
	settings := Settings{
		Fetch: &o.Fetch, Frontier: &o.Frontier, Mode: o.Mode, Include: o.Include, Exclude: o.Exclude,
		Scope: frontier.NewScope(o.Mode, o.Include, o.Exclude, testkit.Parse(t, "http://a.test/seeds/")),
		Rules: func(storage.HostID, uint8) (*robots.Rules, error) {
			encoded, err := s.Policy(testkit.Parse(t, "http://a.test/").Origin())
			if err != nil {
				return nil, err
			}
			record, err := robots.DecodeRecord(encoded)
			if err != nil {
				return nil, err
			}
			return record.Rules(o.Frontier.Tokens...), nil
		},
	}
	return settings.Lifts()
}

// liftStore has URLs of one host, each settled in another way; the path says how.
func liftStore(t *testing.T) *storage.Store {
	t.Helper()
	s := testkit.OpenStore(t)
	var b storage.Batch
	put := func(path string, depth uint16, redirects uint8, o storage.Outcome) {
		u := testkit.Parse(t, "http://a.test"+path)
		b.Done = append(b.Done, storage.Done{Host: 1, Ordinal: uint32(len(b.Found)), Outcome: o})
		b.Found = append(b.Found,
			storage.Found{URL: u, Fingerprint: s.Fingerprint(u), Depth: depth, Redirects: redirects})
	}
	for k := fetch.Kind(0); !strings.HasPrefix(k.String(), "kind_"); k++ {
		attempts := uint8(0)
		if k.Temporary() {
			attempts = 3
		}
		put("/"+k.String(), 0, 0,
			storage.Outcome{State: storage.Failed, Reason: storage.ReasonFetch + storage.Reason(k), Attempts: attempts})
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
		URL: "http://a.test/robots.txt", Status: 200,
		Body: []byte("User-agent: *\nDisallow: /\nUser-agent: news\nDisallow: /denied/\n"),
	}, someTime)
	encoded := must.Get(record.AppendBinary(nil))(t)
	b.Policies = []storage.Policy{{Origin: testkit.Parse(t, "http://a.test/").Origin(), Record: encoded}}
	must.Get(s.Commit(&b))(t)
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
		must.Do(t, os.WriteFile(ca, []byte(text), 0o600))
	}
	ranges := func(texts ...string) (list []netip.Prefix) {
		for _, text := range texts {
			list = append(list, netip.MustParsePrefix(text))
		}
		return list
	}
	credential := must.Get(fetch.ParseCredential("http://a.test basic me:secret"))(t)
	other := must.Get(fetch.ParseCredential("http://b.test basic me:secret"))(t)
	for _, c := range []struct {
		name          string
		before, after func(o *testSettings)
		want, back    string // paths that are offered by the change, and by the one back
	}{
		{"nothing", nil, nil, "", ""},
		{"allow_private", nil, func(o *testSettings) { o.Fetch.AllowPrivate = true }, "blocked_address", ""},
		{"allow_addresses", func(o *testSettings) { o.Fetch.AllowRanges = ranges("10.0.0.0/8") },
			func(o *testSettings) { o.Fetch.AllowRanges = ranges("10.0.0.0/8", "192.168.0.0/16") },
			"blocked_address", ""},
		{"deny_addresses", func(o *testSettings) { o.Fetch.DenyRanges = ranges("10.0.0.0/8") }, nil,
			"blocked_address", ""},
		{"ports to all", func(o *testSettings) { o.Fetch.Ports = []uint16{80} }, nil, "blocked_address",
			"blocked_address"},
		{"another port", func(o *testSettings) { o.Fetch.Ports = []uint16{80} },
			func(o *testSettings) { o.Fetch.Ports = []uint16{80, 443} }, "blocked_address", "blocked_address"},
		{"resolver", nil, func(o *testSettings) { o.Fetch.Resolver = "192.0.2.1:53" }, names, names},
		{"family", nil, func(o *testSettings) { o.Fetch.Family = fetch.IPv6Only }, reaches, reaches},
		{"proxy", nil, func(o *testSettings) { o.Fetch.Proxy = "http://192.0.2.1:3128" }, reaches, reaches},
		{"tls_ca_file", func(o *testSettings) { writeCA("one"); o.Fetch.CAFile = ca },
			func(o *testSettings) { writeCA("two"); o.Fetch.CAFile = ca }, "certificate", "certificate"},
		{"auth of the host", nil,
			func(o *testSettings) { o.Fetch.Credentials = []fetch.Credential{credential} }, "401", ""},
		{"auth of another", nil, func(o *testSettings) { o.Fetch.Credentials = []fetch.Credential{other} }, "", ""},
		{"cookies", nil, func(o *testSettings) { o.Fetch.CookieHosts = []fetch.HostPattern{"a.test"} }, "loop", ""},
		{"content_types", func(o *testSettings) { o.Fetch.ContentTypes = []string{"text/*"} }, nil,
			"type_not_wanted", ""},
		{"max_header", nil, func(o *testSettings) { o.Fetch.MaxHeader *= 2 }, "header_too_large", ""},
		{"max_redirects", nil, func(o *testSettings) { o.Frontier.MaxRedirects = 6 }, "redirects", ""},
		{"timeout", nil, func(o *testSettings) { o.Fetch.Timeout *= 2 },
			"connect_timeout tls_timeout header_timeout body_timeout", ""},
		{"connect_timeout", nil, func(o *testSettings) { o.Fetch.ConnectTimeout *= 2 },
			"connect_timeout tls_timeout", ""},
		{"header_timeout", nil, func(o *testSettings) { o.Fetch.HeaderTimeout *= 2 }, "header_timeout", ""},
		{"idle_timeout", nil, func(o *testSettings) { o.Fetch.BodyIdleTimeout *= 2 }, "body_timeout", ""},
		{"min_rate", nil, func(o *testSettings) { o.Fetch.MinRate /= 2 }, "too_slow", ""},
		{"resolve_timeout", nil, func(o *testSettings) { o.Fetch.ResolveTimeout *= 2 }, "dns_timeout", ""},
		{"max_attempts", func(o *testSettings) { o.Frontier.MaxAttempts = 3 },
			func(o *testSettings) { o.Frontier.MaxAttempts = 4 },
			"canceled dns_failure dns_timeout refused unreachable connect_timeout tls tls_timeout reset closed " +
				"lost_on_reuse header_timeout body_timeout incomplete_body local proxy too_slow " +
				"signature_asked 503", ""},
		{"max_depth", func(o *testSettings) { o.Frontier.MaxDepth = 2 },
			func(o *testSettings) { o.Frontier.MaxDepth = 4 }, "depth3", ""},
		{"max_depth to none", func(o *testSettings) { o.Frontier.MaxDepth = 2 }, nil, "depth3 depth9", ""},
		{"scope wider", func(o *testSettings) { o.Exclude = patternList("/scope/") },
			func(o *testSettings) { o.Exclude = patternList("/scope/x/") }, "scope/1 target", "target"},
		{"scope.mode", func(o *testSettings) { o.Mode = frontier.ModePrefix },
			func(o *testSettings) { o.Mode = frontier.ModeHost }, "scope/1 scope/x/1 target", "target"},
		{"obey", nil, func(o *testSettings) { o.Frontier.Obey = false }, "denied/1 news/1", ""},
		{"product_token", nil, func(o *testSettings) { o.Frontier.Tokens = []string{"news", "amble"} }, "news/1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := liftStore(t)
			offered := func(kept settingValues, change func(*testSettings)) (paths []string, now settingValues) {
				o := defaultSettings()
				if change != nil {
					change(&o)
				}
				lifts := o.lifts(t, s)
				lifted, _ := kept.lifted(lifts, s.Counters())
				w := must.Get(NewRetry(s, Command{Lifted: lifted}, lifts, nil))(t)
				page, end, err := w.Walk(t.Context(), s, slog.New(slog.DiscardHandler), someTime)
				must.True(t, err == nil && end, "%v %v", end, err)
				for i := range page {
					u := must.Get(s.URL(1, page[i].Ordinal))(t)
					paths = append(paths, u.RequestURI()[1:])
				}
				return paths, valuesOf(lifts)
			}
			_, first := offered(nil, c.before)
			paths, second := offered(first, c.after)
			back, _ := offered(second, c.before)
			for _, x := range []struct{ got, want []string }{{paths, strings.Fields(c.want)},
				{back, strings.Fields(c.back)}} {
				if slices.Sort(x.got); !slices.Equal(x.got, slices.Sorted(slices.Values(x.want))) {
					t.Errorf("offered again: %q, want %q", x.got, x.want)
				}
			}
			none, _ := offered(nil, c.after)
			assert.True(t, len(none) <= 0, "a store that kept no settings offers %q", none)
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
	o := defaultSettings()
	lifts := o.lifts(t, testkit.OpenStore(t))
	assert.Equal(t, len(slices.Sorted(maps.Keys(valuesOf(lifts)))), len(lifts), "two lifts have one name")
}

// TestLongLists: a list that is too long to be kept counts as another one when it is.
func TestLongLists(t *testing.T) {
	var ports []uint16
	for i := range uint16(2000) {
		ports = append(ports, i+1)
	}
	long, longer := listed(ports[:1999]), listed(ports)
	assert.True(t, len(long) <= 100 && gains(long, longer) && gains(listed(ports[:3]), long) && loses(long, longer) &&
		!opens("", long), "%q, %q", long, longer)
}
