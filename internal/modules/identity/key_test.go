package identity

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func testKey(t testing.TB, letter string, from time.Time) *Key {
	t.Helper()
	return must.Get(NewKey([]byte(strings.Repeat(letter, ed25519.SeedSize)), from))(t)
}

// TestRotation: the next key is published before it signs, and the last one for a day after; the keys of other
// processes are published and never sign.
func TestRotation(t *testing.T) {
	begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	a, b, other := testKey(t, "a", begin), testKey(t, "b", begin.Add(100*time.Hour)), testKey(t, "o", begin)
	keys := must.Get(OpenKeyring(dir, begin))(t)
	assert.Fails(keys.Signing(begin))(t, nil, "no key signs")
	for _, k := range []*Key{a, b} {
		must.Get(keys.Add(k))(t)
	}
	public := must.Get(json.Marshal(other.publicJWK()))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "other.pub.jwk"), public, 0o644))
	for _, c := range []struct {
		after     time.Duration
		signs     *Key
		published []*Key
	}{
		{time.Hour, a, []*Key{a, b, other}},
		{100*time.Hour - 1, a, []*Key{a, b, other}},
		{100 * time.Hour, b, []*Key{a, b, other}},
		{125*time.Hour - 1, b, []*Key{a, b, other}},
		{125 * time.Hour, b, []*Key{b, other}},
	} {
		now := begin.Add(c.after)
		k, err := keys.Signing(now)
		assert.True(t, err == nil && k.ID == c.signs.ID, "after %s: %v, %v", c.after, k, err)
		var got, want []string
		for _, k := range keys.Published(now) {
			got = append(got, k.ID)
		}
		for _, k := range c.published {
			want = append(want, k.ID)
		}
		slices.Sort(got)
		slices.Sort(want)
		assert.Slice(t, got, want, "after", c.after, "published")
	}
}

// TestKeyFiles: files that others can read, published test keys and what is no key are refused, with the file's name
// and without its content.
func TestKeyFiles(t *testing.T) {
	now := time.Now()
	good := testKey(t, "a", now)
	text := must.Get(good.marshal())(t)
	const published = `{"kty":"OKP","crv":"Ed25519","d":"n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU",` +
		`"x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}`
	mixed := strings.Replace(string(text), encode(good.public), encode(testKey(t, "b", now).public), 1)
	for _, c := range []struct {
		name, file, text string
		mode             os.FileMode
		want             string
	}{
		{"good", "a.jwk", string(text), 0o600, ""},
		{"readable for the group", "a.jwk", string(text), 0o640, "others can read it"},
		{"readable for all", "a.jwk", string(text), 0o604, "others can read it"},
		{"test key of RFC 9421", "a.jwk", published, 0o600, "published test key"},
		{"halves of two keys", "a.jwk", mixed, 0o600, "do not belong together"},
		{"private half in a public file", "a.pub.jwk", string(text), 0o644, "has a private half"},
		{"RSA", "a.jwk", `{"kty":"RSA","n":"AQAB"}`, 0o600, "only OKP"},
		{"no JSON", "a.jwk", "secret", 0o600, "no JSON Web Key"},
		{"short", "a.jwk", `{"kty":"OKP","crv":"Ed25519","x":"AAAA"}`, 0o600, "no public key"},
		{"another file", "notes.txt", "secret", 0o644, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, c.file)
			must.Do(t, os.WriteFile(path, []byte(c.text), 0o600))
			must.Do(t, os.Chmod(path, c.mode))
			_, err := OpenKeyring(dir, now)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %s", err, c.want)
			case err != nil && (!strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "secret") ||
				strings.Contains(err.Error(), "n4Ni")):
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestTestKeys: the keys that RFC 8032 and RFC 9421 print are refused.
func TestTestKeys(t *testing.T) {
	for _, seed := range []string{
		"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
		"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
		"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
		"f5e5767cf153319517630f226876b86c8160cc583bc013744c6bf255f5cc0ee5",
		"833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
		"9f8362f87a484a954e6e740c5b4c0e84229139a20aa8ab56ff66586f6a7d29c5",
		strings.Repeat("00", 32),
	} {
		raw := must.Get(hex.DecodeString(seed))(t)
		assert.Fails(NewKey(raw, time.Now()))(t, nil, seed, "is taken")
	}
}

// TestNewKeyMode: a private key that is made is readable for its owner alone, and in no text of the program.
func TestNewKeyMode(t *testing.T) {
	keys := must.Get(OpenKeyring(filepath.Join(t.TempDir(), "identity"), time.Now()))(t)
	path := must.Get(keys.Add(testKey(t, "a", time.Now())))(t)
	info, err := os.Stat(path)
	assert.True(t, err == nil && info.Mode().Perm() == 0o600, "%v, %v", info.Mode(), err)
	set, err := Directory(keys.Published(time.Now()))
	assert.True(t, err == nil && !strings.Contains(string(set), `"d"`), "%s, %v", set, err)
}

func FuzzParseKey(f *testing.F) {
	f.Add([]byte(`{"kty":"OKP","crv":"Ed25519","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if k, err := parseKey(text); err == nil && len(k.Public()) != ed25519.PublicKeySize {
			t.Errorf("%s is a key of %d bytes", text, len(k.Public()))
		}
	})
}

func FuzzAcceptSignature(f *testing.F) {
	f.Add(`sig1=("@authority");nonce="a";tag="web-bot-auth"`)
	f.Fuzz(func(t *testing.T, line string) {
		wants, label, nonce := acceptSignature([]string{line})
		if !wants {
			return
		}
		k := testKey(t, "a", time.Now())
		h := make(map[string][]string)
		input, signature, err := sign(k, []component{{name: "@authority", value: "a.test"}},
			claim{label: label, nonce: nonce, created: time.Now(), expires: time.Now().Add(time.Minute),
				tag: tagRequest})
		if err != nil {
			return // a nonce that no field can carry
		}
		h["Signature-Input"], h["Signature"] = []string{input}, []string{signature}
		if strings.ContainsAny(nonce, `"\`) {
			return // the verifier of the tests does not read escapes
		}
		must.Do(t, verify(message{authority: "a.test", header: h}, label, k.public, time.Time{}))
	})
}
