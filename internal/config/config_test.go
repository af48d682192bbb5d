package config

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/output/formats"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/politeness"
)

const reference = "../../config.yaml"

// ipRate is the default of politeness.ip_rate: the library has no budget, so that its callers decide.
const ipRate = 5

// TestReferenceEqualsDefaults holds the shipped config.yaml equal to Default, in both directions.
func TestReferenceEqualsDefaults(t *testing.T) {
	c, err := Load(reference, nil, nil)
	must.Do(t, err, "the shipped config.yaml has problems")
	fresh := Default()
	fresh.file = reference
	fresh.resolvePaths()
	for _, s := range settings() {
		assert.Not(t, c.origins[s.key].Line, 0, s.key, "is not in config.yaml")
		assert.Deep(t, s.value(c), s.value(&fresh), s.key, "config.yaml the default")
	}
	// A key in the file that is no setting is an error of Load, so the other direction has been
	// checked too.
}

func TestReferenceHasACommentForEverySetting(t *testing.T) {
	body := must.Get(os.ReadFile(reference))(t)
	c := must.Get(Load(reference, nil, nil))(t)
	lines := strings.Split(string(body), "\n")
	commented := regexp.MustCompile(`^\s*[a-z0-9_]+: \S.*\s# \S.{10,}`)
	for _, s := range settings() {
		if line := lines[c.origins[s.key].Line-1]; !commented.MatchString(line) {
			t.Errorf("%s: want `key: default # comment` on one line, got %q", s.key, line)
		}
	}
}

// A range in the comment of a setting is the one of the table.
func TestReferenceSaysTheRanges(t *testing.T) {
	body := must.Get(os.ReadFile(reference))(t)
	text, checked := string(body), 0
	says := regexp.MustCompile(`: ([0-9.]+[A-Za-z]*) to ([0-9.]+[A-Za-z]*)`)
	section := ""
	for line := range strings.Lines(text) {
		name, comment, _ := strings.Cut(line, "#")
		key, _, isKey := strings.Cut(strings.TrimSpace(name), ":")
		if isKey && !strings.HasPrefix(line, " ") {
			section = key
		}
		found := says.FindStringSubmatch(": " + comment)
		if s, known := newVocabulary().byKey[section+"."+key]; known && found != nil {
			checked++
			if want := s.tag.Get("range"); !strings.HasSuffix(want, ".."+found[2]) {
				t.Errorf("%s is %s to %s in config.yaml, and %q in the table", s.key, found[1], found[2], want)
			}
		}
	}
	assert.AtLeast(t, checked, 10, "ranges are compared")
}

func TestDefaultsPassTheirOwnCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	c := must.Get(Load("", nil, nil))(t)
	want := Default()
	for _, s := range settings() {
		assert.Deep(t, s.value(c), s.value(&want), s.key, "without any source")
	}
	assert.Equal(t, c.File(), "", "File where there is none")
}

func TestEverySettingHasAUniqueVariable(t *testing.T) {
	seen := map[string]string{}
	for _, s := range settings() {
		assert.True(t, s.key != "" && !strings.HasSuffix(s.key, "."), "field %v has no mapstructure tag", s.index)
		if other, twice := seen[s.variable()]; twice {
			t.Errorf("%s and %s are both %s in the environment", s.key, other, s.variable())
		}
		seen[s.variable()] = s.key
	}
}

func TestOutputDir(t *testing.T) {
	c := Default()
	c.DataDir = "/var/lib/amble"
	assert.Equal(t, c.OutputDir(), "/var/lib/amble/output", "OutputDir")
	c.Output.Dir = "/srv/pages"
	assert.Equal(t, c.OutputDir(), "/srv/pages", "OutputDir")
}

// The defaults of this package are those of the packages they go to.
func TestDefaultsAgreeWithThePackages(t *testing.T) {
	c := Default()
	polite := politeness.DefaultOptions()
	polite.AdaptiveFactor = adaptiveFactor // the package has no default that depends on the delay
	polite.IPRate = ipRate                 // nor one that depends on who calls it
	assert.Equal(t, c.PolitenessOptions(), polite, "politeness its own defaults")
	want := fetch.DefaultOptions()
	want.UserAgent = "amble/1.2"
	assert.Deep(t, c.FetchOptions("1.2"), want, "fetch its own defaults")
	files := archive.DefaultOptions()
	files.Dir = "data/output"
	got := c.ArchiveOptions("1.2")
	assert.True(t, archive.IsNamePart(got.Host), "the machine is called %q", got.Host)
	assert.Slice(t, archive.Names(got.Known), archive.Names(formats.All()), "formats")
	files.Known, got.Known = nil, nil // functions are not compared
	files.Host, files.Crawler = got.Host, archive.Crawler{Software: "amble/1.2", UserAgent: "amble/1.2", Robots: "obey"}
	assert.Deep(t, got, files, "archive its own defaults")
}

// What passes the check of a config file passes that of each package, at both ends of what is
// allowed.
func TestAllowedValuesAreAllowedByThePackages(t *testing.T) {
	ends := map[string][]string{
		"least": {"politeness.delay=0", "politeness.adaptive_max=1ms", "politeness.per_ip=1", "fetch.timeout=1ms",
			"fetch.max_body=1KiB", "output.max_file=64KiB", "output.format=none", "output.gzip_level=1",
			"output.warc_compress=zstd", "output.zstd_level=1"},
		"most": {"politeness.delay=168h", "politeness.adaptive_factor=1000", "politeness.adaptive_max=168h",
			"politeness.per_ip=4096", "politeness.ip_delay=168h", "politeness.ip_rate=1000",
			"fetch.timeout=1h", "fetch.max_body=1GiB", "output.max_file=1TiB", "output.max_age=8760h",
			"output.gzip_level=9", "output.format=jsonl,warc,links,text", "output.compress=zstd",
			"crawl.workers=4096", "fetch.contact=mailto:a@b.example",
			"fetch.resolver=[::1]:53", "fetch.user_agent=" + strings.Repeat("x", 256)},
	}
	for name, sets := range ends {
		c, err := inFile(t, "", sets, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for part, err := range map[string]error{
			"politeness": c.PolitenessOptions().Validate(),
			"fetch":      c.FetchOptions("1").Validate(),
			"archive":    c.ArchiveOptions("1.2").Validate(),
			"robots":     c.RobotsOptions().Validate(),
		} {
			assert.NoError(t, err, name, part, "refuses what config allows")
		}
	}
}

func TestUserAgent(t *testing.T) {
	tests := []struct{ agent, contact, token, want, from string }{
		{"", "", "amble", "amble/1.2", ""},
		{"", "https://example.org/bot", "amble", "amble/1.2 (+https://example.org/bot)", ""},
		{"", "bot@example.org", "shopbot", "shopbot/1.2 (+bot@example.org)", "bot@example.org"},
		{"", "mailto:bot@example.org", "amble", "amble/1.2 (+mailto:bot@example.org)", "bot@example.org"},
		{"mybot/3 amble", "bot@example.org", "amble", "mybot/3 amble", "bot@example.org"},
	}
	for _, tt := range tests {
		c := Default()
		c.Fetch.UserAgent, c.Fetch.Contact, c.Robots.ProductToken = tt.agent, tt.contact, tt.token
		o := c.FetchOptions("1.2")
		assert.True(t, o.UserAgent == tt.want && o.From == tt.from, "%+v: User-Agent %q, From %q", tt, o.UserAgent,
			o.From)
	}
}

func TestFetchOptionsCarryTheSettings(t *testing.T) {
	c := must.Get(inFile(t, "", []string{"fetch.timeout=7s", "fetch.max_body=1MiB", "fetch.allow_private=true",
		"fetch.resolver=127.0.0.1:53", "crawl.workers=2000"}, nil))(t)
	o := c.FetchOptions("1")
	assert.True(t, o.Timeout == 7*time.Second && o.MaxBody == 1<<20 && o.AllowPrivate && o.Resolver == "127.0.0.1:53" &&
		o.MaxIdleConns == 2000, "%+v", o)
}

func TestWarnings(t *testing.T) {
	const name = "default: robots.product_token is amble, as of everybody"
	tests := []struct {
		sets []string
		want []string
	}{
		{[]string{"fetch.contact=a@b.example"}, []string{name}},
		{[]string{"fetch.contact=a@b.example", "robots.product_token=kite"}, nil},
		{[]string{"fetch.user_agent=amble/2 by me@one.example"}, []string{name}},
		{[]string{"fetch.user_agent=amble/2 (+https://one.example/bot)"}, []string{name}},
		{[]string{"fetch.user_agent=amble/2 by me"}, []string{"default: fetch.contact is empty: ", name}},
		{nil, []string{"default: fetch.contact is empty: ", name}},
		{[]string{"fetch.user_agent=mybot"},
			[]string{"default: fetch.contact is empty: ", name, "--set: fetch.user_agent does not contain " +
				"robots.product_token, amble: "}},
		{[]string{"fetch.contact=a@b.example", "robots.obey=false", "politeness.delay=0", "fetch.allow_private=true"},
			[]string{"--set: robots.obey is false: ", "--set: politeness.delay is 0s: ",
				"--set: fetch.allow_private is true: "}},
	}
	for _, tt := range tests {
		c := must.Get(inFile(t, "", tt.sets, nil))(t)
		got := c.Warnings()
		if len(got) != len(tt.want) {
			t.Errorf("%q: warnings %q, want %q", tt.sets, got, tt.want)
			continue
		}
		for i := range got {
			assert.True(t, strings.HasPrefix(got[i], tt.want[i]), "%q: warning %q, want it to begin %q", tt.sets,
				got[i], tt.want[i])
		}
	}
}

func TestFetchOptionsCarryTheListsToo(t *testing.T) {
	c := must.Get(Load("testdata/fetch.good.yaml", nil, nil))(t)
	o := c.FetchOptions("1")
	must.Do(t, o.Validate())
	switch {
	case len(o.Headers) != 1 || o.Headers[0].Name != "Accept-Language", len(o.Credentials) != 2,
		len(o.CookieHosts) != 2,
		!slices.Equal(o.ContentTypes, []string{"text/*", "application/pdf"}), o.ConnectTimeout != 3*time.Second,
		o.TLSTimeout != 3*time.Second,
		o.HeaderTimeout != 4*time.Second, o.BodyIdleTimeout != 5*time.Second, o.ResolveTimeout != 6*time.Second,
		o.MaxHeader != 32<<10, o.HTTP2,
		o.Family != fetch.IPv6Only, !slices.Equal(o.Ports, []uint16{80, 443}), len(o.AllowRanges) != 3 ||
			o.AllowRanges[2].Bits() != 32,
		len(o.DenyRanges) != 1, o.Proxy != "socks5://proxy.example:1080", o.ProxyAuth != "user:geheim",
		o.CAFile != "testdata/ca.pem":
		t.Errorf("%+v", o)
	}
	all, _ := c.options()
	assert.True(t, all.Spool.Above == 1<<20 && all.Spool.Budget == 64<<20, "%+v", all.Spool)
}

// Neither what is shown nor what is complained about gives a credential away.
func TestFetchSecretsStayHidden(t *testing.T) {
	c, err := Load("testdata/fetch.good.yaml", nil, nil)
	must.Do(t, err)
	var shown strings.Builder
	must.Do(t, c.Show(&shown))
	_, err = Load("testdata/fetch.bad.yaml", nil, nil)
	for _, text := range []string{shown.String(), err.Error(), fmt.Sprintf("%+v", c.FetchOptions("1").Credentials)} {
		assert.True(t, !strings.Contains(text, "geheim") && !strings.Contains(text, "abc"), "gives a secret away:\n%s",
			text)
	}
}

// The names looked for in robots.txt, and what a forbidden one means, come from the settings.
func TestRobotsSettings(t *testing.T) {
	c, err := inFile(t, "robots:\n  product_token: amble-news\n  fallback_tokens: [amble, bot]\n  forbidden_denies: "+
		"true\n", nil, nil)
	must.Do(t, err)
	o := c.FrontierOptions()
	assert.True(t, slices.Equal(o.Tokens, []string{"amble-news", "amble", "bot"}) && o.Robots.ForbiddenDenies,
		"tokens %q, forbidden denies: %v", o.Tokens, o.Robots.ForbiddenDenies)
	c.Robots.FallbackTokens = []string{"bot"}
	assert.Slice(t, c.FrontierOptions().Tokens, []string{"amble-news", "bot", "amble"},
		"tokens a site that names the program is not heard")
	for _, list := range []string{"[amble, 'a b']", "[a, a, a, a, a, a, a, a, a]"} {
		_, err := inFile(t, "robots:\n  fallback_tokens: "+list+"\n", nil, nil)
		assert.True(t, err != nil && strings.Contains(err.Error(), "robots.fallback_tokens"), "%s: %v", list, err)
	}
}
