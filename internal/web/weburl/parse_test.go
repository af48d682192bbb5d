package weburl

import (
	"errors"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// sentinels are the four errors by the names that the tables use.
var sentinels = map[string]error{
	"ErrScheme": ErrScheme, "ErrNoHost": ErrNoHost, "ErrTooLong": ErrTooLong, "ErrSyntax": ErrSyntax,
}

// checkResult compares a result with a table's want: a canonical form or the name of an error.
func checkResult(t *testing.T, u URL, err error, want string) {
	t.Helper()
	if sentinel, ok := sentinels[want]; ok {
		assert.True(t, errors.Is(err, sentinel) && u.IsZero(), "got %q, error %v; want %s", u, err, want)
		return
	}
	if err != nil || u.String() != want {
		t.Errorf("got %q, error %v; want %q", u, err, want)
		return
	}
	checkInvariants(t, u)
}

// checkInvariants checks the invariants of every URL except the zero URL.
func checkInvariants(t *testing.T, u URL) {
	t.Helper()
	text := u.String()
	assert.Returns(Parse(text))(t, u, "Parse", text, "of a canonical form error")
	assert.Returns(parseFull(URL{}, text))(t, u, "the full path makes error of the canonical form")
	assert.Equal(t, u.Scheme()+"://"+u.HostPort()+u.RequestURI(), text, "the parts of make")
	assert.True(t, strings.HasPrefix(u.HostPort(), u.Host()) && u.Host() != "" && u.Port() != 0 &&
		u.RequestURI()[0] == '/', "%q has host %q, host and port %q, port %d, request URI %q", text, u.Host(),
		u.HostPort(), u.Port(), u.RequestURI())
	assert.True(t, !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '#' }) &&
		len(text) <= MaxLength, "%q is no canonical form", text)
	assert.True(t, strings.ToLower(u.Host()) == u.Host() && !strings.HasSuffix(u.Host(), "."),
		"host %q is not canonical", u.Host())
	assert.Equal(t, u.Origin().URL(u.RequestURI()), u, "origin and request URI of make")
	assert.Returns(ParseOrigin(u.Origin().String()))(t, u.Origin(), "ParseOrigin error")
}

// parseCases are shared by several tests. A want is a canonical form or the name of an error of
// this package.
var parseCases = []struct{ raw, want string }{
	// Plain ones.
	{"http://example.com/", "http://example.com/"},
	{"https://example.com/", "https://example.com/"},
	{"https://www.example.com/a/b.html?c=d&e=f", "https://www.example.com/a/b.html?c=d&e=f"},
	{"http://example.com", "http://example.com/"},
	{"http://localhost/", "http://localhost/"},
	{"http://a_b.example/", "http://a_b.example/"},
	{"http://-a-.example/", "http://-a-.example/"},
	{"http://3com.example/", "http://3com.example/"},

	// Scheme.
	{"HTTP://example.com/", "http://example.com/"},
	{"hTTpS://example.com/", "https://example.com/"},
	{"http:example.com/a", "http://example.com/a"},
	{"http:/example.com/a", "http://example.com/a"},
	{"http:////example.com/a", "http://example.com/a"},
	{`http:\\example.com\a`, "http://example.com/a"},
	{"", "ErrScheme"},
	{" \t\n", "ErrScheme"},
	{"#", "ErrScheme"},
	{"example.com", "ErrScheme"},
	{"//example.com/", "ErrScheme"},
	{"/a", "ErrScheme"},
	{"?a", "ErrScheme"},
	{"://example.com/", "ErrScheme"},
	{"1http://example.com/", "ErrScheme"},
	{"ht tp://example.com/", "ErrScheme"},
	{"ftp://example.com/", "ErrScheme"},
	{"file:///etc/hosts", "ErrScheme"},
	{"ws://example.com/", "ErrScheme"},
	{"mailto:a@example.com", "ErrScheme"},
	{"javascript:void(0)", "ErrScheme"},
	{"java\nscript:void(0)", "ErrScheme"},
	{"data:text/html,<a>", "ErrScheme"},
	{"httpx://example.com/", "ErrScheme"},
	{"view-source:http://example.com/", "ErrScheme"},

	// White space and controls.
	{"  http://example.com/a  ", "http://example.com/a"},
	{"\x00\x1f http://example.com/a\x00", "http://example.com/a"},
	{"ht\ntp://exa\tmple.com/a\r\nb", "http://example.com/ab"},
	{"http://example.com/a b", "http://example.com/a%20b"},
	{"http://example.com/a #b", "http://example.com/a%20"},
	{"http://example.com/?a #b", "http://example.com/?a%20"},
	{"http://example.com/\x00\x7f", "http://example.com/%00%7F"},
	{"http://exa mple.com/", "ErrSyntax"},
	{"http://exa\x00mple.com/", "ErrSyntax"},
	{"\ufeffhttp://example.com/", "ErrScheme"},

	// Fragment and user information.
	{"http://example.com/#a", "http://example.com/"},
	{"http://example.com#a", "http://example.com/"},
	{"http://example.com/a?b#c?d#e/../f", "http://example.com/a?b"},
	{"http://user@example.com/", "http://example.com/"},
	{"http://user:password@example.com:81/a", "http://example.com:81/a"},
	{"http://us@er:pass@word@example.com/", "http://example.com/"},
	{"http://:@example.com/", "http://example.com/"},
	{"http://@example.com/", "http://example.com/"},
	{"http://a%zz:ü\x7f@example.com/", "http://example.com/"},
	{"http://example.com/a@b", "http://example.com/a@b"},
	{"http://example.com?a@b", "http://example.com/?a@b"},
	{"http://user@/a", "ErrNoHost"},
	{"http://user@?a", "ErrNoHost"},
	{"http://user@#a", "ErrNoHost"},
	{"http://user@", "ErrNoHost"},
	{"http://user@:80/", "ErrNoHost"},
	{`http://user@\example.com/`, "ErrNoHost"},

	// Port.
	{"http://example.com:80/", "http://example.com/"},
	{"https://example.com:443/", "https://example.com/"},
	{"http://example.com:443/", "http://example.com:443/"},
	{"https://example.com:80/", "https://example.com:80/"},
	{"http://example.com:/", "http://example.com/"},
	{"http://example.com:8080", "http://example.com:8080/"},
	{"http://example.com:0080/", "http://example.com/"},
	{"http://example.com:008080/", "http://example.com:8080/"},
	{"http://example.com:1/", "http://example.com:1/"},
	{"http://example.com:65535/", "http://example.com:65535/"},
	{"http://example.com:65536/", "ErrSyntax"},
	{"http://example.com:99999999999999999999/", "ErrSyntax"},
	{"http://example.com:0/", "ErrSyntax"},
	{"http://example.com:000/", "ErrSyntax"},
	{"http://example.com:80a/", "ErrSyntax"},
	{"http://example.com:-80/", "ErrSyntax"},
	{"http://example.com:+80/", "ErrSyntax"},
	{"http://example.com:80:80/", "ErrSyntax"},
	{"http://example.com: 80/", "ErrSyntax"},
	{"http://:80/", "ErrNoHost"},

	// Path.
	{"http://example.com/a/./b", "http://example.com/a/b"},
	{"http://example.com/a/../b", "http://example.com/b"},
	{"http://example.com/../../a", "http://example.com/a"},
	{"http://example.com/a/b/..", "http://example.com/a/"},
	{"http://example.com/a/b/.", "http://example.com/a/b/"},
	{"http://example.com/a/%2e/b/%2E%2e/c/.%2E/d", "http://example.com/a/d"},
	{"http://example.com/a/...", "http://example.com/a/..."},
	{"http://example.com/.well-known/a", "http://example.com/.well-known/a"},
	{"http://example.com/..a/.b./%2ec", "http://example.com/..a/.b./%2ec"},
	{"http://example.com/.?a/../b", "http://example.com/?a/../b"},
	{"http://example.com//a///b//", "http://example.com//a///b//"},
	{"http://example.com/a//../b", "http://example.com/a/b"},
	{`http://example.com\a\..\b`, "http://example.com/b"},
	{`http://example.com/a?\b`, `http://example.com/a?\b`},
	{"http://example.com/;a=b,c:d@e!$&'()*+", "http://example.com/;a=b,c:d@e!$&'()*+"},
	{"http://example.com/[a]|b~", "http://example.com/[a]|b~"},
	{"http://example.com/\"<>`{}^", "http://example.com/%22%3C%3E%60%7B%7D%5E"},
	{"http://example.com/%41%7e%e3%2F", "http://example.com/%41%7e%e3%2F"},
	{"http://example.com/%", "http://example.com/%"},
	{"http://example.com/%zz%4", "http://example.com/%zz%4"},
	{"http://example.com/é/中/💩", "http://example.com/%C3%A9/%E4%B8%AD/%F0%9F%92%A9"},
	{"http://example.com/\xe9\xff", "http://example.com/%E9%FF"},
	{"http://example.com/\ufffd", "http://example.com/%EF%BF%BD"},

	// Query.
	{"http://example.com?a", "http://example.com/?a"},
	{"http://example.com/?", "http://example.com/?"},
	{"http://example.com/?#", "http://example.com/?"},
	{"http://example.com?", "http://example.com/?"},
	{"http://example.com/??a?b/", "http://example.com/??a?b/"},
	{"http://example.com/?b=2&a=1&&=", "http://example.com/?b=2&a=1&&="},
	{"http://example.com/?a=b+c%20d", "http://example.com/?a=b+c%20d"},
	{"http://example.com/?\"<>'", "http://example.com/?%22%3C%3E%27"},
	{"http://example.com/?`{}^|[]", "http://example.com/?`{}^|[]"},
	{"http://example.com/?é", "http://example.com/?%C3%A9"},
	{"http://example.com/?\xe9", "http://example.com/?%E9"},
	{"http://example.com/?%zz%", "http://example.com/?%zz%"},
}

func TestParse(t *testing.T) {
	for _, test := range parseCases {
		t.Run(test.raw, func(t *testing.T) {
			u, err := Parse(test.raw)
			checkResult(t, u, err, test.want)
		})
	}
}

func TestParseLength(t *testing.T) {
	fill := func(prefix string, length int) string {
		return prefix + strings.Repeat("a", length-len(prefix))
	}
	longest := fill("http://example.com/", MaxLength)
	tests := []struct{ name, raw, want string }{
		{"longest", longest, longest},
		{"one more", longest + "a", "ErrTooLong"},
		{"one more in the query", fill("http://example.com/?", MaxLength+1), "ErrTooLong"},
		{"no slash, longest", fill("http://example.com?", MaxLength-1), fill("http://example.com/?", MaxLength)},
		{"no slash, one more", fill("http://example.com?", MaxLength), "ErrTooLong"},
		{"longer once encoded", fill("http://example.com/", MaxLength-2) + "é", "ErrTooLong"},
		{"shorter once cut", longest + "#fragment", longest},
		{"long user name", "http://" + strings.Repeat("a", 4000) + "@example.com/", "http://example.com/"},
		{"white space around", strings.Repeat(" ", 9000) + "http://example.com/", "http://example.com/"},
		{"longest input", fill("http://example.com/#", maxInput), "http://example.com/"},
		{"input too long", fill("http://example.com/#", maxInput+1), "ErrTooLong"},
		{"many dot segments", "http://example.com" + strings.Repeat("/..", 2000), "http://example.com/"},
		{"dot segments as long as the input", "http://example.com" + strings.Repeat("/.", 3000), "http://example.com/"},
		{"too many backslashes", "http://example.com" + strings.Repeat(`\`, MaxLength), "ErrTooLong"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u, err := Parse(test.raw)
			checkResult(t, u, err, test.want)
		})
	}
}

func TestErrorText(t *testing.T) {
	long := "mailto:" + strings.Repeat("a", 100000)
	tests := []struct{ raw, want string }{
		{"mailto:a@b", `parse URL "mailto:a@b": not an http or https URL: its scheme is "mailto"`},
		{"/a\nb", `parse URL "/a\nb": not an http or https URL: it has no scheme`},
		{"http://", `parse URL "http://": URL without a host`},
		{"http://a:0", `parse URL "http://a:0": malformed URL: port 0 cannot be used`},
		{"http://a:x", `parse URL "http://a:x": malformed URL: the port is not a number from 1 to 65535`},
		{"http://1.2.3.256", `parse URL "http://1.2.3.256": malformed URL: ` +
			`the host "1.2.3.256" ends in a number but is no IPv4 address`},
		{long, `parse URL "` + long[:shownInput] + `": URL too long: 100007 bytes, 6144 are allowed`},
	}
	for _, test := range tests {
		_, err := Parse(test.raw)
		assert.True(t, err != nil && err.Error() == test.want, "got  %v\nwant %s", err, test.want)
	}
}

func TestPartsOfURL(t *testing.T) {
	tests := []struct {
		raw, scheme, host, hostPort, requestURI string
		port                                    uint16
	}{
		{"http://example.com/a?b", "http", "example.com", "example.com", "/a?b", 80},
		{"https://example.com", "https", "example.com", "example.com", "/", 443},
		{"https://example.com:8443/?", "https", "example.com", "example.com:8443", "/?", 8443},
		{"http://[::1]:8080/a:b", "http", "[::1]", "[::1]:8080", "/a:b", 8080},
		{"http://127.0.0.1:65535//", "http", "127.0.0.1", "127.0.0.1:65535", "//", 65535},
	}
	for _, test := range tests {
		u := must.Get(Parse(test.raw))(t)
		assert.True(t, u.Scheme() == test.scheme && u.Host() == test.host && u.HostPort() == test.hostPort &&
			u.RequestURI() == test.requestURI && u.Port() == test.port, "%q: got %q, %q, %q, %q, %d", test.raw,
			u.Scheme(), u.Host(), u.HostPort(), u.RequestURI(), u.Port())
	}
}

func TestZeroURL(t *testing.T) {
	var u URL
	assert.True(t, u.IsZero() && u.String() == "" && u.Scheme() == "" && u.Host() == "" && u.HostPort() == "" &&
		u.RequestURI() == "" && u.Port() == 0 && u.Origin() == (Origin{}), "the zero URL has parts: %+v", u)
	if v, err := u.Resolve("http://example.com/a"); err != nil || v.String() != "http://example.com/a" {
		t.Errorf("an absolute reference on the zero URL gives %q, error %v", v, err)
	}
	for _, ref := range []string{"", "#a", "?a", "/a", "a", "//example.com/"} {
		assert.Fails(u.Resolve(ref))(t, ErrScheme, "the reference", ref, "on the zero URL gives error")
	}
	v, err := Parse("http://example.com/")
	assert.True(t, err == nil && !v.IsZero(), "%q is zero, error %v", v, err)
}

func TestEqualURLs(t *testing.T) {
	a, errA := Parse("HTTP://Example.com:80/x/../a#top")
	b, errB := Parse("http://example.com/a")
	c, errC := Parse("http://example.com/a?")
	must.Do(t, errors.Join(errA, errB, errC))
	assert.True(t, a == b && b != c, "want %q == %q and %q != %q", a, b, b, c)
	seen := map[URL]bool{a: true}
	assert.True(t, seen[b] && !seen[c], "a URL does not work as the key of a map")
}
