package weburl

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// wptCase is a case of urltestdata.json of the Web Platform Tests, without the fields that these
// tests do not use.
type wptCase struct {
	Input   string  `json:"input"`
	Base    *string `json:"base"`
	Href    string  `json:"href"`
	Failure bool    `json:"failure"`
}

// wptData reads a file of the Web Platform Tests. It leaves out items that are comments.
func wptData[T any](t testing.TB, name string) []T {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/wpt/" + name))(t)
	var items []json.RawMessage
	must.Do(t, json.Unmarshal(text, &items))
	var all []T
	for _, item := range items {
		if item[0] != '{' {
			continue
		}
		var c T
		must.Do(t, json.Unmarshal(item, &c))
		all = append(all, c)
	}
	return all
}

// expected returns the expected result of a case: the standard's result for http and https only,
// without user name, password, fragment and the last dot of a host.
func (c *wptCase) expected() string {
	scheme, rest, ok := strings.Cut(c.Href, "://")
	if c.Failure || !ok || scheme != "http" && scheme != "https" {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "#")
	slash := strings.IndexByte(rest, '/')
	authority := rest[strings.LastIndexByte(rest[:slash], '@')+1 : slash]
	host, port, hasPort := strings.Cut(authority, ":")
	if !strings.HasPrefix(authority, "[") {
		if authority = strings.TrimSuffix(host, "."); hasPort {
			authority += ":" + port
		}
	}
	return scheme + "://" + authority + rest[slash:]
}

// wptDeviations are the cases in which this package deliberately departs from the test data.
var wptDeviations = map[string][]string{
	"port 0 cannot be used":        {"http://f:0/c", "http://f:00000000000000/c"},
	"DNS cannot hold empty labels": {"http://./", "http://../", "http://foo.09.."},
	"the standard has since given up putting ASCII hosts through IDNA": {
		"http://a.b.c.xn--pokxncvks", "http://10.0.0.xn--pokxncvks", "http://a.b.c.XN--pokxncvks",
		"http://a.b.c.Xn--pokxncvks",
		"http://10.0.0.XN--pokxncvks", "http://10.0.0.xN--pokxncvks", "https://xn--/",
	},
}

func TestWebPlatformURLs(t *testing.T) {
	foreign, passed := 0, 0
	var departed, listed []string
	for _, inputs := range wptDeviations {
		listed = append(listed, inputs...)
	}
	for _, c := range wptData[wptCase](t, "urltestdata.json") {
		var base URL
		if c.Base != nil {
			u, err := Parse(*c.Base)
			if err != nil {
				foreign++ // relative to something other than a page
				continue
			}
			base = u
		}
		got := ""
		u, err := sameAsFull(t, base, c.Input)
		if err == nil {
			got = u.String()
		}
		switch want := c.expected(); {
		case got == want:
			passed++
		case slices.Contains(listed, c.Input):
			departed = append(departed, c.Input)
		default:
			t.Errorf("%q on %v: %q (%v), want %q", c.Input, base, got, err, want)
		}
	}
	slices.Sort(listed)
	slices.Sort(departed)
	assert.Slice(t, listed, departed, "departed from the list of deviations")
	assert.True(t, passed == 682 && foreign == 126,
		"%d cases passed and %d have a base that is no http or https URL; docs/URLS.md says 682 and 126", passed,
		foreign)
}

// wptHost is a case of toascii.json or IdnaTestV2.json. Without output, the host is invalid.
type wptHost struct {
	Input  string  `json:"input"`
	Output *string `json:"output"`
}

// hostEnds encodes the characters that end a host, so that a case is about the host as a whole.
var hostEnds = strings.NewReplacer(":", "%3A", "/", "%2F", "?", "%3F", "#", "%23", `\`, "%5C")

// Hosts match the files, except names that DNS cannot hold, and ASCII names, which today's standard
// accepts unchanged.
func TestWebPlatformHosts(t *testing.T) {
	for name, equal := range map[string]int{"toascii.json": 24, "IdnaTestV2.json": 1433} {
		passed := 0
		for _, c := range wptData[wptHost](t, name) {
			u, err := Parse("http://" + hostEnds.Replace(c.Input) + "/")
			switch {
			case c.Output == nil && err != nil, c.Output != nil && err == nil &&
				u.Host() == strings.TrimSuffix(strings.ToLower(*c.Output), "."):
				passed++
			case c.Output == nil && isASCII(c.Input) && strings.Contains(strings.ToLower(c.Input), "xn--"):
			case c.Output != nil && err != nil && !fitsDNS(*c.Output):
			default:
				t.Errorf("%s: %q is %v (%v), want %v", name, c.Input, u, err, c.Output)
			}
		}
		assert.Equal(t, passed, equal, name, "cases passed, docs/URLS.md")
	}
}

// fitsDNS reports whether DNS can hold a name: RFC 1035 section 2.3.4.
func fitsDNS(name string) bool {
	name = strings.TrimSuffix(name, ".")
	return name != "" && len(name) <= 253 && !slices.ContainsFunc(strings.Split(name, "."),
		func(label string) bool { return label == "" || len(label) > 63 })
}
