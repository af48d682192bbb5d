package weburl

import (
	"strings"
	"testing"

	whatwg "github.com/nlnwa/whatwg-url/url"

	"github.com/amble-crawler/amble/internal/testing/must"
)

var hostCases = []struct{ raw, want string }{
	// ASCII names.
	{"example.com", "example.com"},
	{"EXAMPLE.Com", "example.com"},
	{"ex%41mple%2ecom", "example.com"},
	{"example.com.", "example.com"},
	{"example.com..", "ErrSyntax"},
	{".example.com", "ErrSyntax"},
	{"example..com", "ErrSyntax"},
	{".", "ErrNoHost"},
	{"..", "ErrSyntax"},
	{"a_b.c-", "a_b.c-"},
	{"a--b.example", "a--b.example"},
	{"!$&'()*+,;=~\"`{}", "!$&'()*+,;=~\"`{}"},
	{"a%zz", "ErrSyntax"},
	{"a%", "ErrSyntax"},
	{"a%00b", "ErrSyntax"},
	{"a%20b", "ErrSyntax"},
	{"a%2Fb", "ErrSyntax"},
	{"a%3Ab", "ErrSyntax"},
	{"a%40b", "ErrSyntax"},
	{"a%7Fb", "ErrSyntax"},
	{"a%09b", "ErrSyntax"},
	{"a<b", "ErrSyntax"},
	{"a>b", "ErrSyntax"},
	{"a^b", "ErrSyntax"},
	{"a|b", "ErrSyntax"},
	{"a[b", "ErrSyntax"},
	{"a]b", "ErrSyntax"},

	// Lengths.
	{strings.Repeat("a", 63) + ".example", strings.Repeat("a", 63) + ".example"},
	{strings.Repeat("a", 64) + ".example", "ErrSyntax"},
	{"example." + strings.Repeat("a", 64), "ErrSyntax"},
	{strings.Repeat("a.", 126) + "a", strings.Repeat("a.", 126) + "a"},
	{strings.Repeat("a.", 126) + "a.", strings.Repeat("a.", 126) + "a"},
	{strings.Repeat("a.", 126) + "ab", "ErrSyntax"},
	{strings.Repeat("ü", 59) + ".example", "ErrSyntax"},
	{strings.Repeat("中", 2000), "ErrSyntax"},

	// IDNA: only for names that are not ASCII.
	{"bücher.example", "xn--bcher-kva.example"},
	{"BÜCHER.example", "xn--bcher-kva.example"},
	{"bu\u0308cher.example", "xn--bcher-kva.example"},
	{"b%C3%BCcher.example", "xn--bcher-kva.example"},
	{"xn--bcher-kva.example", "xn--bcher-kva.example"},
	{"XN--BCHER-KVA.example", "xn--bcher-kva.example"},
	{"faß.example", "xn--fa-hia.example"},
	{"中文.example", "xn--fiq228c.example"},
	{"例え。テスト", "xn--r8jz45g.xn--zckzah"},
	{"ｅｘａｍｐｌｅ．ｃｏｍ", "example.com"},
	{"exa\u00admple.com", "example.com"},
	{"-ü-.-a-", "xn-----xka.-a-"},
	{"xn--pokxncvks.example", "xn--pokxncvks.example"},
	{"xn--.example", "xn--.example"},
	{"xn--pokxncvks.bücher.example", "ErrSyntax"},
	{"a\u200bb.example", "ab.example"},
	{"\u00ad", "ErrNoHost"},
	{"ü\u3002\u3002a", "ErrSyntax"},
	{"ü．", "xn--tda"},
	{"a％b", "ErrSyntax"},
	{"ü\ufffd", "ErrSyntax"},
	{"a%FFb", "ErrSyntax"},
	{"א1a", "ErrSyntax"}, // bidi rule

	// IPv4 in all its forms.
	{"192.0.2.1", "192.0.2.1"},
	{"192.0.2.1.", "192.0.2.1"},
	{"192.0.2.1..", "ErrSyntax"},
	{"0x7f.1", "127.0.0.1"},
	{"0X7F.0x0.0X0.0x1", "127.0.0.1"},
	{"0177.0.0.01", "127.0.0.1"},
	{"2130706433", "127.0.0.1"},
	{"0x7f000001", "127.0.0.1"},
	{"127.1", "127.0.0.1"},
	{"127.0.1", "127.0.0.1"},
	{"127.65535", "127.0.255.255"},
	{"127.16777216", "ErrSyntax"},
	{"0", "0.0.0.0"},
	{"0x", "0.0.0.0"},
	{"1.0x", "1.0.0.0"},
	{"4294967295", "255.255.255.255"},
	{"4294967296", "ErrSyntax"},
	{"99999999999999999999999", "ErrSyntax"},
	{"0xffffffffffffffffffffff", "ErrSyntax"},
	{"256.0.0.1", "ErrSyntax"},
	{"192.0.2.256", "ErrSyntax"},
	{"1.2.3.4.5", "ErrSyntax"},
	{"192.0.2.08", "ErrSyntax"},
	{"1.2.3.0x1g", "1.2.3.0x1g"},
	{"example.1", "ErrSyntax"},
	{"example.0x1", "ErrSyntax"},
	{"1..2", "ErrSyntax"},
	{"+1", "+1"},
	{"0x-1", "0x-1"},
	{"1.2.3.a", "1.2.3.a"},
	{"１２７．１", "127.0.0.1"},
	{"%31%32%37.1", "127.0.0.1"},

	// IPv6.
	{"[2001:db8::1]", "[2001:db8::1]"},
	{"[2001:DB8:0:0:0:0:0:1]", "[2001:db8::1]"},
	{"[2001:0db8::0001]", "[2001:db8::1]"},
	{"[::]", "[::]"},
	{"[::1]", "[::1]"},
	{"[1::]", "[1::]"},
	{"[1:0:0:2:0:0:0:3]", "[1:0:0:2::3]"},
	{"[1:0:2:3:4:5:6:7]", "[1:0:2:3:4:5:6:7]"},
	{"[1:0:0:2:3:0:0:4]", "[1::2:3:0:0:4]"},
	{"[::ffff:192.0.2.1]", "[::ffff:c000:201]"},
	{"[::192.0.2.1]", "[::c000:201]"},
	{"[::ffff:0:1]", "[::ffff:0:1]"},
	{"[64:ff9b::192.0.2.33]", "[64:ff9b::c000:221]"},
	{"[1:2:3:4:5:6:192.0.2.1]", "[1:2:3:4:5:6:c000:201]"},
	{"[1:2:3:4:5:6:7::]", "[1:2:3:4:5:6:7:0]"},
	{"[]", "ErrSyntax"},
	{"[", "ErrSyntax"},
	{"[::1", "ErrSyntax"},
	{"[::1]a", "ErrSyntax"},
	{"[[::1]]", "ErrSyntax"},
	{"[192.0.2.1]", "ErrSyntax"},
	{"[::1%25eth0]", "ErrSyntax"},
	{"[::1%eth0]", "ErrSyntax"},
	{"[:1]", "ErrSyntax"},
	{"[1::2::3]", "ErrSyntax"},
	{"[1:2:3:4:5:6:7:8:9]", "ErrSyntax"},
	{"[12345::]", "ErrSyntax"},
	{"[g::]", "ErrSyntax"},
	{"[::1.2.3]", "ErrSyntax"},
	{"[::01.2.3.4]", "ErrSyntax"},
	{"[::1.2.3.256]", "ErrSyntax"},
	{"[v1.a]", "ErrSyntax"},
}

func TestHost(t *testing.T) {
	for _, test := range hostCases {
		t.Run(test.raw, func(t *testing.T) {
			u, err := Parse("http://" + test.raw + "/")
			want := test.want
			if sentinels[want] == nil {
				want = "http://" + want + "/"
			}
			checkResult(t, u, err, want)
		})
	}
}

// FuzzHost compares this host parser with the library's, for hosts with the same rules.
func FuzzHost(f *testing.F) {
	for _, test := range hostCases {
		f.Add(test.raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		host, err := canonicalHost(raw)
		if err == nil {
			if again, err := canonicalHost(host); err != nil || again != host {
				t.Fatalf("%q gives %q, and that gives %q, error %v", raw, host, again, err)
			}
		}
		if !hasSameRules(raw) {
			return
		}
		theirs, theirErr := whatwg.Parse("http://" + raw + "/")
		must.True(t, (err == nil) == (theirErr == nil), "%q: host %q, error %v; the library has error %v", raw, host,
			err, theirErr)
		if err == nil && host != theirs.Hostname() {
			t.Fatalf("%q: host %q; the library has %q", raw, host, theirs.Hostname())
		}
	})
}

// hasSameRules reports whether the library has the same rules for a host. The library applies IDNA
// to ASCII names, accepts signs before the numbers of IPv4 addresses and letters after long ones,
// and keeps dots and lengths that DNS cannot hold.
func hasSameRules(raw string) bool {
	host := decodePercent(raw)
	if !isASCII(host) || len(host) > maxHost || strings.ContainsAny(raw, "/\\?#@\t\r\n") {
		return false
	}
	if strings.HasPrefix(raw, "[") {
		return strings.HasSuffix(raw, "]") && strings.Count(raw, "]") == 1 && strings.Count(raw, "[") == 1
	}
	if strings.ContainsAny(host, ":[]+-") {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > maxLabel || isDigit(label[0]) && len(label) > 15 {
			return false
		}
	}
	return true
}
