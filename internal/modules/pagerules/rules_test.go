package pagerules

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

type ruleText = extract.RuleText

// watched is a rule that keeps what it was applied to, and what it selected.
type watched struct {
	*Rule
	root     *html.Node
	speaks   func(*html.Node) bool
	selected extract.Selection
}

func (w *watched) Apply(root *html.Node, speaks func(*html.Node) bool) extract.Selection {
	w.root, w.speaks, w.selected = root, speaks, w.Rule.Apply(root, speaks)
	return w.selected
}

// elements returns those of the document, in its order.
func (w *watched) elements() (all []*html.Node) {
	for n := range w.root.Descendants() {
		if n.Type == html.ElementNode {
			all = append(all, n)
		}
	}
	return all
}

// readWith extracts a page of http://site.test/dir/page with a rule, all its text, media and forms included.
func readWith(t testing.TB, text []byte, rule extract.Rule) extract.Page {
	t.Helper()
	o := extract.DefaultOptions()
	o.Text, o.LinkText, o.Media, o.Forms, o.Rules = true, true, true, true, []extract.Rule{rule}
	header := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	page := must.Get(weburl.Parse("http://site.test/dir/page"))(t)
	return must.Get(extract.HTML(text, header, page, nil, o))(t)
}

// show writes links as "kind path".
func show(p extract.Page) string {
	var links []string
	for _, l := range p.Links {
		links = append(links, l.Kind.String()+" "+strings.TrimPrefix(l.URL.String(), "http://site.test"))
	}
	return strings.Join(links, ", ")
}

func mustRule(t testing.TB, text ruleText) *Rule {
	t.Helper()
	return must.Get(New(&text))(t)
}

func readRuled(t testing.TB, text string, rule ruleText) extract.Page {
	t.Helper()
	return readWith(t, []byte(text), mustRule(t, rule))
}

const article = `<html lang=en><head><title>An article</title><base href=/b/><link rel=canonical href=c>
	<link rel=next href=n>	<meta name=author content=" Jane  Doe "><meta http-equiv=refresh content="9;r"></head><body>
	<nav><a href=home>Home</a></nav><main><h1>Title</h1><p class="lead price">12 <b>€</b><script>x</script></p>
	<a href=1 rel=tag>one</a><ul><li>a</li><li>b</li></ul><div class=calendar><a href=day>day</a> soon</div>
	<a href=2 rel=tag>two</a><a rel=tag>three</a></main><a href=last>last</a>`

func TestRuleLinksAndIgnore(t *testing.T) {
	const everything = "canonical /b/c, link /b/n, refresh /b/r, anchor /b/home, anchor /b/1, anchor /b/day, " +
		"anchor /b/2, anchor /b/last"
	const words = "Title\n12 €\none\na\nb\nday soon\ntwothree"
	tests := []struct {
		name string
		rule ruleText
		want string
		text string
	}{
		{"nothing", ruleText{Pattern: "^/dir"}, everything, words},
		{"links", ruleText{Links: []string{"main a[href]"}},
			"refresh /b/r, anchor /b/1, anchor /b/day, anchor /b/2", words},
		{"what holds links", ruleText{Links: []string{"main, link[rel=next]"}, Ignore: []string{".calendar"}},
			"link /b/n, refresh /b/r, anchor /b/1, anchor /b/2", "Title\n12 €\none\na\nb\ntwothree"},
		{"ignore", ruleText{Ignore: []string{"nav", "main > :not(h1)"}},
			"canonical /b/c, link /b/n, refresh /b/r, anchor /b/last", "Title"},
		{"another host", ruleText{Hosts: []string{"other.test"}, Links: []string{"nothing"}}, everything, words},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := readRuled(t, article, tt.rule)
			if got := show(p); got != tt.want || p.Text != tt.text {
				t.Errorf("links %s\nwant  %s\ntext %q\nwant %q", got, tt.want, p.Text, tt.text)
			}
			assert.True(t, p.Canonical.String() == "http://site.test/b/c" && p.Title == "An article" &&
				p.Language == "en" && p.Whole, "%+v", p)
		})
	}
}

func TestRuleFields(t *testing.T) {
	rule := ruleText{Ignore: []string{".calendar"}, Fields: map[string]string{
		"price": ".price", "author": "meta[name=author]@content", "tags": "a[rel=tag]*", "hrefs": "main a@href*",
		"none": ".none", "noattr": "h1@class", "items": "ul", "whole": "main", "all": "main > *", "every": "main >**",
		"script": "script", "both": "h1, title*", "quoted": `[content="a@b"]`,
	}}
	got, err := json.Marshal(readRuled(t, article, rule).Fields)
	want := `{"all":"Title","author":"Jane Doe","both":["An article","Title"],` +
		`"every":["Title","12 €","one","a b","day soon","two","three"],"hrefs":["1","day","2"],` +
		`"items":"a b","price":"12 €","script":"x","tags":["one","two","three"],"whole":"Title 12 € one a b twothree"}`
	assert.True(t, err == nil && string(got) == want, "%v %s\nwant %s", err, got, want)
	rule.Hosts, rule.Pattern = []string{"*.test", "x.test"}, "^/dir/p"
	p := readRuled(t, article, rule)
	assert.True(t, p.Rule == 1 && len(p.Fields) != 0, "rule %d, fields %v", p.Rule, p.Fields)
	for _, other := range []ruleText{{Hosts: []string{"*.site.test"}}, {Hosts: []string{"test"}}, {Pattern: "^/page"}} {
		rule.Hosts, rule.Pattern = other.Hosts, other.Pattern
		p := readRuled(t, article, rule)
		assert.True(t, p.Rule == 0 && p.Fields == nil, "%+v: rule %d, fields %v", other, p.Rule, p.Fields)
	}
}

func TestRuleErrors(t *testing.T) {
	tests := []struct {
		rule      ruleText
		key, want string
	}{
		{ruleText{Pattern: "("}, "pattern", "missing closing )"},
		{ruleText{Links: []string{"a", "a["}}, "links", "not closed"},
		{ruleText{Links: []string{""}}, "links", "want an element"},
		{ruleText{Links: []string{"a,"}}, "links", "want an element"},
		{ruleText{Links: []string{"a >"}}, "links", "want an element"},
		{ruleText{Links: []string{"a)b"}}, "links", ""},
		{ruleText{Ignore: []string{"div:has(a)"}}, "ignore", ":has is not allowed"},
		{ruleText{Ignore: []string{"div:not(:contains(a))"}}, "ignore", ":contains is not allowed"},
		{ruleText{Ignore: []string{"div:matches(a)"}}, "ignore", ":matches is not allowed"},
		{ruleText{Ignore: []string{"div:lang(a)"}}, "ignore", ":lang is not allowed"},
		{ruleText{Ignore: []string{"a::before"}}, "ignore", "not allowed"},
		{ruleText{Ignore: []string{"li:nth-child(2n+1)"}}, "ignore", "want a number from 1 to 100"},
		{ruleText{Ignore: []string{"li:nth-child(101)"}}, "ignore", "want a number from 1 to 100"},
		{ruleText{Ignore: []string{"li:nth-of-type(1)"}}, "ignore", ":nth-of-type is not allowed"},
		{ruleText{Ignore: []string{"div:not(a b)"}}, "ignore", "without spaces and combinators"},
		{ruleText{Ignore: []string{"[a#=(b)]"}}, "ignore", "regular expressions"},
		{ruleText{Ignore: []string{strings.Repeat("a ", 65)}}, "ignore", "more than 64 parts"},
		{ruleText{Ignore: []string{":not(" + strings.Repeat("a,", 65) + "a)"}}, "ignore", "more than 64 parts"},
		{ruleText{Ignore: []string{strings.Repeat("a", 2000)}}, "ignore", "want at most 1024"},
		{ruleText{Fields: map[string]string{"a b": "a"}}, "fields.a b", "want a name"},
		{ruleText{Fields: map[string]string{"x": "a@"}}, "fields.x", "attribute behind @"},
		{ruleText{Fields: map[string]string{"x": "a@b c"}}, "fields.x", "attribute behind @"},
		{ruleText{Fields: map[string]string{"x": "a["}}, "fields.x", "not closed"},
	}
	many := map[string]string{}
	for i := range maxFields + 1 {
		many["f"+strings.Repeat("x", i)] = "a"
	}
	tests = append(tests, struct {
		rule      ruleText
		key, want string
	}{ruleText{Fields: many}, "fields.f" + strings.Repeat("x", maxFields), "more than 32 fields"})
	for _, tt := range tests {
		_, err := New(&tt.rule)
		var bad extract.RuleErrors
		assert.True(t, errors.As(err, &bad) && len(bad) == 1 && bad[0].Key == tt.key &&
			strings.Contains(err.Error(), tt.want), "%+v: %v", tt.rule, err)
	}
}

// Selectors match the same elements as cascadia does one at a time.
func TestSelectorsMatchAsCascadia(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	simple := []string{"a", "b", "p", "div", "*", ".x", "#y", "[href]", "a[href]", "div.x", ":first-child",
		"p:last-child", ":not(a)", ":not(a,.x)", ":empty", ":nth-child(2)", ":only-child", "[title='> ,']",
		":not([title=\"a b\"])", "body", ":root"}
	between := []string{" ", " ", ">", " > ", "+", " ~ ", "\t+ ", ", "}
	tags := []string{"<div>", "<div class='x z'>", "<p>", "<a href=1>", "<b id=y>", "</div>", "</p>", "</a>", "text",
		"<div title='> ,'>"}
	for range 2000 {
		var selector strings.Builder
		for i := range 1 + rnd.IntN(5) {
			if i > 0 {
				selector.WriteString(between[rnd.IntN(len(between))])
			}
			selector.WriteString(simple[rnd.IntN(len(simple))])
		}
		var text strings.Builder
		for range rnd.IntN(40) {
			text.WriteString(tags[rnd.IntN(len(tags))])
		}
		rule := &watched{Rule: mustRule(t, ruleText{Fields: map[string]string{"x": selector.String() + "*"}})}
		readWith(t, []byte(text.String()), rule)
		if strings.HasSuffix(selector.String(), "*") {
			continue // another mark of a list
		}
		want := cascadia.QueryAll(rule.root, cascadia.MustCompile(selector.String()))
		if got := rule.walk(rule.root, rule.speaks).matches[0]; !slices.Equal(got, want) {
			t.Fatalf("%q in %s: %d elements, want %d", selector.String(), text.String(), len(got), len(want))
		}
	}
}

// counting counts how often a part is tried.
type counting struct {
	cascadia.Sel
	n *int
}

func (c counting) Match(n *html.Node) bool {
	*c.n++
	return c.Sel.Match(n)
}

// On a page made to be hard for a selector, each part is tried once on an element.
func TestHardSelectorsAreLinear(t *testing.T) {
	selectors := []string{"a a a a a a b", "a ~ a ~ a ~ a b", "a + a + a", ":first-child :last-child",
		"div div div div div > b", "a:nth-child(100) a"}
	pages := []string{strings.Repeat("<svg><a>", 250) + strings.Repeat("<a/>", 4_000),
		strings.Repeat("<div>", 500) + strings.Repeat("<a></a>", 4_000),
		strings.Repeat("<i><a></a>", 4_000), strings.Repeat("x<!-- --><a></a>", 4_000)}
	for _, selector := range selectors {
		for i, page := range pages {
			rule, tries := &watched{Rule: mustRule(t, ruleText{Ignore: []string{selector}})}, 0
			for i := range rule.parts {
				rule.parts[i].matcher = counting{rule.parts[i].matcher, &tries}
			}
			readWith(t, []byte(page), rule)
			size := len(rule.elements())
			assert.AtMost(t, tries, len(rule.parts)*size, selector, "on page", i, "tries for elements:", size)
		}
	}
}

// Values and matches are bounded, and a page that has more is marked.
func TestFieldsAreBounded(t *testing.T) {
	long := strings.Repeat("word ", 10_000)
	nested := strings.Repeat("<div>", 90) + strings.Repeat("<i> </i>", 25_000)
	tests := []struct{ name, text, selector string }{
		{"a long text", "<p>" + long, "p"}, {"a long attribute", "<p title='" + long + "'>", "p@title"},
		{"many matches", strings.Repeat("<p>x</p>", maxValues+1), "p*"},
		{"many long matches", strings.Repeat("<p>"+long[:maxValue]+"</p>", maxValues), "p*"},
		{"an empty text of many nodes", nested, "div*"},
		{"very many classes", strings.Repeat("<p class='"+strings.Repeat("a ", 100)+"'></p>", 12_000),
			strings.Repeat(".b, ", 60) + "p"},
		{"a document that is too large", strings.Repeat("<b>x</b>", 200_000), "b"},
	}
	for _, tt := range tests {
		p := readRuled(t, tt.text, ruleText{Fields: map[string]string{"x": tt.selector}})
		size := 0
		switch value := p.Fields["x"].(type) {
		case string:
			size = len(value)
		case []string:
			size = len(strings.Join(value, ""))
			assert.True(t, len(value) <= maxValues, "%s: %d values", tt.name, len(value))
		}
		assert.True(t, p.Cut != 0 && size <= maxFieldsBytes, "%s: %d bytes, cut %v", tt.name, size, p.Cut)
	}
	assert.Equal(t, readRuled(t, "<p>short", ruleText{Fields: map[string]string{"x": "p"}}).Cut, 0,
		"a short value is said to be truncated")
}

func FuzzRule(f *testing.F) {
	f.Add("main a[href]", ".price@x*", []byte(article))
	f.Add(`a:not(.b,[c="d)"]) > *`, `a\,b@c`, []byte("<div><p class=b>x"))
	f.Fuzz(func(t *testing.T, links, value string, text []byte) {
		rule, err := New(&ruleText{Links: []string{links}, Fields: map[string]string{"x": value}})
		if err != nil {
			return
		}
		w := &watched{Rule: rule}
		all, err := cascadia.Parse(links)
		if p := readWith(t, bytes.ToValidUTF8(text, nil), w); err != nil || p.Cut != 0 {
			return // a list of selectors
		}
		for _, n := range w.elements() {
			inside := all.Match(n)
			for above := range n.Ancestors() {
				inside = inside || above.Type == html.ElementNode && all.Match(above)
			}
			must.True(t, !w.speaks(n) || inside != w.selected.Muted[n], "%q: %v is muted: %v", links, n,
				w.selected.Muted[n])
		}
	})
}
