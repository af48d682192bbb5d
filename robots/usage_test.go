package robots

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// usageVector is one line of testdata/usage.jsonl: what a file says about the use of a URL. The first
// five are the example of draft-ietf-aipref-attach.
type usageVector struct {
	ID, Robots, Agent, URL, Why string
	Allowed                     bool
	Usage                       []string
}

// usageOf is what a crawler takes from the rules: nothing for a URL that it may not fetch.
func usageOf(r *Rules, requestURI string) (values []string, allowed bool) {
	if allowed = r.Match(requestURI).Allowed; allowed {
		for _, u := range r.Usage(requestURI) {
			values = append(values, u.Value)
		}
	}
	return values, allowed
}

func TestUsageVectors(t *testing.T) {
	vectors := readLines[usageVector](t, filepath.Join("testdata", "usage.jsonl"))
	must.True(t, len(vectors) >= 30, "%d vectors", len(vectors))
	for _, v := range vectors {
		u := must.Get(url.Parse(v.URL))(t)
		got, allowed := usageOf(Compile([]byte(v.Robots), v.Agent), u.RequestURI())
		assert.True(t, allowed == v.Allowed && slices.Equal(got, v.Usage),
			"%s: allowed %v, usage %q; want %v, %q (%s)\n%s", v.ID, allowed, got, v.Allowed, v.Usage, v.Why, v.Robots)
		other, _ := usageOf(Parse([]byte(v.Robots)).Rules(v.Agent), u.RequestURI())
		assert.True(t, slices.Equal(got, other), "%s: the parsed file says %q", v.ID, other)
	}
}

// TestUsagePolicy: the file for people and the rules agree on what belongs to a crawler.
func TestUsagePolicy(t *testing.T) {
	for _, v := range readLines[usageVector](t, filepath.Join("testdata", "usage.jsonl")) {
		p := Parse([]byte(v.Robots)).Policy(v.Agent)
		all := slices.Concat(p.ContentUsage, p.ContentSignals)
		for _, s := range Compile([]byte(v.Robots), v.Agent).usage {
			assert.True(t, slices.Contains(all, s.Usage), "%s: %v is in the rules, and not in the policy %v", v.ID,
				s.Usage, all)
		}
		assert.Equal(t, len(Compile([]byte(v.Robots), v.Agent).usage), len(all), v.ID,
			"records in the rules in the policy")
	}
}

// TestUsageBounds: a file may hold any number of records, of any length.
func TestUsageBounds(t *testing.T) {
	var b strings.Builder
	b.WriteString("User-agent: *\nContent-Usage: /x " + strings.Repeat("a", 2*maxUsage) + "\n")
	for i := range 2 * maxUsages {
		fmt.Fprintf(&b, "Content-Usage: /*a*b%d search=n\n", i)
	}
	r := Compile([]byte(b.String()), "amble")
	assert.True(t, len(r.usage) == maxUsages && r.Size() <= 400*maxUsages, "%d records in %d bytes", len(r.usage),
		r.Size())
	got := r.Usage("/" + strings.Repeat("ab", 1000) + "b7")
	assert.True(t, len(got) == 1 && got[0].Path == "/*a*b7", "%v", got)
	if got := r.Usage("/x"); got != nil {
		t.Errorf("a record beyond the bound counts: %v", got)
	}
}

func TestLicenses(t *testing.T) {
	body := "License: https://site.example/license.xml\nUser-agent: b\nDisallow: /\n" +
		"license: https://other.example/l\nLicense: /relative\nLicense: mailto:a@b\nLicense: " +
		"https://site.example/license.xml\n"
	for token, want := range map[string][]string{
		"amble": {"https://site.example/license.xml"},
		"b":     {"https://other.example/l", "https://site.example/license.xml"},
	} {
		assert.Slice(t, Compile([]byte(body), token).Licenses(), want, token, "licenses")
	}
	const file = "License: https://x.example/file\n"
	for text, want := range map[string]string{
		file + "User-agent: *\nAllow: /\n":                                                                   "file",
		"User-agent: *\nAllow: /\n\n" + file:                                                                 "file",
		"User-agent: b\nDisallow: /\n\n" + file:                                                              "file",
		"User-agent: *\nAllow: /\nSitemap: https://x.example/s\n" + file:                                     "file",
		"User-agent: b\nDisallow: /\n" + file:                                                                "",
		"User-agent: *\nLicense: https://x.example/own\nAllow: /\n\n" + file:                                 "own",
		"User-agent: *\nLicense: https://x.example/all\nUser-agent: amble\nLicense: https://x.example/own\n": "own",
		"User-agent: *\nLicense: https://x.example/all\nUser-agent: amble\nAllow: /\n":                       "",
	} {
		got := strings.TrimPrefix(strings.Join(Compile([]byte(text), "amble").Licenses(), " "), "https://x.example/")
		assert.Equal(t, got, want, text, "license")
	}
	assert.True(t, Compile([]byte(body), "b").DisallowsAll(), "a license ended the group")
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, "License: https://site.example/%d\n", i)
	}
	assert.Equal(t, len(Compile([]byte(many.String()), "amble").Licenses()), maxLicenses, "licenses")
}
