package fetch

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// heads serves empty pages and records the headers of the requests, in order.
func heads(t testing.TB, response string) (*server, chan string) {
	seen := make(chan string, 100)
	return serve(t, func(c net.Conn, r *bufio.Reader) {
		for {
			head := readHead(r)
			if head == "" {
				return
			}
			seen <- head
			fmt.Fprint(c, response)
		}
	}), seen
}

func TestHeaders(t *testing.T) {
	s, seen := heads(t, okEmpty)
	c := newClient(t, quick(func(o *Options) {
		o.Headers = []Header{{"accept", "text/html"}, {"Accept-Language", "de, en;q=0.5"}}
	}))
	must.Get(get(t, c, s))(t)
	head := <-seen
	assert.True(t, strings.Contains(head, "\r\naccept: text/html\r\nAccept-Language: de, en;q=0.5\r\n") &&
		!strings.Contains(head, "\r\nAccept: "), "head %q", head)
	for _, bad := range []string{"", "Host: x", "no colon", "a b: c", "X: y\r\nZ: a", "cookie: a=b",
		"Transfer-Encoding: chunked", "X: ü", ": x"} {
		assert.Fails(ParseHeader(bad))(t, nil, bad, "is taken as")
	}
	assert.Returns(ParseHeader(" X-Key :  a:b "))(t, Header{"X-Key", "a:b"})
}

func TestHostPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, host string
		want          bool
	}{
		{"example.com", "example.com", true}, {"EXAMPLE.com", "example.com", true},
		{"example.com", "www.example.com", false},
		{"*.example.com", "www.example.com", true}, {"*.example.com", "a.b.example.com", true},
		{"*.example.com", "example.com", false},
		{"*.example.com", "badexample.com", false}, {"*", "any.test", true},
		{"bücher.example", "xn--bcher-kva.example", true},
		{"127.0.0.1", "127.0.0.1", true}, {"[::1]", "[::1]", true}, {"example.com", "example.com.evil.test", false},
	} {
		p, err := ParseHostPattern(tt.pattern)
		assert.True(t, err == nil && p.Match(tt.host) == tt.want, "%q (%v) and %q: want %v, %v", tt.pattern, p, tt.host,
			tt.want, err)
	}
	for _, bad := range []string{"", "*.", "a/b", "http://a.test", "a.test:80", "a.*.test", "**", "a b",
		"u@a.test", "?",
		"#"} {
		assert.Fails(ParseHostPattern(bad))(t, nil, bad, "is taken as")
	}
}

func TestCredentials(t *testing.T) {
	for _, tt := range []struct{ text, url, want string }{
		{"a.test basic user:pass word", "https://a.test/", "Authorization: Basic dXNlcjpwYXNzIHdvcmQ="},
		{"a.test basic user:", "https://a.test/x?y", "Authorization: Basic dXNlcjo="},
		{"a.test bearer abc.def", "https://a.test/", "Authorization: Bearer abc.def"},
		{"a.test header X-Key: k=1", "https://a.test/", "X-Key: k=1"},
		{"a.test header authorization: Digest x", "https://a.test/", "authorization: Digest x"},
		{"*.a.test bearer t", "https://www.a.test/", "Authorization: Bearer t"},
		{"http://a.test bearer t", "http://a.test/", "Authorization: Bearer t"},
		{"http://a.test:8080/ bearer t", "http://a.test:8080/", "Authorization: Bearer t"},
		{"[::1]:8443 bearer t", "https://[::1]:8443/", "Authorization: Bearer t"},
		{"a.test bearer t", "http://a.test/", ""},
		{"a.test bearer t", "https://a.test:8443/", ""},
		{"http://a.test bearer t", "https://a.test/", ""},
		{"a.test bearer t", "https://b.test/", ""},
		{"a.test bearer t", "https://a.test.evil.test/", ""},
		{"*.a.test bearer t", "https://a.test/", ""},
	} {
		cr, err := ParseCredential(tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		c := newClient(t, quick(func(o *Options) { o.Credentials = []Credential{cr} }))
		var got string
		for _, f := range c.fields(Request{URL: parseURL(t, tt.url)}) {
			if f.secret {
				got += f.name + ": " + f.value
			}
		}
		assert.Equal(t, got, tt.want, tt.text, tt.url)
		shown := fmt.Sprintf("%v %+v %#v", cr, cr, cr)
		assert.True(t, !strings.Contains(shown, cr.field.value), "%s gives the secret away", shown)
	}
	for _, bad := range []string{"", "a.test", "a.test basic", "a.test basic nocolon", "a.test bearer ",
		"a.test digest x",
		"* bearer t", "a.test header Host: x",
		"a.test header nocolon", "ftp://a.test bearer t", "a.test:0 bearer t", "a.test:x bearer t", "a.test bearer ü",
		"a.test/path bearer secret"} {
		if c, err := ParseCredential(bad); err == nil {
			t.Errorf("%q is taken as %v", bad, c)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%v gives the secret away", err)
		}
	}
}

// A redirect to another host goes without the credentials, and no archive has them.
func TestCredentialsStayWhereTheyBelong(t *testing.T) {
	s, seen := heads(t, okEmpty)
	cr := must.Get(ParseCredential(fmt.Sprintf("http://site.test:%d basic user:secret", s.port())))(t)
	c := newClient(t, quick(func(o *Options) { o.Credentials, o.Capture = []Credential{cr}, true }))
	r := must.Get(get(t, c, s))(t)
	assert.Contains(t, <-seen, "\r\nAuthorization: Basic ", "head")
	sent, err := r.Wire.Request.Load(nil, 1<<20)
	assert.True(t, err == nil && !strings.Contains(string(sent), "Authorization") &&
		strings.HasSuffix(string(sent), "\r\n\r\n"), "captured %q, %v", sent, err)
	u := parseURL(t, fmt.Sprintf("http://other.test:%d/", s.port()))
	must.Get(c.Do(context.Background(), Request{URL: u, Address: loopback}))(t)
	head := <-seen
	assert.True(t, !strings.Contains(head, "Authorization"), "head %q", head)
}

func TestCookies(t *testing.T) {
	one := must.Get(ParseHostPattern("*.test"))(t)
	c := newCookies([]HostPattern{one})
	set := func(u string, lines ...string) { c.take(parseURL(t, u), http.Header{"Set-Cookie": lines}) }
	want := func(u, want string) {
		t.Helper()
		assert.Equal(t, c.header(parseURL(t, u)), want, u)
	}
	set("http://a.test/", "sid=1; Path=/", "deep=2; Path=/deep", "safe=3; Secure", "gone=4; Max-Age=0",
		"wide=5; Domain=test")
	want("http://a.test/", "sid=1")
	want("http://a.test/deep/x", "deep=2; sid=1")
	set("http://b.a.test/", "shared=1; Domain=a.test")
	want("http://a.test/", "sid=1")
	want("http://b.a.test/", "shared=1")
	want("http://c.test/", "")
	set("http://a.test/", "sid=; Max-Age=0")
	want("http://a.test/", "")
	set("http://other.example/", "x=1")
	want("http://other.example/", "")
	set("http://d.test/", "bad", "=", "a=b\r\nX: y", "c=d; Expires=never")
	want("http://d.test/", "c=d")
	assert.Equal(t, newCookies(nil).header(parseURL(t, "http://a.test/")), "",
		"cookies are kept though CookieHosts is empty")
}

// A host that sets cookies without end gets no more than a header's worth of them kept.
func TestCookiesAreBounded(t *testing.T) {
	c := newCookies([]HostPattern{"*"})
	u := parseURL(t, "http://a.test/")
	for i := range 200 {
		var lines []string
		for j := range 100 {
			lines = append(lines, fmt.Sprintf("c%d-%d=%s", i, j, strings.Repeat("x", 1000)))
		}
		c.take(u, http.Header{"Set-Cookie": append(lines, "huge="+strings.Repeat("y", 10_000))})
	}
	assert.AtMost(t, len(c.jars["a.test"].Value.(*hostJar).kept), maxCookies, "cookies")
	n := len(c.header(u))
	assert.True(t, n != 0 && n <= maxCookieHeader, "a header of %d bytes", n)
	for i := range maxCookieHosts + 10 {
		v := must.Get(weburl.Parse(fmt.Sprintf("http://h%d.test/", i)))(t)
		c.take(v, http.Header{"Set-Cookie": {"a=b"}})
	}
	assert.True(t, len(c.jars) == maxCookieHosts && c.lru.Len() == maxCookieHosts, "%d hosts", len(c.jars))
}

// Cookies that one response sets go out with the next request, over the wire and to that host
// alone.
func TestCookiesOnTheWire(t *testing.T) {
	s, seen := heads(t, "HTTP/1.1 302 Found\r\nLocation: /\r\nSet-Cookie: sid=42\r\nContent-Length: 0\r\n\r\n")
	for _, tt := range []struct {
		hosts []HostPattern
		want  bool
	}{{nil, false}, {[]HostPattern{"site.test"}, true}, {[]HostPattern{"other.test"}, false}} {
		c := newClient(t, quick(func(o *Options) { o.CookieHosts = tt.hosts }))
		for i := range 2 {
			must.Get(get(t, c, s))(t)
			if head, want := <-seen, tt.want && i == 1; strings.Contains(head, "\r\nCookie: sid=42\r\n") != want {
				t.Errorf("%v: request %d: %q", tt.hosts, i, head)
			}
		}
	}
}

func TestContentTypes(t *testing.T) {
	for _, tt := range []struct {
		response, media string
		wanted          bool
	}{
		{"200 OK", "text/html; charset=utf-8", true}, {"200 OK", "TEXT/Plain", true},
		{"200 OK", "application/xhtml+xml;x", true},
		{"200 OK", "application/pdf", false}, {"206 Partial", "video/mp4", false}, {"200 OK", "textual/html", false},
		{"200 OK", "", true}, {"200 OK", "nonsense", true}, {"302 Found", "application/pdf", true},
		{"404 Not Found", "image/png", true},
	} {
		s := serve(t,
			answer("HTTP/1.1 "+tt.response+"\r\nContent-Type: "+tt.media+"\r\nContent-Length: 5\r\n\r\nhello"))
		c := newClient(t, quick(func(o *Options) { o.ContentTypes = []string{"Text/*", "application/xhtml+xml"} }))
		r, err := get(t, c, s)
		if tt.wanted {
			assert.True(t, err == nil && text(t, r) == "hello", "%+v: %v", tt, err)
			continue
		}
		e := wantKind(t, err, KindTypeNotWanted)
		assert.True(t, e.Sent && !e.Kind.Temporary(), "%+v", e)
	}
	s := serve(t, answer("HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: 5\r\n\r\nhello"))
	c := newClient(t, quick(func(o *Options) { o.ContentTypes = []string{"text/*"} }))
	if r, err := c.Do(context.Background(),
		Request{URL: s.url(t, "/"), Address: loopback, AnyType: true}); err != nil ||
		text(t, r) != "hello" {
		t.Errorf("any type: %v", err)
	}
	for text, want := range map[string]bool{"text/html": true, "text/*": true, "*/*": true, "*": false, "*/html": false,
		"text": false, "text/html; q=1": false, "": false, "/": false, "a b/c": false} {
		assert.Equal(t, ValidMediaRange(text), want, text)
	}
}

// Settings are refused, or cannot do more than they should: no line break gets into a header, and
// no pattern names hosts besides its own.
func FuzzSettings(f *testing.F) {
	for _, seed := range []string{"example.com basic user:pass", "*.example.com bearer t",
		"http://a.test:8080 header X-Key: v", "X: y", "*", "bücher.example", "[::1]:8443 bearer t",
		"http://p.test:3128", "socks5://[::1]:1080", "10.0.0.0/8", "text/*", "a.test header Host: b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		clean := func(s string) bool { return !strings.ContainsAny(s, "\r\n\x00") }
		if c, err := ParseCredential(text); err == nil {
			assert.True(t, clean(c.field.name) && clean(c.field.value) && c.field.name != "" &&
				!strings.EqualFold(c.field.name, "Host") && c.port != 0, "credential %q: %+v", text, c.field)
			assert.True(t, !c.hosts.Match("unrelated.invalid") || strings.Contains(text, "invalid"),
				"credential %q is for any host", text)
		}
		h, err := ParseHeader(text)
		assert.True(t, err != nil || clean(h.Name) && clean(h.Value) && h.Name != "", "header %q: %+v", text, h)
		if p, err := ParseHostPattern(text); err == nil {
			again, err := ParseHostPattern(string(p))
			assert.True(t, err == nil && again == p, "pattern %q: %q is read back as %q, %v", text, p, again, err)
		}
		if p, err := ParseRange(text); err == nil && p.Masked() != p {
			t.Errorf("range %q: %v", text, p)
		}
		assert.True(t, !ValidMediaRange(text) || strings.Contains(text, "/"), "media range %q", text)
		_ = ParseProxy(text)
	})
}
