package robots

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// The reference implements RFC 9309 as slowly and plainly as possible, and shares nothing with the
// engine.

type refRule struct {
	allow   bool
	pattern string // normal form
	line    int
}

type refGroup struct {
	names []string // lower case; "*" for everybody
	rules []refRule
}

const refSpace = " \t\n\v\f\r"

// refParse follows sections 2.2, 2.2.1 and 2.2.4.
func refParse(body string) []refGroup {
	for _, mark := range []string{"\xEF\xBB\xBF", "\xEF\xBB", "\xEF"} {
		if strings.HasPrefix(body, mark) {
			body = body[len(mark):]
			break
		}
	}
	body = strings.ReplaceAll(body, "\r\n", "\n")
	body = strings.ReplaceAll(body, "\r", "\n")
	var groups []refGroup
	afterRule := true
	for i, line := range strings.Split(body, "\n") {
		key, value := refSplit(line)
		switch {
		case refHasPrefix(key, "user-agent", "useragent", "user agent"):
			if afterRule {
				groups = append(groups, refGroup{})
				afterRule = false
			}
			g := &groups[len(groups)-1]
			g.names = append(g.names, refName(value))
		case refHasPrefix(key, "allow", "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"):
			if len(groups) == 0 {
				continue
			}
			afterRule = true
			if value == "" {
				continue
			}
			g := &groups[len(groups)-1]
			g.rules = append(g.rules, refRule{refHasPrefix(key, "allow"), refNormal(value, true), i + 1})
		}
	}
	return groups
}

func refHasPrefix(key string, words ...string) bool {
	for _, w := range words {
		if len(key) >= len(w) && refLower(key[:len(w)]) == w {
			return true
		}
	}
	return false
}

func refLower(s string) string {
	b := []byte(s)
	for i := range b {
		if strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZ", b[i]) >= 0 {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}

func refSplit(line string) (key, value string) {
	line, _, _ = strings.Cut(line, "#")
	line = strings.Trim(line, refSpace)
	key, value, found := strings.Cut(line, ":")
	if !found {
		words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
		if len(words) != 2 {
			return "", ""
		}
		key, value = words[0], words[1]
	}
	return strings.Trim(key, refSpace), strings.Trim(value, refSpace)
}

func refName(value string) string {
	if value == "*" || strings.HasPrefix(value, "*") && strings.ContainsRune(refSpace, rune(value[1])) {
		return "*"
	}
	name := ""
	for i := 0; i < len(value) && strings.IndexByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_",
		value[i]) >= 0; i++ {
		name += value[i : i+1]
	}
	return refLower(name)
}

// refNormal follows section 2.2.2: percent-encode what is not ASCII and what no URI may hold,
// decode what is unreserved. In a pattern the special characters of section 2.2.3 stay, in a URL
// they are encoded.
func refNormal(s string, pattern bool) string {
	const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	const reserved = ":/?#[]@!$&'()*+,;="
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		var octet byte
		switch {
		case c == '%' && i+2 < len(s) && refHex(s[i+1:i+3], &octet):
			if strings.IndexByte(unreserved, octet) >= 0 {
				out.WriteByte(octet)
			} else {
				fmt.Fprintf(&out, "%%%02X", octet)
			}
			i += 2
		case c == '%':
			out.WriteByte('%')
		case c == '*' && pattern, c == '$' && pattern && i == len(s)-1:
			out.WriteByte(c)
		case c == '*' || c == '$':
			fmt.Fprintf(&out, "%%%02X", c)
		case strings.IndexByte(unreserved+reserved, c) >= 0:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

func refHex(s string, octet *byte) bool {
	for _, c := range []byte(s) {
		if strings.IndexByte("0123456789abcdefABCDEF", c) < 0 {
			return false
		}
	}
	_, err := fmt.Sscanf(s, "%x", octet)
	return err == nil
}

// refMatches fills a table: does the first i octets of the pattern match the first j of the path?
func refMatches(pattern, path string) bool {
	anchored := strings.HasSuffix(pattern, "$")
	pattern = strings.TrimSuffix(pattern, "$")
	if !anchored {
		pattern += "*"
	}
	row := make([]bool, len(path)+1)
	row[0] = true
	for i := range len(pattern) {
		next := make([]bool, len(path)+1)
		for j := range next {
			if pattern[i] == '*' {
				next[j] = row[j] || j > 0 && next[j-1]
			} else {
				next[j] = j > 0 && row[j-1] && pattern[i] == path[j-1]
			}
		}
		row = next
	}
	return row[len(path)]
}

// refVerdict returns the verdict by sections 2.2.1 and 2.2.2. octets is the length of the pattern
// that decided, 0 if none did.
func refVerdict(body string, tokens []string, uri string) (allowed bool, octets int) {
	if !strings.HasPrefix(uri, "/") {
		uri = "/" + uri
	}
	uri, _, _ = strings.Cut(uri, "#")
	path := refNormal(uri, false)
	if path == "/robots.txt" {
		return true, 0
	}
	allowed = true
	for _, r := range refRules(refParse(body), tokens) {
		n := len(r.pattern)
		if refMatches(r.pattern, path) && (n > octets || n == octets && r.allow) {
			allowed, octets = r.allow, n
		}
	}
	return allowed, octets
}

func refRules(groups []refGroup, tokens []string) []refRule {
	for _, want := range append(append([]string{}, tokens...), "*") {
		var rules []refRule
		found := false
		for _, g := range groups {
			for _, name := range g.names {
				if name == refLower(want) {
					found = true
					rules = append(rules, g.rules...)
					break
				}
			}
		}
		if found {
			return rules
		}
	}
	return nil
}

// compare compares the engine with the reference for one file and URL.
func compare(t *testing.T, body []byte, tokens []string, uri string) {
	t.Helper()
	r := Compile(body, tokens...)
	v := r.Match(uri)
	allowed, octets := refVerdict(string(body), tokens, uri)
	got := 0
	if v.Reason == ReasonRule {
		_, pattern, _ := strings.Cut(r.RuleText(v), ": ")
		got = len(pattern)
	}
	if v.Allowed != allowed || got != octets {
		t.Fatalf("%q for %q, URL %q: %+v %q, the reference says %v by %d octets", body, tokens, uri, v, r.RuleText(v),
			allowed, octets)
	}
	if v.Reason == ReasonRule {
		key, value := refSplit(strings.Split(strings.ReplaceAll(strings.ReplaceAll(string(body), "\r\n", "\n"), "\r",
			"\n"), "\n")[v.Line-1])
		if refNormal(value, true) != strings.TrimPrefix(strings.TrimPrefix(r.RuleText(v), "Allow: "), "Disallow: ") ||
			refHasPrefix(key, "allow") != v.Allowed {
			t.Fatalf("%q for %q, URL %q: line %d does not hold %q", body, tokens, uri, v.Line, r.RuleText(v))
		}
	}
	must.True(t, !r.DisallowsAll() || !allowed || v.Reason == ReasonRobotsFile,
		"%q for %q disallows all, but the reference allows %q", body, tokens, uri)
}

// comparable reports whether the reference can read a file: it knows neither UTF-16 nor the length
// limit.
func isComparable(body []byte) bool {
	return len(body) < 4096 && !strings.HasPrefix(string(body), "\xFE\xFF") && !strings.HasPrefix(string(body),
		"\xFF\xFE")
}

var grammar = struct{ lines, paths, names []string }{
	lines: []string{
		"User-agent: %n", "User-agent: %n", "user-agent:%n # c", "Useragent : %n\r", "User-agent %n", "Disallow: %p",
		"Disallow: %p", "Disallow: %p",
		"Allow: %p", "Allow: %p", "disallow:%p # c", " allow :\t%p\r", "Disallow %p", "Dissallow: %p", "Disallow:", "",
		"# %p", "Sitemap: %p", "Crawl-delay: 3", "x%p",
	},
	paths: []string{
		"/", "/", "/", "a", "b", "ab", "*", "*", "$", "?", "=", "%61", "%2F", "%2f", "%2A", "%24", "%", "%4", "é",
		"%C3%A9", "%c3%a9", " ", "~", "%7e", ".php", "//", "|", "%7C", "robots.txt",
	},
	names: []string{"amble", "amble", "*", "*", "Amble/1.0", "amble-news", "B", "* x", "", "amb", "*b", "9b"},
}

func randomFrom(rng *rand.Rand, words []string) string { return words[rng.IntN(len(words))] }

func randomPath(rng *rand.Rand) string {
	var b strings.Builder
	if rng.IntN(8) > 0 {
		b.WriteByte('/')
	}
	for range rng.IntN(6) {
		b.WriteString(randomFrom(rng, grammar.paths))
	}
	return b.String()
}

func randomFile(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(40) {
		line := strings.ReplaceAll(randomFrom(rng, grammar.lines), "%n", randomFrom(rng, grammar.names))
		b.WriteString(strings.ReplaceAll(line, "%p", randomPath(rng)))
		b.WriteByte('\n')
	}
	return b.String()
}

// TestDifferential compares the engine with the reference on files and URLs from a small grammar.
func TestDifferential(t *testing.T) { differ(t, 1500) }

// differ compares verdicts for a number of random files.
func differ(t *testing.T, files int) {
	rng := rand.New(rand.NewPCG(9309, 2022))
	for range files {
		body := []byte(randomFile(rng))
		for range 8 {
			compare(t, body, []string{"amble-news", "amble"}[rng.IntN(2):], randomPath(rng))
		}
	}
}

func FuzzDifferential(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		f.Add([]byte(randomFile(rng)), randomPath(rng))
	}
	for _, m := range benchFiles()[:1] {
		f.Add(m.body, m.uri)
	}
	f.Fuzz(func(t *testing.T, body []byte, uri string) {
		if !isComparable(body) || len(uri) > 512 {
			return
		}
		compare(t, body, []string{"amble"}, uri)
		compare(t, body, []string{"amble-news", "amble"}, uri)
	})
}
