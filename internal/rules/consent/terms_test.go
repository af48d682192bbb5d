package consent

import (
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestTerms has the rules of Really Simple Licensing 1.0, sections 3.1 to 3.12, one by one.
func TestTerms(t *testing.T) {
	const search, train, all = `<permits type="usage">search</permits>`, `<prohibits type="usage">ai-train</prohibits>`,
		`<permits type="usage">all</permits>`
	content := func(url, licenses string) string {
		return `<content url="` + url + `">` + licenses + `</content>`
	}
	none, open := "train-ai=n, ai-input=n, search=n", "train-ai=n, ai-input=y, search=y"
	in := func(url, terms string) string { return content(url, "<license>"+terms+"</license>") }
	one := func(terms string) string { return in("/", terms) }
	for name, test := range map[string]struct{ rsl, want string }{
		"prohibited":              {one(train), "train-ai=n"},
		"permitted":               {one(all), "train-ai=y, ai-input=y, search=y"},
		"a list is closed":        {one(search), "train-ai=n, ai-input=n, search=y"},
		"both":                    {one(all + train), open},
		"all of artificial minds": {one(`<prohibits type="usage">ai-all</prohibits>`), "train-ai=n, ai-input=n"},
		"an index of theirs":      {one(`<prohibits type="usage">ai-index</prohibits>`), "ai-input=n"},
		"nothing but an index":    {one(`<permits type="usage">ai-index</permits>`), none},
		"several uses": {
			one("<prohibits type='usage'>\n ai-train\tAI-INPUT </prohibits>"), "train-ai=n, ai-input=n"},
		"words of drafts":     {one("<prohibits type='usage'>train-ai,train-genai</prohibits>"), "train-ai=n"},
		"unknown uses":        {one("<prohibits type='usage'>x:y print</prohibits>"), ""},
		"attribution":         {one(search + `<payment type="attribution"/>`), "train-ai=n, ai-input=n, search=y"},
		"a price":             {one(all + `<payment type="crawl"/>`), none},
		"a price and no list": {one(`<payment type="use"/>`), none},
		"reports":             {one(all + `<reporting type="audit" profile="x:y"/>`), none},
		"for some people":     {one(all + `<permits type="user">education</permits>`), none},
		"not from everywhere": {one(all + `<prohibits type="geo">EU</prohibits>`), none},
		"one free, one for a price": {content("/", "<license>"+search+"</license><license>"+all+
			`<payment type="training"/></license>`),
			"train-ai=n, ai-input=n, search=y"},
		"from a server": {`<content url="/" server="https://l.test/"><license>` + all +
			`</license></content>`, none},
		"narrower":          {in("/*", all) + in("/a/", train), open},
		"in another order":  {in("/a/", train) + in("/*", all), open},
		"equally narrow":    {in("/a/", all) + in("/a/", train), open},
		"another part":      {in("/b/", train), ""},
		"an end":            {in("*.pdf$", train), ""},
		"a host":            {in("https://A.test:8080/a", train), "train-ai=n"},
		"a whole host":      {in("https://a.test", train), "train-ai=n"},
		"another host":      {in("https://b.test/", train), ""},
		"no place":          {in("", train), "train-ai=n"},
		"no slash":          {in("a/", train), "train-ai=n"},
		"no license":        {content("/", ""), ""},
		"terms of others":   {`<content url="/"><x:license xmlns:x="urn:x">` + train + `</x:license></content>`, ""},
		"terms elsewhere":   {`<license>` + train + `</license>`, ""},
		"terms in a legal":  {one(`<legal type="x">` + train + `</legal>`), ""},
		"text around":       {one("ai-train<!-- " + train + " -->" + search), "train-ai=n, ai-input=n, search=y"},
		"marked text":       {one("<prohibits type='usage'><![CDATA[ai-train]]></prohibits>"), "train-ai=n"},
		"an element within": {one("<prohibits type='usage'>ai-input<b>search</b>ai-train</prohibits>"), "ai-input=n"},
	} {
		for _, root := range []string{`<rsl xmlns="` + termsSpace + `" max-age="7">`, "<rsl>"} {
			terms, err := ParseTerms([]byte("<?xml version='1.0' encoding='UTF-8'?>\n" + root + test.rsl + "</rsl>\n"))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, form := range []func() (Terms, error){
				func() (Terms, error) { return terms, nil },
				func() (Terms, error) { return ParseTerms(terms.Encode()) },
			} {
				of, err := form()
				s, ok := of.Statement(SourceHeader, "https://a.test/rsl.xml", "a.test", "/a/x")
				assert.True(t, err == nil && s.Preferences.String() == test.want && ok == (test.want != ""),
					"%s: %q, %v, %v, want %q", name, s.Preferences, ok, err, test.want)
			}
		}
	}
	terms, _ := ParseTerms([]byte("<rsl>" + one(search) + "</rsl>"))
	s, _ := terms.Statement(SourceRobots, "https://a.test/rsl.xml", "a.test", "/")
	const want = "robots.txt license: https://a.test/rsl.xml permits search, prohibits ai-train ai-input"
	assert.Equal(t, s.String(), want, s)
}

// TestHostileTerms: what is no document of terms says nothing, and what is large says what is within the bounds.
func TestHostileTerms(t *testing.T) {
	const rule = `<content url="/"><license><prohibits type="usage">all</prohibits></license></content>`
	for _, bad := range []string{
		"", "<html></html>", "{}", "<rsl>", "<rsl>&x;</rsl>", "<!DOCTYPE rsl [<!ENTITY a '&b;'>]><rsl>&a;</rsl>",
		"<rsl>" + strings.Repeat("<a>", 10_000),
		strings.Repeat("<rsl>", maxTermsDepth+1) + strings.Repeat("</rsl>", maxTermsDepth+1),
		"<rsl>" + strings.Repeat(" ", MaxTerms) + "</rsl>", "<?xml version='1.0' encoding='utf-7'?><rsl/>",
	} {
		assert.Fails(ParseTerms([]byte(bad)))(t, nil, bad, "is read as")
	}
	terms, err := ParseTerms([]byte("<rsl>" + strings.Repeat(rule, 2*maxContents) + "</rsl>"))
	assert.True(t, err == nil && len(terms.contents) == maxContents, "%d contents, %v", len(terms.contents), err)
	words := strings.Repeat("x ", 10*maxUses) + "ai-train"
	terms, err = ParseTerms([]byte(`<rsl><content url="/"><license><permits type="usage">` + words +
		"</permits></license></content></rsl>"))
	s, _ := terms.Statement(SourceMeta, "x", "a.test", "/")
	assert.True(t, err == nil && s.Preferences[TrainAI] == Disallowed, "%v, %v", s, err)
}
