package seeds

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

func parse(t testing.TB, text string) weburl.URL {
	t.Helper()
	return must.Get(weburl.Parse(text))(t)
}

// TestHostileLines reads lines of lists that are bad, or would cost too much.
func TestHostileLines(t *testing.T) {
	const url = "http://a.test/ "
	big := strings.Repeat("x", 1001)
	for line, want := range map[string]string{
		url + "include=" + big:                            "include: \"xxx",
		url + "include=":                                  "include: \"\" has 0 bytes",
		url + "include=(":                                 "no regular expression",
		url + "include=" + strings.Repeat("(", 900):       "no regular expression",
		url + "include=(x{1000}){1000}":                   "no regular expression",
		url + "exclude=" + strings.Repeat("x{1000}", 100): "is too large",
		url + "exclude=" + strings.Repeat(`\pL`, 300):     "is too large",
		url + "include=\xff":                              "no regular expression",
		url + "tags=\xff":                                 "is no tag",
		url + "tags=a\x00":                                "is no tag",
		url + "tags=a\u202eb":                             "is no tag",
		url + "tags=" + strings.Repeat("t", 65):           "is no tag",
		url + "tags=" + strings.Repeat("t,", 40) + "t":    "want at most 32",
		url + strings.Repeat("include=x ", 101):           "want at most 100",
		url + "max_depth=65536":                           "want a whole number",
		url + "max_pages=4294967296":                      "want a whole number",
		url + "max_depth=-1":                              "want a whole number",
		url + "hops=256":                                  "want a whole number",
		url + "priority=101":                              "from -100 to 100",
		url + "store=maybe":                               "want yes or no",
		url + "recrawl=1ms":                               "1s or more",
		url + "recrawl=-1h":                               "1s or more",
		url + "scope=world":                               "want host, domain, prefix or any",
		url + "max_width=3":                               "no field of a seed",
		url + "news":                                      "want FIELD=VALUE",
		"http://\xff.test/":                               "not UTF-8",
		"http://a.test/" + strings.Repeat("a", 3000):      "too long",
		"12345":          "not a URL",
		"user@host.test": "not a URL",
		`{"url": "http://a.test/", "tags": "news"}`:            `"tags" is not`,
		`{"url": "http://a.test/", "priority": 300}`:           `"priority" is not`,
		`{"tags": ["news"]}`:                                   `has no "url"`,
		strings.Repeat(`{"url":`, 20_000):                      "not a JSON object",
		`{"url":"http://a.test/","include":["` + big + `"]}`:   "include: \"xxx",
		`{"url":"http://a.test/","include":["(x{1000}){20}"]}`: "no regular expression",
	} {
		_, err := ParseLine(line)
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%.60q: %v, want %q", line, err, want)
	}
}

// TestStored writes and reads all that may be said of a seed.
func TestStored(t *testing.T) {
	item, err := ParseLine("a.test/news/ scope=prefix include=/n/ exclude=/x/ exclude=/y/ max_depth=3 max_pages=9 " +
		"hops=2 links=sitemap priority=-7 recrawl=1h tags=news,daily store=no")
	must.Do(t, err)
	s := item.Seed("list:7")
	s.Settings = true
	got, err := Decode(s.URL.String(), s.Encode())
	assert.True(t, err == nil && fmt.Sprintf("%+v", got.Seed()) == fmt.Sprintf("%+v", s.Seed()) && got.Bare,
		"%+v, want %+v: %v", got, s, err)
	set := NewSet(ModeHost).With([]Seed{s})
	stored := set.Get(s.URL).Seed()
	assert.Equal(t, string(stored.Encode()), string(s.Encode()), "the set")
}

// Seed returns a copy that %+v shows with what store points to.
func (s *Seed) Seed() map[string]any {
	return map[string]any{"url": s.URL.String(), "row": string(s.Encode())}
}

// randomSeed is a seed of a small web, so that scopes overlap.
func randomSeed(t *testing.T, random *rand.Rand) Seed {
	var path strings.Builder
	for range random.IntN(3) {
		path.WriteString([]string{"a/", "b/", "c"}[random.IntN(3)])
	}
	s := Seed{URL: parse(t, fmt.Sprintf("http://h%d.example.com/%s", random.IntN(3), path.String()))}
	s.Scope = []string{"", "host", "domain", "prefix"}[random.IntN(4)]
	if random.IntN(3) == 0 {
		s.Include = []string{[]string{"a", "b"}[random.IntN(2)]}
	}
	if random.IntN(4) == 0 {
		s.Exclude = []string{"c$"}
	}
	return s
}

// nearest is Home by the sentence of its description.
func nearest(all map[string]Seed, u weburl.URL) (best string) {
	rank := func(s *Seed) int {
		f := folder(s.URL.String())
		switch below := strings.HasPrefix(u.String(), f) && s.URL.Host() == u.Host(); {
		case s.URL == u:
			return 1 << 20
		case below:
			return 1000 + len(f)
		case s.Scope == "prefix":
		case s.URL.Host() == u.Host():
			return 2
		case s.Scope == "domain":
			return 1
		}
		return 0
	}
	most := 0
	for _, url := range slices.Sorted(func(yield func(string) bool) {
		for url := range all {
			if !yield(url) {
				return
			}
		}
	}) {
		s := all[url]
		spec, err := s.compile(ModeHost)
		if err != nil || !spec.accepts(u) {
			continue
		}
		if r := rank(&s); r > most {
			best, most = url, r
		}
	}
	return best
}

// TestHome adds and removes seeds at random, and compares the seed of URLs with the description. A set does not change
// after it was made, and the same seeds are the same set, in whatever order they came.
func TestHome(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		all := make(map[string]Seed)
		set := NewSet(ModeHost)
		for range 30 {
			at := randomSeed(t, random).URL
			before, sum, length, was := set, set.Sum(), set.Len(), set.Home(at)
			if s := randomSeed(t, random); random.IntN(3) > 0 {
				all[s.URL.String()] = s
				set = set.With([]Seed{s})
			} else {
				delete(all, s.URL.String())
				set = set.With(nil, s.URL)
			}
			if before.Sum() != sum || before.Len() != length || before.Home(at) != was || set.Len() != len(all) {
				t.Fatalf("%d seeds, want %d; those before are %d, want %d", set.Len(), len(all), before.Len(), length)
			}
			got := ""
			if m := set.Home(at); m != nil {
				got = m.URL.String()
			}
			want := nearest(all, at)
			must.True(t, got == want, "the seed of %s is %q, want %q, of %+v", at, got, want, all)
		}
		var list []Seed
		for _, s := range all {
			list = append(list, s)
		}
		must.True(t, NewSet(ModeHost).With(list).Sum() == set.Sum(),
			"the same seeds, %+v, added at once are another set", list)
	}
}

// TestTargetsInAnyOrder has redirects of several seeds lead to the same host, and to the same URL, in each order: the
// seeds of all URLs are the same then. What is removed takes its targets along, and a late one does not come back.
func TestTargetsInAnyOrder(t *testing.T) {
	a, b := Seed{URL: parse(t, "http://a.test/")}, Seed{URL: parse(t, "http://b.test/")}
	a.Tags = []string{"a"}
	targets := []Seed{
		{URL: parse(t, "http://x.test/"), Of: a.URL}, {URL: parse(t, "http://x.test/"), Of: b.URL},
		{URL: parse(t, "http://x.test/b/"), Of: b.URL}, {URL: parse(t, "http://y.test/"), Of: b.URL},
	}
	start := NewSet(ModeHost).With([]Seed{a, b})
	var sum uint64
	for n := range 24 {
		order := rand.New(rand.NewPCG(uint64(n), 1)).Perm(len(targets))
		set := start
		for _, i := range order {
			of := set.Get(targets[i].Of)
			if n%2 == 0 && !set.Widens(of, targets[i].URL) { // else it was in flight when others were added
				continue
			}
			set = set.With([]Seed{targets[i]})
		}
		if sum == 0 {
			sum = set.Sum()
		}
		assert.Equal(t, set.Sum(), sum, "in the order", order, "it is another set")
		for url, want := range map[string]string{
			"http://x.test/p": "http://a.test/", "http://x.test/b/p": "http://b.test/",
			"http://y.test/p": "http://b.test/",
		} {
			if m := set.Home(parse(t, url)); m == nil || m.Root.String() != want {
				t.Errorf("in the order %v the seed of %s is %+v, want %s", order, url, m, want)
			}
		}
		set = set.With(nil, b.URL)
		assert.True(t, set.Home(targets[3].URL) == nil && set.With(targets[3:]).Home(targets[3].URL) == nil,
			"where a removed seed led is in scope")
	}
	far := start
	for i := range 2 * maxTargets {
		far = far.With([]Seed{{URL: parse(t, fmt.Sprintf("http://s%d.test/", i)), Of: a.URL}})
	}
	assert.Equal(t, far.Len(), 2+maxTargets, "seeds", maxTargets, "where the redirects of one lead")
}
