package frontier

import (
	"regexp"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

func TestScope(t *testing.T) {
	const seed = "http://www.example.co.uk/docs/intro.html?x=/y/"
	for _, c := range []struct {
		mode Mode
		url  string
		want ScopeVerdict
	}{
		{ModeHost, "http://www.example.co.uk/", InScope},
		{ModeHost, "https://www.example.co.uk:8443/other", InScope},
		{ModeHost, "http://example.co.uk/", OutOfSeeds},
		{ModeHost, "http://www.example.co.uk.evil.com/", OutOfSeeds},
		{ModeDomain, "https://static.example.co.uk/", InScope},
		{ModeDomain, "http://example.co.uk/", InScope},
		{ModeDomain, "http://other.co.uk/", OutOfSeeds},
		{ModeDomain, "http://notexample.co.uk/", OutOfSeeds},
		{ModePrefix, "http://www.example.co.uk/docs/", InScope},
		{ModePrefix, "http://www.example.co.uk/docs/a/b?q", InScope},
		{ModePrefix, "http://www.example.co.uk/docs", OutOfSeeds},
		{ModePrefix, "http://www.example.co.uk/docsother/", OutOfSeeds},
		{ModePrefix, "http://www.example.co.uk/?/docs/", OutOfSeeds},
		{ModePrefix, "https://www.example.co.uk/docs/", OutOfSeeds},
		{ModePrefix, "http://www.example.co.uk:81/docs/", OutOfSeeds},
		{ModeAny, "http://anything.test/", InScope},
		{ModeAny, "http://anything.test/print/a", IsExcluded},
		{ModeAny, "http://anything.test/no", NotIncluded},
		{ModeHost, "http://other.test/no", OutOfSeeds},
		{ModeHost, "http://www.example.co.uk/print/x", IsExcluded},
	} {
		var include, exclude []*regexp.Regexp
		if c.want == NotIncluded {
			include = []*regexp.Regexp{regexp.MustCompile(`/a$`), regexp.MustCompile(`/yes`)}
		}
		if c.want == IsExcluded {
			exclude = []*regexp.Regexp{regexp.MustCompile(`/print/`)}
		}
		s := NewScope(c.mode, include, exclude, mustURL(t, seed))
		assert.Equal(t, s.Check(mustURL(t, c.url), seeds.Ref{}), c.want, "mode", c.mode, c.url)
	}
}

func TestScopeAddresses(t *testing.T) {
	s := NewScope(ModeDomain, nil, nil, mustURL(t, "http://192.0.2.7/"), mustURL(t, "http://[2001:db8::1]/"))
	for url, want := range map[string]ScopeVerdict{
		"http://192.0.2.7:8080/a": InScope, "http://192.0.2.8/": OutOfSeeds, "http://9.0.2.7/": OutOfSeeds,
		"http://[2001:db8::1]:81/": InScope, "http://[2001:db8::2]/": OutOfSeeds,
	} {
		assert.Equal(t, s.Check(mustURL(t, url), seeds.Ref{}), want, url)
	}
}

// TestScopeWith widens a scope and leaves the one it came from alone.
func TestScopeWith(t *testing.T) {
	narrow := NewScope(ModeHost, nil, []*regexp.Regexp{regexp.MustCompile("secret")}, mustURL(t, "http://a.test/"))
	wide := with(narrow, mustURL(t, "http://b.test/"))
	b := mustURL(t, "http://b.test/x")
	assert.True(t, narrow.Check(b, seeds.Ref{}) == OutOfSeeds && wide.Check(b, seeds.Ref{}) == InScope &&
		wide.Check(mustURL(t, "http://a.test/"), seeds.Ref{}) == InScope, "With changed the wrong scope")
	assert.Equal(t, wide.Check(mustURL(t, "http://b.test/secret"), seeds.Ref{}), IsExcluded,
		"With forgot what is excluded")
}

func TestParseMode(t *testing.T) {
	for name, want := range map[string]Mode{"host": ModeHost, "domain": ModeDomain, "prefix": ModePrefix,
		"any": ModeAny} {
		assert.Returns(seeds.ParseMode(name))(t, want, "ParseMode", name)
	}
	assert.Fails(seeds.ParseMode("Host"))(t, nil, "ParseMode took Host")
}

// TestScopeChanges applies a new scope to what is queued already.
func TestScopeChanges(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add(urls("http://a.test/", 20)...)
	w.open()
	w.run(10 * time.Second)
	pages := len(w.pages())
	w.f.SetScope(NewScope(ModeHost, nil, nil, mustURL(t, "http://b.test/")))
	w.finish(time.Minute, time.Hour)
	again := len(w.pages())
	assert.True(t, pages != 0 && again <= pages+1, "%d pages, then %d", pages, again)
	assert.Equal(t, w.state(t, "http://a.test/19").State, storage.Excluded)
}

// TestScopeSum: scopes that keep the same links have the same sum, whatever the order of their seeds, and others have
// others.
func TestScopeSum(t *testing.T) {
	expression := []*regexp.Regexp{regexp.MustCompile("/a")}
	a, b := mustURL(t, "http://a.test/"), mustURL(t, "http://b.test/")
	base := NewScope(ModeHost, nil, nil, a, b)
	assert.Equal(t, base.Sum(), with(NewScope(ModeHost, nil, nil, b), a, b).Sum(), "the order of the seeds counts")
	host := optout.Entry{Scope: optout.ScopeHost, Value: "c.test"}
	ends := host
	ends.Until = time.Unix(1<<31, 0)
	sums := map[uint64]string{base.Sum(): "the first"}
	for name, s := range map[string]*Scope{
		"a mode": NewScope(ModeDomain, nil, nil, a, b), "a seed": with(base, mustURL(t, "http://c.test/")),
		"include": base.WithExpressions(expression, nil), "exclude": base.WithExpressions(nil, expression),
		"an opt-out": base.WithOptOuts(optout.NewList(host)), "one that ends": base.WithOptOuts(optout.NewList(ends)),
	} {
		other, has := sums[s.Sum()]
		assert.True(t, !has, "%s has the sum of %s", name, other)
		sums[s.Sum()] = name
	}
}

// with returns a scope with more seeds.
func with(s *Scope, urls ...weburl.URL) *Scope {
	var more []seeds.Seed
	for _, u := range urls {
		more = append(more, seeds.Seed{URL: u})
	}
	return s.WithSeeds(s.Seeds().With(more))
}
