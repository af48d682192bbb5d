package weburl

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestPlainIsTaken lists texts that must not fall back to the full path. No other test would notice
// that.
func TestPlainIsTaken(t *testing.T) {
	for _, raw := range []string{
		"http://example.com",
		"http://example.com/",
		"https://example.com/#top",
		"https://www.example.com:8443/a/b.html?c=d&e=%20f#g h",
		"http://127.0.0.1:8080/page/1",
		"http://xn--bcher-kva.example/%C3%A9",
		"http://3com.a_b.example-/.well-known/x..y/...",
		"http://example.com/a?b=../c:d",
		"http://example.com//;a=b,c:d@e!$&'()*+[]|~",
	} {
		if u, ok := parsePlain(raw); !ok {
			t.Errorf("%q is not plain", raw)
		} else {
			checkInvariants(t, u)
		}
	}
	base := must.Get(Parse("https://example.com:8443/a/b?c"))(t)
	for _, ref := range []string{
		"", "#x y", "?x", "?", "/", "/x/y?z#f", "x", "x/y?z#f", "./x", "../x", "../../x", "../", "./x:y", "x?y:z",
		"//example.org", "//example.org/x", "http://example.org/x", "https://example.org",
	} {
		if u, ok := base.resolvePlain(ref); !ok {
			t.Errorf("%q is not plain", ref)
		} else {
			checkInvariants(t, u)
		}
	}
}

// sameAsFull checks that both paths agree, and returns the result of Resolve, which equals that of
// Parse if base is zero.
func sameAsFull(t *testing.T, base URL, ref string) (URL, error) {
	t.Helper()
	u, err := base.Resolve(ref)
	full, fullErr := parseFull(base, ref)
	must.True(t, u == full && (err == nil) == (fullErr == nil),
		"%q on %q: got %+v, error %v; the full path has %+v, error %v", ref, base, u, err, full, fullErr)
	checkLibrary(t, base, ref, u)
	if base.IsZero() {
		if parsed, parseErr := Parse(ref); parsed != u || (parseErr == nil) != (err == nil) {
			t.Fatalf("%q: Parse has %+v, error %v; Resolve has %+v, error %v", ref, parsed, parseErr, u, err)
		}
	}
	if err != nil {
		kinds := 0
		for _, sentinel := range sentinels {
			if errors.Is(err, sentinel) {
				kinds++
			}
		}
		must.True(t, kinds == 1, "%q on %q: the error %v has %d kinds", ref, base, err, kinds)
	}
	return u, err
}

func TestPlainEqualsFullOnTables(t *testing.T) {
	for _, test := range parseCases {
		sameAsFull(t, URL{}, test.raw)
	}
	for _, test := range hostCases {
		sameAsFull(t, URL{}, "http://"+test.raw)
		sameAsFull(t, URL{}, "https://"+test.raw+":8080/a")
	}
	for _, test := range resolveCases {
		base := must.Get(Parse(test.base))(t)
		sameAsFull(t, base, test.ref)
		sameAsFull(t, base, test.ref+"/..")
		sameAsFull(t, base, test.ref+"#")
		for _, other := range parseCases {
			sameAsFull(t, base, other.raw)
		}
	}
}

// TestPlainEqualsFullForEveryByte tries every byte in every part of a URL.
func TestPlainEqualsFullForEveryByte(t *testing.T) {
	base := must.Get(Parse("http://example.com/a/b?c"))(t)
	templates := []string{
		"http://example.com/a\x00b", "http://example.com/\x00", "http://example.com/?a\x00b", "http://exa\x00mple.com/",
		"http://\x00.com/", "http://example.com\x00", "http://example.com\x008080/", "http://example.com:8\x000/",
		"http\x00//a/",
		"http://example.com/.\x00/a", "http://example.com/.\x00", "http://1.2.3.\x00/", "http://example.com/#a\x00",
		"\x00", "\x00a", "a\x00b", "a\x00", "/\x00", "/\x00a", "//\x00", ".\x00", "..\x00a", "../\x00", "?\x00",
		"#\x00", "%2\x00",
	}
	for _, template := range templates {
		for b := range 256 {
			raw := strings.ReplaceAll(template, "\x00", string([]byte{byte(b)}))
			sameAsFull(t, URL{}, raw)
			sameAsFull(t, base, raw)
		}
	}
}

// TestPlainEqualsFullOnTokenSoup strings together the tokens of URLs, at random but the same in
// every run.
func TestPlainEqualsFullOnTokenSoup(t *testing.T) {
	tokens := []string{
		"http:", "https:", "HTTP:", "//", "//", "/", "/", "/", "?", "#", ":", "@", "\\", ".", ".", "..", "./", "../",
		"%2e", "%2E", "%",
		"%41", "a", "b", "example", ".com", "WWW", "_", "-", "xn--", "0x7f", "0", "1", "127", "255", "256", "80", ":80",
		":443", ":8080", "[::1]",
		" ", "\t", "\n", "'", "\"", "^", "|", "{", "<", "é", "\xff", "\x7f", "&", "=", ";", ",", "+", "~",
		"!", "mailto:",
	}
	random := rand.New(rand.NewPCG(1, 2))
	soup := func() string {
		var b strings.Builder
		for range random.IntN(12) {
			b.WriteString(tokens[random.IntN(len(tokens))])
		}
		return b.String()
	}
	plain, good := 0, 0
	for range 20000 {
		base, err := sameAsFull(t, URL{}, "http://h"+soup())
		if err != nil {
			continue
		}
		ref := soup()
		u, err := sameAsFull(t, base, ref)
		if err != nil {
			continue
		}
		checkInvariants(t, u)
		good++
		if _, ok := base.resolvePlain(ref); ok {
			plain++
		}
	}
	assert.True(t, good >= 1000 && plain >= 100, "only %d of the references were good and only %d plain", good, plain)
}

func TestAllocations(t *testing.T) {
	base := must.Get(Parse("https://example.com:8443/a/b?c"))(t)
	var length int
	tests := []struct {
		name string
		want float64
		call func()
	}{
		{"accessors", 0, func() {
			length += len(base.String()) + len(base.Scheme()) + len(base.Host()) + len(base.HostPort()) +
				len(base.RequestURI()) +
				int(base.Port()) + len(base.Origin().Host)
		}},
		{"Parse", 0, func() { u, _ := Parse("https://example.com/a/b?c#d"); length += len(u.text) }},
		{"Parse, no slash", 1, func() { u, _ := Parse("https://example.com"); length += len(u.text) }},
		{"Resolve, absolute", 0, func() { u, _ := base.Resolve("http://example.org/a"); length += len(u.text) }},
		{"Resolve, host", 1, func() { u, _ := base.Resolve("//example.org/a"); length += len(u.text) }},
		{"Resolve, path", 1, func() { u, _ := base.Resolve("/x/y?z#f"); length += len(u.text) }},
		{"Resolve, sibling", 1, func() { u, _ := base.Resolve("x"); length += len(u.text) }},
		{"Resolve, parent", 1, func() { u, _ := base.Resolve("../x"); length += len(u.text) }},
		{"Resolve, query", 1, func() { u, _ := base.Resolve("?x"); length += len(u.text) }},
		{"Resolve, fragment", 0, func() { u, _ := base.Resolve("#x"); length += len(u.text) }},
	}
	for _, test := range tests {
		got := testing.AllocsPerRun(100, test.call)
		assert.True(t, got == test.want, "%s: %v allocations, want %v", test.name, got, test.want)
	}
}
