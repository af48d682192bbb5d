package wall

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestMarks(t *testing.T) {
	m := NewMarks()
	tests := []struct {
		name   string
		header map[string][]string
		body   string
		want   string
		tier   Tier
		excuse bool // or a gate
	}{
		{"field", map[string][]string{"Cf-Mitigated": {"challenge"}}, "", "Cloudflare", TierHeader, false},
		{"other value", map[string][]string{"Cf-Mitigated": {"block"}}, "", "", TierNone, false},
		{"spelling", map[string][]string{"X-Amzn-Waf-Action": {"x", " CAPTCHA"}}, "", "AWS WAF", TierHeader, false},
		{"allowed by DataDome", map[string][]string{"X-Datadome": {"protected"}}, "", "", TierNone, false},
		{"refused by DataDome", map[string][]string{"X-Dd-B": {"1"}}, "", "DataDome", TierHeader, false},
		{"target", map[string][]string{"Location": {"https://VALIDATE.perfdrive.com/x?ssa=1"}}, "", "Radware",
			TierHeader, false},
		{"case", nil, "<TITLE>just a MOMENT...</TITLE>", "Cloudflare", TierPage, false},
		{"strongest", nil, "Verify you are human /_Incapsula_Resource id=\"px-captcha", "HUMAN (PerimeterX)",
			TierPage, false},
		{"overlapping", nil, "hcaptcha.com/hcaptcha.com/1/api.js", "hCaptcha", TierStub, false},
		{"excuse", nil, "Page not found; type=password", "", TierNone, true},
		{"both", nil, "<title>Access Denied</title><input type=\"password\">", "", TierPhrase, true},
		{"gate", nil, "ACCEPT ALL COOKIES", "", TierNone, true},
		{"turnstile alone", nil, `<div class="cf-turnstile">`, "", TierNone, false},
		{"beyond", nil, strings.Repeat("x", bodyBytes-3) + "#px-captcha{", "", TierNone, false},
		{"at the end", nil, strings.Repeat("x", bodyBytes-12) + "#px-captcha{", "HUMAN (PerimeterX)", TierPage, false},
		{"half", nil, "#px-captcha", "", TierNone, false},
	}
	for _, test := range tests {
		k := m.Find(test.header, []byte(test.body))
		assert.True(t, m.Name(k.Wall) == test.want && k.Tier == test.tier && (k.Excuse || k.Gate) == test.excuse,
			"%s: %s, %+v", test.name, m.Name(k.Wall), k)
	}
}

func TestParseMarksRefuses(t *testing.T) {
	const good = "1 | A | page | some text | source | 2026-11-22\n"
	for _, line := range []string{
		"1 | A | page | some text | source", "x | A | page | some text | source | 2026-11-22",
		"1 | A | side | some text | source | 2026-11-22", "1 | A | page | short | source | 2026-11-22",
		"1 | A | page | some text |  | 2026-11-22", "1 | A | page | some text | source | November",
		"1 | B | page | some text | source | 2026-11-22", "1 | A | header | name value | source | 2026-11-22",
		"1 | A | header | name ! value | source | 2026-11-22",
	} {
		_, err := parseMarks(good + line)
		assert.True(t, err != nil, "%s: no error", line)
	}
}

// TestMatcher compares the search with one text after the other, in bodies made of pieces of them.
func TestMatcher(t *testing.T) {
	m := NewMarks()
	var patterns []pattern
	for line := range strings.Lines(marksText) {
		if k, err := parseMark(strings.TrimSpace(line)); err == nil && k.tier != TierHeader {
			patterns = append(patterns, pattern{text: k.text, mark: Mark{Wall: k.wall, Tier: k.tier}})
		}
	}
	must.True(t, len(patterns) >= 80, "%d texts", len(patterns))
	rapid.Check(t, func(t *rapid.T) {
		var body strings.Builder
		for range rapid.IntRange(0, 12).Draw(t, "pieces") {
			text := rapid.SampledFrom(patterns).Draw(t, "text").text
			from := rapid.IntRange(0, len(text)).Draw(t, "from")
			body.WriteString(text[from:rapid.IntRange(from, len(text)).Draw(t, "to")])
			body.WriteString(
				rapid.SampledFrom([]string{"", "<", "é", "x", " ", text, strings.ToUpper(text)}).Draw(t, "then"))
		}
		var want Mark
		lowered := strings.ToLower(body.String())
		for _, p := range patterns {
			if strings.Contains(lowered, strings.ToLower(p.text)) {
				want = stronger(want, p.mark)
			}
		}
		got := m.body.find([]byte(body.String()))
		must.True(t, got.Tier == want.Tier && got.Excuse == want.Excuse && got.Gate == want.Gate,
			"%+v instead of %+v in %q", got, want, body.String())
	})
}

func FuzzFind(f *testing.F) {
	m := NewMarks()
	f.Add([]byte("<title>Just a moment...</title>"), "example.org/a/b")
	f.Fuzz(func(t *testing.T, body []byte, url string) {
		m.Find(map[string][]string{"Location": {url}}, body)
		assert.True(t, Shape(body, url)&1 == 0 || MayHaveKey(body), "%q has a key", body)
		Sections(url)
	})
}

func TestShape(t *testing.T) {
	const one = `<html><title>Wait</title><p>Hold on.</p><p>Denied: https://www.example.com/security/report</p><i>ab12</i>`
	const same = `<HTML lang="de"><script>var x="<p>more</p>"</script><title>wait</title><p class=x>hold on</p><p>Denied: ` +
		`https://www.example.com/news/today</p><i>zz99zz</i>`
	a, b := Shape([]byte(one), "www.example.com/security/report"), Shape([]byte(same), "www.example.com/news/today")
	if script := Shape([]byte(strings.Replace(one, "<title>", "<script></script><title>", 1)),
		"www.example.com/security/report"); b != script || a == b {
		t.Errorf("shapes %x, %x and %x", a, b, script)
	}
	c := Shape([]byte(strings.Replace(one, "Hold", "Go", 1)), "www.example.com/security/report")
	assert.True(t, c != a, "another word has the same shape")
}

// TestMayHaveKey: it is true wherever the shape of a document is odd, and false for the pages that most hosts have.
func TestMayHaveKey(t *testing.T) {
	for body, want := range map[string]bool{
		"<p>It is 2026, the 28th of November.</p><a href=\"/page-1000\">12345678</a>": false,
		"<p>Request a1b2c3d4":                        true,
		"<p>Request 1b2c3d4 and":                     false,
		"abcdefg1":                                   true,
		"1234567é":                                   true,
		strings.Repeat("x", shapeBytes-1) + "1":      true,
		strings.Repeat("<", shapeBytes) + "a1234567": false,
		"": false,
	} {
		got := MayHaveKey([]byte(body))
		assert.True(t, got == want, "%.60q: %v", body, got)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
			"<", ">", "p", " ", "0a1b2c3d", "7", "abcdefg", "<script>", "é", "2026", "-",
		})).Draw(t, "text"), "")
		must.True(t, Shape([]byte(text), "")&1 == 0 || MayHaveKey([]byte(text)), "%q has a key", text)
	})
}
