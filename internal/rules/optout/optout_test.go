package optout

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func entry(t *testing.T, scope Scope, value string) Entry {
	t.Helper()
	return must.Get(New(Entry{Scope: scope, Value: value, At: now}))(t)
}

func mustURL(t *testing.T, raw string) weburl.URL {
	t.Helper()
	return must.Get(weburl.Parse(raw))(t)
}

func TestNew(t *testing.T) {
	for _, test := range []struct {
		scope       Scope
		value, want string
	}{
		{ScopeHost, "WWW.Example.org.", "www.example.org"},
		{ScopeHost, "bücher.example", "xn--bcher-kva.example"},
		{ScopeHost, "192.0.2.1", "192.0.2.1"},
		{ScopeHost, "2001:DB8::1", "[2001:db8::1]"},
		{ScopeHost, "[2001:DB8::1]", "[2001:db8::1]"},
		{ScopeDomain, "*.Example.org", "example.org"},
		{ScopeDomain, "org", "org"},
		{ScopeRange, "192.0.2.77/24", "192.0.2.0/24"},
		{ScopeRange, "192.0.2.77", "192.0.2.77/32"},
		{ScopeRange, "::ffff:192.0.2.77", "192.0.2.77/32"},
		{ScopeRange, "2001:db8::1/32", "2001:db8::/32"},
		{ScopePrefix, "HTTPS://Example.org:443/a/../b?c#d", "https://example.org/b?c"},
		{ScopeHost, "", ""}, {ScopeHost, "http://example.org", ""}, {ScopeHost, "example.org:80", ""},
		{ScopeHost, "example.org/a", ""}, {ScopeHost, "a@example.org", ""}, {ScopeHost, "[::1]:80", ""},
		{ScopeHost, "[::1", ""}, {ScopeHost, "a b", ""}, {ScopeDomain, "192.0.2.1", ""},
		{ScopeRange, "192.0.2.0/33", ""},
		{ScopeRange, "example.org", ""}, {ScopeRange, "::ffff:192.0.2.0/120", ""}, {ScopePrefix, "example.org/a", ""},
		{ScopePrefix, "ftp://example.org/", ""}, {"site", "example.org", ""},
	} {
		e, err := New(Entry{Scope: test.scope, Value: test.value, At: now})
		if e.Value != test.want || (err == nil) != (test.want != "") || err != nil && !errors.Is(err, ErrEntry) {
			t.Errorf("%s %q: %q, %v; want %q", test.scope, test.value, e.Value, err, test.want)
		}
	}
	for _, bad := range []Entry{{Reason: strings.Repeat("a", maxReason+1)}, {By: strings.Repeat("a", maxBy+1)},
		{At: now, Until: now}} {
		bad.Scope, bad.Value = ScopeHost, "example.org"
		assert.Fails(New(bad))(t, nil, bad, "is an entry")
	}
}

func TestList(t *testing.T) {
	l := NewList(entry(t, ScopeHost, "www.example.com"), entry(t, ScopeDomain, "example.org"),
		entry(t, ScopeRange, "192.0.2.0/24"), entry(t, ScopeRange, "2001:db8::/32"),
		entry(t, ScopePrefix, "https://www.example.net/diary/"), entry(t, ScopePrefix, "http://www.example.net:8080/x"))
	for raw, want := range map[string]string{
		"http://www.example.com/":              "www.example.com",
		"https://www.example.com:8443/a?b":     "www.example.com",
		"http://example.com/":                  "",
		"http://a.www.example.com/":            "",
		"http://example.org/":                  "example.org",
		"http://a.b.example.org/x":             "example.org",
		"http://notexample.org/":               "",
		"http://192.0.2.9/":                    "192.0.2.0/24",
		"http://192.0.3.9/":                    "",
		"http://[2001:db8::5]/":                "2001:db8::/32",
		"https://www.example.net/diary/":       "https://www.example.net/diary/",
		"http://www.example.net/diary/2026?a":  "https://www.example.net/diary/",
		"https://www.example.net/diary":        "",
		"https://www.example.net:8080/diary/1": "",
		"https://www.example.net:8080/xyz":     "http://www.example.net:8080/x",
	} {
		e, ok := l.URL(mustURL(t, raw), now)
		assert.True(t, ok == (want != "") && e.Value == want, "%s: %v, %v; want %q", raw, e, ok, want)
	}
	for addr, want := range map[string]bool{"192.0.2.255": true, "::ffff:192.0.2.1": true, "192.0.1.255": false,
		"2001:db8:1::1%eth0": true, "2001:db9::": false} {
		_, ok := l.Addr(netip.MustParseAddr(addr), now)
		assert.True(t, ok == want, "%s: %v", addr, ok)
	}
	var none *List
	_, ok := none.URL(mustURL(t, "http://example.org/"), now)
	assert.True(t, !ok && none.Len() == 0 && none.NextEnd(now).IsZero(), "a missing list denies")
}

func TestEnds(t *testing.T) {
	e := entry(t, ScopeHost, "example.org")
	e.Until = now.Add(time.Hour)
	d := entry(t, ScopeDomain, "example.org")
	d.Until = now.Add(2 * time.Hour)
	l := NewList(e, d)
	for _, test := range []struct {
		at   time.Time
		ok   bool
		next time.Time
	}{
		{now, true, e.Until}, {e.Until.Add(-1), true, e.Until}, {e.Until, true, d.Until},
		{d.Until.Add(-1), true, d.Until},
		{d.Until, false, time.Time{}},
	} {
		if _, ok := l.Host("example.org", test.at); ok != test.ok || !l.NextEnd(test.at).Equal(test.next) {
			t.Errorf("%v: %v, next end %v", test.at, ok, l.NextEnd(test.at))
		}
	}
	forever := e
	forever.Until = time.Time{}
	for _, list := range [][]Entry{{e, forever}, {forever, e}} {
		if l := NewList(list...); l.Len() != 1 || !l.All()[0].Until.IsZero() {
			t.Errorf("%v", l.All())
		}
	}
}

const example = `# opt-outs of example people
domain example.org                    # mail of 2026-11-20
prefix https://www.example.net/diary/#top until=2027-01-01
range  192.0.2.0/24 # by phone, #2
www.example.com
host a.example until=2020-01-01T00:00:00Z	# ended

`

func TestReadFile(t *testing.T) {
	entries := must.Get(ReadFile(strings.NewReader(example), now))(t)
	var got []string
	for _, e := range entries {
		got = append(got, e.String())
		b, err := json.Marshal(e)
		var back Entry
		assert.True(t, err == nil && json.Unmarshal(b, &back) == nil && back == e, "%s: %+v is not %+v", b, back, e)
	}
	want := []string{
		"domain example.org since 2026-11-22: mail of 2026-11-20",
		"prefix https://www.example.net/diary/ since 2026-11-22 until 2027-01-02 00:00 UTC",
		"range 192.0.2.0/24 since 2026-11-22: by phone, #2",
		"host www.example.com since 2026-11-22",
		"host a.example since 2019-12-31 until 2020-01-01 00:00 UTC: ended",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for text, problem := range map[string]string{
		"\nexample.org example.net": "line 2", "site example.org": "line 1", "domain": "line 1",
		"\n\nhost a until=tomorrow": "line 3", "a\n" + strings.Repeat("a", 2*maxLine): "line 2",
	} {
		_, err := ReadFile(strings.NewReader(text), now)
		assert.True(t, err != nil && strings.Contains(err.Error(), problem), "%.40q: %v, want %s", text, err, problem)
	}
}

// TestListAgainstScan compares the list with a walk over all entries.
func TestListAgainstScan(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	label := func() string { return string(rune('a' + r.IntN(3))) }
	for range 300 {
		var entries []Entry
		for range r.IntN(8) {
			e := Entry{At: now}
			switch r.IntN(4) {
			case 0:
				e.Scope, e.Value = ScopeHost, label()+"."+label()+".test"
			case 1:
				e.Scope, e.Value = ScopeDomain, label()+".test"
			case 2:
				e.Scope, e.Value = ScopePrefix, "http://"+label()+"."+label()+".test/"+label()
			case 3:
				e.Scope, e.Value = ScopeRange, fmt.Sprintf("10.0.0.%d/%d", r.IntN(8), 29+r.IntN(4))
			}
			if r.IntN(3) == 0 {
				e.Until = now.Add(time.Duration(1+r.IntN(3)) * time.Hour)
			}
			entry := must.Get(New(e))(t)
			entries = append(entries, entry)
		}
		l := NewList(entries...)
		for range 30 {
			host := label() + "." + label() + ".test"
			if r.IntN(4) == 0 {
				host = fmt.Sprintf("10.0.0.%d", r.IntN(8))
			}
			u := mustURL(t, "http://"+host+"/"+label()+label())
			at := now.Add(time.Duration(r.IntN(4)) * time.Hour)
			want := false
			for _, e := range entries {
				covered := e.Scope == ScopeHost && u.Host() == e.Value ||
					e.Scope == ScopeDomain && strings.HasSuffix("."+u.Host(), "."+e.Value) ||
					e.Scope == ScopePrefix && strings.HasPrefix(u.String(), e.Value)
				if a, err := netip.ParseAddr(u.Host()); err == nil && e.Scope == ScopeRange {
					covered = netip.MustParsePrefix(e.Value).Contains(a)
				}
				want = want || covered && e.InForce(at)
			}
			_, got := l.URL(u, at)
			must.True(t, got == want, "%s at %v: %v, want %v; %v", u, at, got, want, entries)
		}
	}
}

func FuzzReadFile(f *testing.F) {
	f.Add(example)
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := ReadFile(strings.NewReader(text), now)
		if err != nil {
			return
		}
		for _, e := range entries {
			assert.Returns(New(e))(t, e, "is not canonical")
		}
		assert.AtMost(t, NewList(entries...).Len(), len(entries))
	})
}

func BenchmarkURL(b *testing.B) {
	var entries []Entry
	for i := range 100_000 {
		entries = append(entries, Entry{Scope: ScopeDomain, Value: fmt.Sprintf("d%d.example", i)})
	}
	l := NewList(entries...)
	u := must.Get(weburl.Parse("https://www.news.d77.example.org/a/b/c?d"))(b)
	for b.Loop() {
		l.URL(u, now)
	}
}
