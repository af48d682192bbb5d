package weburl

import (
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/must"
)

var resolveCases = []struct{ base, ref, want string }{
	// The base itself.
	{"http://h/a/b?c", "", "http://h/a/b?c"},
	{"http://h/a/b?c", " \t", "http://h/a/b?c"},
	{"http://h/a/b?c", "#d", "http://h/a/b?c"},
	{"http://h/a/b?c", " # d é ", "http://h/a/b?c"},
	{"http://h/a/b?c", "#/../x?y", "http://h/a/b?c"},

	// Query.
	{"http://h/a/b?c", "?d", "http://h/a/b?d"},
	{"http://h/a/b?c", "?", "http://h/a/b?"},
	{"http://h/a/b?c", "?d#e", "http://h/a/b?d"},
	{"http://h/a/b?c", "?x=http://i/../j", "http://h/a/b?x=http://i/../j"},
	{"http://h/a/b?c", "?é 'x'", "http://h/a/b?%C3%A9%20%27x%27"},
	{"http://h", "?a", "http://h/?a"},

	// Absolute path.
	{"http://h/a/b?c", "/", "http://h/"},
	{"http://h/a/b?c", "/d/e?f#g", "http://h/d/e?f"},
	{"https://h:8080/a", "/d", "https://h:8080/d"},
	{"http://[::1]:81/a", "/d", "http://[::1]:81/d"},
	{"http://h/a/b", "/./d/../e", "http://h/e"},
	{"http://h/a/b", `\d\e`, "http://h/d/e"},
	{"http://h/a/b", "/d//e", "http://h/d//e"},
	{"http://h/a/b", "/d:e", "http://h/d:e"},
	{"http://h/a/b", "/ d", "http://h/%20d"},
	{"http://h/a/b", " /d ", "http://h/d"},

	// Path relative to the directory.
	{"http://h/a/b?c", "d", "http://h/a/d"},
	{"http://h/a/b?c/d", "e", "http://h/a/e"},
	{"http://h/a/", "d", "http://h/a/d"},
	{"http://h", "d", "http://h/d"},
	{"http://h/a/b", "d/e?f/../g#h", "http://h/a/d/e?f/../g"},
	{"http://h/a/b", "./d", "http://h/a/d"},
	{"http://h/a/b", "././d", "http://h/a/d"},
	{"http://h/a/b", ".", "http://h/a/"},
	{"http://h/a/b", "./", "http://h/a/"},
	{"http://h/a/b", "./?x", "http://h/a/?x"},
	{"http://h/a/b", "./#x", "http://h/a/"},
	{"http://h/a/b", "..", "http://h/"},
	{"http://h/a/b/c", "..", "http://h/a/"},
	{"http://h/a/b/c", "../", "http://h/a/"},
	{"http://h/a/b/c", "../d", "http://h/a/d"},
	{"http://h/a/b/c", "../../d", "http://h/d"},
	{"http://h/a/b/c", "../../../../d", "http://h/d"},
	{"http://h/a/b/c", "./.././d", "http://h/a/d"},
	{"http://h/a/b/c", "d/../e", "http://h/a/b/e"},
	{"http://h/a/b/c", "../d/..", "http://h/a/"},
	{"http://h/a/b/c", "%2e%2E/d", "http://h/a/d"},
	{"http://h/a/b/c", "../.%2e/d", "http://h/d"},
	{"http://h/a//b", "../c", "http://h/a/c"},
	{"http://h/a//b", "c", "http://h/a//c"},
	{"http://h//a", "../b", "http://h/b"},
	{"http://h/a/b", ".//c", "http://h/a//c"},
	{"http://h/a", "..//c", "http://h//c"},
	{"http://h/a/b", "..c/.d", "http://h/a/..c/.d"},
	{"http://h/a/b", "...", "http://h/a/..."},
	{"http://h/a/b", ".well-known", "http://h/a/.well-known"},
	{"http://h/a/b", "./d:e", "http://h/a/d:e"},
	{"http://h/a/b", "d/e:f", "http://h/a/d/e:f"},
	{"http://h/a/b", "1:2", "http://h/a/1:2"},
	{"http://h/a/b", ":", "http://h/a/:"},
	{"http://h/a/b", "d e", "http://h/a/d%20e"},
	{"http://h/a/b", "d\te", "http://h/a/de"},
	{"http://h/a/b", "%7Ed^", "http://h/a/%7Ed%5E"},
	{"http://h/a/b", "www.example.com", "http://h/a/www.example.com"},
	{"http://h/a/b", "\xe9", "http://h/a/%E9"},

	// Other host.
	{"http://h/a", "//i/b", "http://i/b"},
	{"https://h/a", "//i", "https://i/"},
	{"https://h:81/a", "//i:443/b", "https://i/b"},
	{"http://h/a", "//i:82", "http://i:82/"},
	{"http://h/a", "//user@i/b", "http://i/b"},
	{"http://h/a", "//user@", "ErrNoHost"},
	{"http://h/a", `/\i/b`, "http://i/b"},
	{"http://h/a", `\\i\b`, "http://i/b"},
	{"http://h/a", "///i/b", "http://i/b"},
	{"http://h/a", "//I/b", "http://i/b"},
	{"http://h/a", "//", "ErrNoHost"},
	{"http://h/a", "//:80/", "ErrNoHost"},
	{"http://h/a", "//i:0/", "ErrSyntax"},
	{"http://h/a", "//i j/", "ErrSyntax"},

	// With a scheme.
	{"http://h/a", "http://i/b", "http://i/b"},
	{"http://h/a", "https://i/b#c", "https://i/b"},
	{"https://h/a", "http://i", "http://i/"},
	{"http://h/a/b", "http:c", "http://h/a/c"},
	{"http://h/a/b", "http:/c", "http://h/c"},
	{"http://h/a/b", "HTTP:?c", "http://h/a/b?c"},
	{"http://h/a/b?c", "http:", "http://h/a/b?c"},
	{"http://h/a/b?c", "http:#d", "http://h/a/b?c"},
	{"http://h/a/b", "http:user@i", "http://h/a/user@i"},
	{"http://h/a/b", "https:c", "https://c/"},
	{"http://h/a/b", "https:user@i", "https://i/"},
	{"http://h/a/b", "https:/c/d", "https://c/d"},
	{"https://h/a/b", "https:", "https://h/a/b"},
	{"http://h/a/b", "https:", "ErrNoHost"},
	{"http://h/a/b", "javascript:void(0)", "ErrScheme"},
	{"http://h/a/b", "mailto:a@b", "ErrScheme"},
	{"http://h/a/b", "tel:123", "ErrScheme"},
	{"http://h/a/b", "data:,a", "ErrScheme"},
	{"http://h/a/b", "a:b", "ErrScheme"},
	{"http://h/a/b", "localhost:8080/", "ErrScheme"},
}

func TestResolve(t *testing.T) {
	for _, test := range resolveCases {
		t.Run(test.base+" "+test.ref, func(t *testing.T) {
			base := must.Get(Parse(test.base))(t)
			u, err := base.Resolve(test.ref)
			checkResult(t, u, err, test.want)
		})
	}
}

func TestResolveLength(t *testing.T) {
	base := must.Get(Parse("http://h/a/b?" + strings.Repeat("q", 2000)))(t)
	room := MaxLength - len("http://h/a/")
	fits, tooLong := strings.Repeat("x", room), strings.Repeat("x", room+1)
	tests := []struct{ name, ref, want string }{
		{"fits", fits, "http://h/a/" + fits},
		{"too long", tooLong, "ErrTooLong"},
		{"fits, with many dots", strings.Repeat("./", 1500) + "x", "http://h/a/x"},
		{"up and up", strings.Repeat("../", 1500) + "x", "http://h/x"},
		{"up and down", strings.Repeat("y/../", 1200) + "x", "http://h/a/x"},
		{"long fragment", "#" + strings.Repeat("x", maxInput-1), base.String()},
		{"fragment too long", "#" + strings.Repeat("x", maxInput), "ErrTooLong"},
		{"query too long", "?" + strings.Repeat("x", MaxLength), "ErrTooLong"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u, err := base.Resolve(test.ref)
			checkResult(t, u, err, test.want)
		})
	}
}
