package robots

import (
	"strings"
	"sync"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

func TestMatchDoesNotAllocate(t *testing.T) {
	for _, f := range benchFiles() {
		r := Compile(f.body, "amble")
		for name, uri := range map[string]string{
			"normal":     f.uri,
			"short":      "/",
			"escaped":    "/caf%c3%a9/~%41?x=*&y=$",
			"long":       "/" + strings.Repeat("a", maxURI-1),
			"all octets": "/" + strings.Repeat("é", maxURI/2-1),
			"denied":     "/admin/x",
		} {
			n := testing.AllocsPerRun(10, func() { r.Match(uri) })
			assert.True(t, n == 0, "%s, %s: %v allocations", f.name, name, n)
		}
	}
}

func TestCompileAllocatesLittle(t *testing.T) {
	most := map[string]float64{"a": 20, "b": 60, "c": 60}
	for _, f := range benchFiles() {
		if n := testing.AllocsPerRun(10, func() { Compile(f.body, "amble-news", "amble") }); n > most[f.name] {
			t.Errorf("%s: %v allocations", f.name, n)
		}
	}
}

// TestSize: rules retain at most twice the bytes of the group that they come from.
func TestSize(t *testing.T) {
	for _, f := range benchFiles() {
		group := len(f.body)
		if f.name == "b" {
			group = len(f.body) * 1250 / 2000
		}
		r := Compile(f.body, "amble")
		assert.AtMost(t, r.Size(), 2*group, f.name, "bytes retained of a group of", group)
	}
}

// For a file that takes long, MatchWithin returns the same verdict or none, and compares no more
// octets than its bound.
func TestMatchWithin(t *testing.T) {
	uri := "/" + strings.Repeat("ab", 500)
	for name, body := range map[string]string{
		"no rules":          "",
		"few rules":         strings.Repeat("Disallow: /*a$\n", 5),
		"many rules":        strings.Repeat("Disallow: /*a*b*a$\n", 20_000),
		"many more rules":   strings.Repeat("Allow: *\n", 50_000),
		"one rule of stars": "Disallow: /" + strings.Repeat("*", 400_000) + "x\n",
		"one long rule":     "Disallow: /" + strings.Repeat("*a", 200_000) + "\n",
		"literals":          strings.Repeat("Disallow: /aaaaaaaaaaaaaaaaaaa\nDisallow: /a\n", 10_000),
	} {
		r := Compile([]byte("User-agent: *\n"+body+"Disallow: /ab\n"), "amble")
		want := r.Match(uri)
		took := 0
		for work := 1; took == 0; work *= 2 {
			got, ok := r.MatchWithin(uri, work)
			switch {
			case ok && got != want:
				t.Errorf("%s: %+v within %d octets, want %+v", name, got, work, want)
			case ok:
				took = work
			case got != Verdict{}:
				t.Errorf("%s: %+v without a verdict", name, got)
			}
		}
		heavy := strings.HasPrefix(name, "many") || name == "one rule of stars"
		assert.Equal(t, heavy, (took > 16<<10), name, "the verdict takes up to", took, "octets")
	}
	for _, f := range benchFiles()[:2] {
		_, ok := Compile(f.body, "amble").MatchWithin(f.uri, 4096)
		assert.True(t, ok, "%s: a usual file takes more than 4,096 octets", f.name)
	}
}

// The work that glob leaves shows how many octets it has compared.
func TestGlobCounts(t *testing.T) {
	uri := []byte("/" + strings.Repeat("a", 1000) + "$")
	for _, pattern := range []string{"/a", "/*", "*", "/*a", "/*b", "/*a*a*a", "/" + strings.Repeat("*", 1000),
		"/" + strings.Repeat("*a", 900), "/*" + strings.Repeat("a", 900)} {
		matches, left := glob([]byte(pattern), uri, 1<<20)
		compared := 1<<20 - left
		assert.True(t, compared >= 0 && compared <= len(pattern)+len(uri), "%.20s: %d octets are counted", pattern,
			compared)
		if again, left := glob([]byte(pattern), uri, compared); again != matches || left != 0 {
			t.Errorf("%.20s: exactly within %d octets: %v, %d are left", pattern, compared, again, left)
		}
		if _, left := glob([]byte(pattern), uri, compared-1); left >= 0 {
			t.Errorf("%.20s: within %d octets: %d are left", pattern, compared-1, left)
		}
	}
}

func TestMatchLongURL(t *testing.T) {
	r := Compile([]byte("User-agent: *\nDisallow: /*.php$\nAllow: /"+strings.Repeat("a", 10_000)+"\nDisallow: /b\n"),
		"x")
	for uri, allowed := range map[string]bool{
		"/" + strings.Repeat("a", 100_000) + ".php":   true,
		"/b" + strings.Repeat("é", 50_000):            false,
		"/" + strings.Repeat("%63", 100_000) + ".php": false,
		"/" + strings.Repeat("c", 255):                true,
		"/b" + strings.Repeat("c", 253):               false,
		"/b" + strings.Repeat("c", 254):               false,
		"/b" + strings.Repeat("c", 255):               false,
	} {
		assert.Equal(t, r.Match(uri).Allowed, allowed, uri, len(uri), "octets")
	}
}

func TestMatchOddURI(t *testing.T) {
	r := Compile([]byte("User-agent: *\nDisallow: /a\nDisallow: /$\n"), "x")
	for uri, allowed := range map[string]bool{"": false, "a": false, "?x": true, "#": false, "#/a": false, "b": true,
		"/b#/a": true} {
		assert.Equal(t, r.Match(uri).Allowed, allowed, uri)
	}
}

func TestDisallowsAll(t *testing.T) {
	for rules, want := range map[string]bool{
		"Disallow: /":                            true,
		"Disallow: *":                            true,
		"Disallow: /*":                           true,
		"Disallow: /*$":                          true,
		"Disallow: */*":                          true,
		"Disallow: */":                           true,
		"Disallow: %2F":                          false,
		"Disallow: /$":                           false,
		"Disallow: *$*":                          false,
		"Disallow: /*/":                          false,
		"Disallow: //":                           false,
		"Disallow: /a\nDisallow: /":              true,
		"Disallow: /\nAllow: /a":                 false,
		"Disallow: /\nAllow: /":                  false,
		"Disallow: /**\nAllow: /a":               true,
		"Disallow: /*\nAllow: /a":                false,
		"Disallow: /*\nAllow: /":                 true,
		"Disallow: /\nAllow: a/b":                true,
		"Disallow:":                              false,
		"Allow: /":                               false,
		"Disallow: /\n\nUser-agent: B\nAllow: /": true,
	} {
		r := Compile([]byte("User-agent: *\n"+rules+"\n"), "amble")
		assert.Equal(t, r.DisallowsAll(), want, rules, !want)
	}
	assert.True(t, !new(Rules).DisallowsAll() && !Compile(nil).DisallowsAll(), "no rules disallow all")
}

func TestTokens(t *testing.T) {
	body := []byte("User-agent: *\nDisallow: /star\n\nUser-agent: amble\nDisallow: /amble\nCrawl-delay: " +
		"3\n\nUser-agent: amble-news\nDisallow: /news\n")
	tests := []struct {
		tokens []string
		group  string
		path   string // that is disallowed
	}{
		{[]string{"amble-news", "amble"}, "amble-news", "/news"},
		{[]string{"amble-images", "amble"}, "amble", "/amble"},
		{[]string{"AMBLE"}, "AMBLE", "/amble"},
		{[]string{"other", "another"}, "*", "/star"},
		{[]string{"", "amble"}, "amble", "/amble"},
		{nil, "*", "/star"},
	}
	for _, tt := range tests {
		r := Compile(body, tt.tokens...)
		assert.Equal(t, r.Group(), tt.group, tt.tokens, "group")
		for _, path := range []string{"/star", "/amble", "/news"} {
			assert.Equal(t, r.Match(path).Allowed, (path != tt.path), tt.tokens, path, r.Match(path))
		}
		_, ok := r.CrawlDelay()
		assert.True(t, ok == (tt.path == "/amble"), "%v: crawl-delay %v", tt.tokens, ok)
		p := Parse(body).Policy(tt.tokens...)
		assert.True(t, p.Group == tt.group && len(p.Rules) == 1 && p.Rules[0].Pattern == tt.path, "%v: policy %+v",
			tt.tokens, p)
	}
	for token, want := range map[string]bool{"amble": true, "A-b_C": true, "": false, "a1": false, "a/1": false,
		"é": false} {
		assert.Equal(t, ValidToken(token), want, "ValidToken", token, !want)
	}
}

func TestVerdictText(t *testing.T) {
	r := Compile([]byte("User-agent: *\nDisallow: /a b\nAllow: /x*%7e\n"), "amble")
	for uri, want := range map[string]string{"/a%20b": "Disallow: /a%20b", "/xy~": "Allow: /x*~", "/": "",
		"/robots.txt": ""} {
		assert.Equal(t, r.RuleText(r.Match(uri)), want, uri)
	}
	assert.Equal(t, r.RuleText(Verdict{Reason: ReasonRule, rule: 99}), "", "a verdict of other rules")
	v := new(Rules).Match("/")
	assert.True(t, v.Allowed && v.Reason == ReasonNone, "zero rules: %+v", v)
}

func TestEqual(t *testing.T) {
	base := Compile([]byte("User-agent: *\nDisallow: /a\nAllow: /b*\n"), "amble")
	for body, want := range map[string]bool{
		"User-agent: amble\n\n\nAllow: /b*\nDisallow: /a\nDisallow: /%61\n": true,
		"User-agent: *\nDisallow: /a\n":                                     false,
		"User-agent: *\nAllow: /a\nAllow: /b*\n":                            false,
		"User-agent: *\nDisallow: /a\nDisallow: /b*\n":                      false,
		"": false,
	} {
		assert.Equal(t, base.Equal(Compile([]byte(body), "amble")), want, body, !want)
	}
}

// TestConcurrentReaders is for the race detector.
func TestConcurrentReaders(t *testing.T) {
	f := benchFiles()[1]
	r := Compile(f.body, "amble")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				r.Match(f.uri)
				r.RuleText(r.Match("/section-0001/x9"))
			}
		})
	}
	wg.Wait()
}
