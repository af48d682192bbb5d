package weburl

import (
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// allRules has every rule.
var allRules = Rules{
	StripParameters: []string{"utm_*", "gclid"}, SortQuery: true, DropEmptyQuery: true, CollapseSlashes: true,
	NormalizeEscapes: true,
}

// documentedRules are the rules by the names of their settings in docs/URLS.md.
var documentedRules = map[string]*Rules{
	"urls.strip_parameters":  {StripParameters: []string{"utm_*", "gclid"}},
	"urls.sort_query":        {SortQuery: true},
	"urls.drop_empty_query":  {DropEmptyQuery: true},
	"urls.collapse_slashes":  {CollapseSlashes: true},
	"urls.normalize_escapes": {NormalizeEscapes: true},
}

func TestRules(t *testing.T) {
	strip, sort := documentedRules["urls.strip_parameters"], documentedRules["urls.sort_query"]
	slashes, escapes, empty := documentedRules["urls.collapse_slashes"], documentedRules["urls.normalize_escapes"],
		documentedRules["urls.drop_empty_query"]
	tests := []struct {
		rules     *Rules
		uri, want string
	}{
		{&Rules{}, "//a?&b=%7e&a", "//a?&b=%7e&a"},
		{strip, "/a?utm_source=x", "/a"},
		{strip, "/a?b=1&UTM_Source=x&c=2&gclid", "/a?b=1&c=2"},
		{strip, "/a?b=utm_source&xgclid=1", "/a?b=utm_source&xgclid=1"},
		{strip, "/a?", "/a?"},
		{strip, "/a?utm_a=1&", "/a"},
		{strip, "/gclid=1", "/gclid=1"},
		{sort, "/a?b=2&a=1&b=1&a", "/a?a=1&a&b=2&b=1"},
		{sort, "/a?&b", "/a?&b"},
		{empty, "/a?", "/a"},
		{empty, "/a?b", "/a?b"},
		{slashes, "////a//b///?//", "/a/b/?//"},
		{escapes, "/%7e%2f%41%20?%7e%3d", "/~%2FA%20?~%3D"},
		{escapes, "/%%34%31", "/%%341"},
		{escapes, "/%4%31", "/%4%31"},
		{escapes, "/%zz%", "/%zz%"},
		{&allRules, "//%61?utm_x=1&c&%62=1&b=2&gclid=7", "/a?b=1&b=2&c"},
		{&allRules, "/?utm_x=1", "/"},
		{&allRules, "/a%2e%2E/b", "/a../b"},
	}
	for _, tt := range tests {
		u := must.Get(Parse("https://example.com" + tt.uri))(t)
		checkRules(t, tt.rules, u)
		if got, _ := tt.rules.Apply(u); got.RequestURI() != tt.want {
			t.Errorf("%s: %s, want %s", tt.uri, got.RequestURI(), tt.want)
		}
	}
}

// checkRules checks invariants: the result is canonical, and applying the rules again changes
// nothing.
func checkRules(t *testing.T, r *Rules, u URL) {
	t.Helper()
	once, _ := r.Apply(u)
	checkInvariants(t, once)
	twice, _ := r.Apply(once)
	assert.True(t, twice == once, "%v becomes %v, and that %v", u, once, twice)
	assert.Equal(t, once.Origin(), u.Origin(), u, "becomes", once)
}

func TestRulesLength(t *testing.T) {
	u := must.Get(Parse("http://example.com/?utm_x=" + strings.Repeat("a", 100)))(t)
	for _, tt := range []struct {
		rules Rules
		want  bool
	}{{Rules{}, true}, {Rules{MaxLength: 50}, false}, {Rules{MaxLength: len(u.String())}, true},
		{Rules{MaxLength: 50, StripParameters: []string{"utm_*"}}, true}} {
		_, ok := tt.rules.Apply(u)
		assert.True(t, ok == tt.want, "%+v: %v", tt.rules, ok)
	}
}

func TestUnusedRulesCostNothing(t *testing.T) {
	u := must.Get(Parse("http://example.com/a/b?c=d&e=f"))(t)
	var r Rules
	if n := testing.AllocsPerRun(100, func() { r.Apply(u) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzRules checks that each rule alone, and all together, give a canonical form that they do not
// change again.
func FuzzRules(f *testing.F) {
	for _, seed := range []string{"/", "//a//b?", "/%%34%31", "/?utm_a=1&b&a=%7e", "/%2e%2e/..%2f", "/a?b=2&a=1",
		"/%%%333"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := Parse("http://example.com/" + target)
		if err != nil {
			return
		}
		checkRules(t, &allRules, u)
		for _, r := range documentedRules {
			checkRules(t, r, u)
		}
	})
}
