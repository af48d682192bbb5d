package networks

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestFind(t *testing.T) {
	t.Parallel()
	l := must.Get(Load(t.TempDir()))(t)
	for address, want := range map[string]string{
		"104.16.0.1": "Cloudflare", "104.27.255.255": "Cloudflare", "104.28.0.0": "", "::ffff:104.16.0.1": "Cloudflare",
		"2606:4700::6810:84e5": "Cloudflare", "2a04:4e42:400::81": "Fastly", "151.101.1.69": "Fastly",
		"13.224.0.9": "CloudFront", "54.230.201.1": "CloudFront", "192.0.2.1": "", "2001:db8::1": "", "127.0.0.1": "",
	} {
		got := ""
		if n := l.Find(netip.MustParseAddr(address)); n != nil {
			got = n.Name
		}
		assert.Equal(t, got, want, address, "is of")
	}
	assert.True(t, l.Find(netip.Addr{}) == nil, "no address is of a network")
	for _, n := range l.Networks {
		assert.True(t, n.Ranges != 0 && !n.Date.IsZero() && strings.HasPrefix(n.Source, "https://"), "%+v", n)
	}
}

func TestLoadOfDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600))
	}
	put("Mine | the letter of 2026-11-20 | 2026-11-20\n192.0.2.0/24\n")
	l, err := Load(dir)
	assert.True(t, err == nil && l.Has(netip.MustParseAddr("192.0.2.9")) && !l.Has(netip.MustParseAddr("104.16.0.1")),
		"%v, %v", l, err)
	for text, want := range map[string]string{
		"":                                    "has no ranges",
		"192.0.2.0/24":                        "line 1: a range before the first network",
		"# a list\nA | b | yesterday":         "line 2: ",
		"A | b | 2026-11-20\n192.0.2.1/24":    "line 2: \"192.0.2.1/24\", want a range",
		"A | b | 2026-11-20\n0.0.0.0/0":       "line 2: \"0.0.0.0/0\"",
		"A | b | 2026-11-20\n192.0.2.0/24, x": "line 2: \"192.0.2.0/24,\"",
		strings.Repeat(" ", MaxBytes+1):       "want at most",
	} {
		put(text)
		_, err := Load(dir)
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%.40q: error %v, want %q", text, err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("A | b | 2026-11-20\n192.0.2.0/24 2001:db8::/32\n")
	f.Add(ranges)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		for p := range l.of {
			assert.True(t, l.Has(p.Addr()), "%v is not found", p)
		}
	})
}

func BenchmarkFind(b *testing.B) {
	l := must.Get(Parse(ranges))(b)
	a := netip.MustParseAddr("192.0.2.1")
	for b.Loop() {
		l.Find(a)
	}
}
