package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func testProfile(t testing.TB) *Profile {
	t.Helper()
	addresses := must.Get(ParseAddresses([]string{"2001:db8::/48", "192.0.2.7", "198.51.100.0/24", "192.0.2.7"}))(t)
	return &Profile{
		URL: botURL, Product: "amble", UserAgent: "amble/1.0 (+" + botURL + "/)", Contact: "crawler@amble.test",
		Operator: "The library of <Amble>", Purpose: "It keeps pages for readers.", Addresses: addresses,
		Delay: time.Second, PerHost: 1, Obeys: true, Signs: true,
	}
}

func get(t testing.TB, h http.Handler, method, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func bodyOf(t testing.TB, r *http.Response) string {
	t.Helper()
	b := must.Get(io.ReadAll(r.Body))(t)
	return string(b)
}

// TestDirectoryDocument: the key directory has its media type, a validator, a lifetime, and a signature by each key
// that holds for the published authority and the content.
func TestDirectoryDocument(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	keys, k := testKeyring(t, now)
	next := testKey(t, "n", now.Add(time.Hour))
	keys.keys = append(keys.keys, next)
	site := NewSite(testProfile(t), keys, func() time.Time { return now })
	r := get(t, site, http.MethodGet, PathDirectory)
	body := bodyOf(t, r)
	assert.True(t, r.StatusCode == 200 &&
		r.Header.Get("Content-Type") == "application/http-message-signatures-directory+json" &&
		strings.Contains(r.Header.Get("Cache-Control"), "max-age=86400"), "%s %v", r.Status, r.Header)
	var set struct{ Keys []map[string]any }
	err := json.Unmarshal([]byte(body), &set)
	must.True(t, err == nil && len(set.Keys) == 2, "%s: %v", body, err)
	for i, key := range []*Key{k, next} {
		j := set.Keys[i]
		assert.True(t, j["kid"] == thumbprintOf(key.public) && j["alg"] == "EdDSA" && j["kty"] == "OKP" &&
			j["crv"] == "Ed25519" && j["d"] == nil, "key %d is %v", i, j)
		m := message{authority: "bot.amble.test", header: r.Header}
		label := []string{"binding0", "binding1"}[i]
		must.Do(t, verify(m, label, key.public, time.Time{}))
		m.authority = "other.test"
		assert.True(t, verify(m, label, key.public, time.Time{}) != nil, "the directory holds for another authority")
	}
	sum := sha256.Sum256([]byte(body))
	assert.Equal(t, r.Header.Get("Content-Digest"), "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":",
		"Content-Digest")
	again := get(t, site, http.MethodGet, PathDirectory, "If-None-Match", r.Header.Get("ETag"))
	assert.Equal(t, again.StatusCode, 304, "with its validator", again.Status)
	keys.keys = nil
	assert.Equal(t, get(t, site, http.MethodGet, PathDirectory).StatusCode, 404, "without keys")
}

// TestDocuments: the documents have what their drafts ask for.
func TestDocuments(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	keys, _ := testKeyring(t, now)
	site := NewSite(testProfile(t), keys, func() time.Time { return now })
	var list struct {
		CreationTime string
		Prefixes     []map[string]string
	}
	must.Do(t, json.Unmarshal([]byte(bodyOf(t, get(t, site, http.MethodGet, PathAddresses))), &list))
	var prefixes []string
	for _, p := range list.Prefixes {
		prefixes = append(prefixes, p["ipv4Prefix"]+p["ipv6Prefix"])
	}
	want := []string{"192.0.2.7/32", "198.51.100.0/24", "2001:db8::/48"}
	assert.True(t, list.CreationTime == "2026-11-27T12:00:00Z" && slices.Equal(prefixes, want), "%+v", list)
	var card map[string]any
	must.Do(t, json.Unmarshal([]byte(bodyOf(t, get(t, site, http.MethodGet, PathCard))), &card))
	bot := card["web_bot_auth"].(map[string]any)
	assert.True(t, card["client_id"] == botURL+PathCard && card["jwks_uri"] == botURL+PathDirectory &&
		card["jwks"] == nil && bot["rfc9309-product-token"] == "amble" && bot["rfc9309-compliance"] == true &&
		bot["trigger"] == "crawler" && bot["ips_uri"] == botURL+PathAddresses &&
		bot["expected-user-agent"] == "amble/1.0 (+"+botURL+"/)", "%v", card)
	assert.Equal(t, get(t, site, http.MethodGet, PathReceipts).StatusCode, 404, "receipts without any")
}

// TestPage: the page is one file without a script, escapes what the settings say, and names what an operator needs.
func TestPage(t *testing.T) {
	keys, _ := testKeyring(t, time.Now())
	r := get(t, NewSite(testProfile(t), keys, time.Now), http.MethodGet, PathPage)
	body := bodyOf(t, r)
	for _, want := range []string{"crawler@amble.test", "mailto:crawler@amble.test", "Crawl-delay: 10", "Disallow: /",
		"User-agent: amble", `rel="client-ranges"`, "&lt;Amble&gt;", `lang="en"`, "viewport", "erased"} {
		assert.Contains(t, body, want, "the page lacks")
	}
	assert.Contains(t, r.Header.Get("Link"), `rel="client-ranges"`, "Link")
	tokens := html.NewTokenizer(strings.NewReader(body))
	for tokens.Next() != html.ErrorToken {
		switch token := tokens.Token(); token.Data {
		case "script", "img", "iframe":
			t.Errorf("the page has %s", token)
		case "link":
			assert.True(t, slices.Contains(token.Attr, html.Attribute{Key: "href", Val: PathAddresses}),
				"the page loads %s", token)
		}
	}
	csp := r.Header.Get("Content-Security-Policy")
	assert.True(t, strings.HasPrefix(csp, "default-src 'none'"), "Content-Security-Policy: %s", csp)
}

// FuzzSite: the public listener has what is meant, and nothing else, whatever is requested.
func FuzzSite(f *testing.F) {
	for _, path := range []string{PathPage, PathAddresses, PathCard, PathDirectory, "/robots.txt", "/metrics",
		"/api/v1/status", "//", "/../card.json", "/card.json/", "/CARD.JSON", "/%2e%2e/"} {
		f.Add(http.MethodGet, path)
	}
	f.Add(http.MethodPost, "/")
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	keys, _ := testKeyring(f, now)
	site := NewSite(testProfile(f), keys, func() time.Time { return now })
	public := []string{PathPage, PathAddresses, PathCard, PathDirectory, "/robots.txt"}
	f.Fuzz(func(t *testing.T, method, path string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Method, r.URL.Path = method, path
		w := httptest.NewRecorder()
		site.ServeHTTP(w, r)
		served := (method == http.MethodGet || method == http.MethodHead) && slices.Contains(public, path)
		assert.Equal(t, (w.Code == 200), served, method, path, w.Code)
		assert.True(t, !strings.Contains(w.Body.String(), `"d":`), "%s %q: a private key", method, path)
	})
}

// fakeNames has the names of addresses.
type fakeNames struct {
	reverse map[string][]string
	forward map[string][]netip.Addr
}

func (f fakeNames) LookupAddr(_ context.Context, address string) ([]string, error) {
	if names := f.reverse[address]; names != nil {
		return names, nil
	}
	return nil, errors.New("no such host")
}

func (f fakeNames) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return f.forward[host], nil
}

// TestCheck: what verifiers would miss is found, each in its line.
func TestCheck(t *testing.T) {
	now := time.Now()
	keys, _ := testKeyring(t, now)
	names := fakeNames{
		reverse: map[string][]string{"192.0.2.7": {"crawl-7.amble.test."}},
		forward: map[string][]netip.Addr{"crawl-7.amble.test.": {netip.MustParseAddr("192.0.2.7")}},
	}
	for _, c := range []struct {
		name   string
		change func(*Checker, *Profile) // of the checker, and of the profile that is served
		fails  []string
	}{
		{"all is well", func(*Checker, *Profile) {}, nil},
		{"another list", func(_ *Checker, p *Profile) { p.Addresses = p.Addresses[1:] }, []string{"address list"}},
		{"no reverse name", func(c *Checker, _ *Profile) { c.Names = fakeNames{} }, []string{"192.0.2.7/32"}},
		{"a name that leads elsewhere", func(c *Checker, _ *Profile) { c.Names = fakeNames{reverse: names.reverse} },
			[]string{"192.0.2.7/32"}},
		{"an address that is not listed", func(c *Checker, _ *Profile) {
			c.Local = []netip.Addr{netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("10.0.0.1")}
		}, []string{"addresses of this machine"}},
		{"another page", func(_ *Checker, p *Profile) { p.Product, p.UserAgent, p.Contact = "other", "other", "" },
			[]string{"page"}},
		{"another key", func(c *Checker, _ *Profile) {
			c.Keys = &Keyring{keys: []*Key{testKey(t, "z", now)}, read: now.Add(time.Hour)}
		}, []string{"key directory"}},
		{"no key", func(c *Checker, _ *Profile) { c.Keys = &Keyring{read: now.Add(time.Hour)} }, []string{"key"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			served := testProfile(t)
			server := httptest.NewServer(NewSite(served, keys, time.Now))
			defer server.Close()
			served.URL = server.URL
			expected := testProfile(t)
			expected.URL = server.URL
			checker := &Checker{Profile: expected, Keys: keys, Client: server.Client(), Names: names, Now: now}
			c.change(checker, served)
			var fails []string
			for _, f := range checker.Run(t.Context()) {
				if !f.OK {
					fails = append(fails, f.Subject)
					t.Log(f.Text)
				}
			}
			assert.Slice(t, fails, c.fails)
		})
	}
}

// TestEmit: what operators paste names the crawler and its addresses, and nothing in the settings ends a text.
func TestEmit(t *testing.T) {
	p := testProfile(t)
	for _, target := range Targets() {
		text := p.Emit(target)
		assert.True(t, strings.Contains(text, "amble") &&
			(target == "robots" || strings.Contains(text, "198.51.100.0/24")), "%s:\n%s", target, text)
		t.Logf("%s:\n%s", target, text)
	}
	assert.Equal(t, p.Emit("other"), "", "an unknown target has a text")
}

// TestServer: the listener serves, and refuses who requests too much.
func TestServer(t *testing.T) {
	now := time.Now()
	keys, _ := testKeyring(t, now)
	s := must.Get(Start(ServerOptions{Listen: "127.0.0.1:0", Now: func() time.Time { return now }},
		NewSite(testProfile(t), keys, time.Now)))(t)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	statuses := make(map[int]int)
	for range clientBurst + 5 {
		r := must.Get(client.Get("http://" + s.Address() + PathCard))(t)
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		statuses[r.StatusCode]++
	}
	assert.True(t, statuses[200] == clientBurst && statuses[429] == 5, "%v", statuses)
	client.CloseIdleConnections()
	must.Do(t, s.Close(t.Context()))
}
