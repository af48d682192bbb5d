package identity

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// publishedKey is the key of RFC 9421, appendix B.1.4. Nobody may use it; the vectors are made with it.
func publishedKey(t testing.TB) *Key {
	t.Helper()
	seed := must.Get(base64.RawURLEncoding.DecodeString("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU"))(t)
	private := ed25519.NewKeyFromSeed(seed)
	public := private.Public().(ed25519.PublicKey)
	got := encode(public)
	must.True(t, got == "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs", "public key %s", got)
	return &Key{public: public, private: private, ID: Thumbprint(public)}
}

// vector is a published signature.
type vector struct {
	name, label string
	m           message
}

func fields(all ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(all); i += 2 {
		h.Add(all[i], all[i+1])
	}
	return h
}

// vectors are those of RFC 9421, appendix B.2.6, and of draft-meunier-webbotauth-httpsig-protocol-02, for Ed25519.
func vectors() []vector {
	const id = `;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"`
	return []vector{
		{"RFC 9421 B.2.6", "sig-b26", message{method: "POST", authority: "example.com", path: "/foo", header: fields(
			"Date", "Tue, 20 Apr 2021 02:07:55 GMT", "Content-Type", "application/json", "Content-Length", "18",
			"Signature-Input", `sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length")`+
				`;created=1618884473;keyid="test-key-ed25519"`,
			"Signature", "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQ"+
				"CK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:",
		)}},
		{"member of Signature-Agent", "sig2", message{authority: "example.com", header: fields(
			"Signature-Agent", `agent2="https://signature-agent.test"`,
			"Signature-Input", `sig2=("@authority" "signature-agent";key="agent2");created=1735689600`+id+
				`;alg="ed25519";expires=4889289600;nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYC`+
				`qQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";tag="web-bot-auth"`,
			"Signature", "sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnw"+
				"PfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:",
		)}},
		{"bare string", "sig2", message{authority: "example.com", header: fields(
			"Signature-Agent", `"https://signature-agent.test"`,
			"Signature-Input", `sig2=("@authority" "signature-agent");created=1735689600`+id+
				`;alg="ed25519";expires=1735693200;nonce="e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadI`+
				`X6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==";tag="web-bot-auth"`,
			"Signature", "sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQd"+
				"i5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:",
		)}},
		{"directory", "binding", message{authority: "signature-agent.test", header: fields(
			"Content-Digest", "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:",
			"Signature-Input", `binding=("@authority";req "content-digest");created=1735689600;expires=4889289600`+id+
				`;tag="http-message-signatures-directory"`,
			"Signature", "binding=:l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmT"+
				"nFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==:",
		)}},
	}
}

// TestVectors: the verifier of these tests accepts what is published, and refuses each of it when a letter differs. So
// its verdicts about what this package signs count.
func TestVectors(t *testing.T) {
	key := publishedKey(t).public
	for _, v := range vectors() {
		t.Run(v.name, func(t *testing.T) {
			must.Do(t, verify(v.m, v.label, key, time.Time{}))
			other := v.m
			other.authority = "example.org"
			assert.True(t, verify(other, v.label, key, time.Time{}) != nil, "it holds for another authority")
			for name := range v.m.header {
				other := v.m
				other.header = v.m.header.Clone()
				text := other.header.Get(name)
				at := strings.IndexAny(text[len(text)/2:], "abcdefghijklmnopqrstuvwxyz0123456789") + len(text)/2
				other.header.Set(name, text[:at]+string(text[at]^1)+text[at+1:])
				if verify(other, v.label, key, time.Time{}) == nil {
					t.Errorf("it holds for %s: %s", name, other.header.Get(name))
				}
			}
		})
	}
}

// TestSignsVectors: signatures of Ed25519 have no randomness, so that the signer makes those of the draft.
func TestSignsVectors(t *testing.T) {
	k := publishedKey(t)
	assert.Equal(t, k.ID, "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U", "thumbprint")
	for _, v := range vectors()[1:] {
		input, _ := memberOf(v.m.header, "Signature-Input", v.label)
		want, _ := memberOf(v.m.header, "Signature", v.label)
		var components []component
		covered, _, _ := strings.Cut(input, ")")
		for _, id := range identifierOf.FindAllStringSubmatch(covered, -1) {
			c := component{name: id[1]}
			if key := textOf("key").FindStringSubmatch(id[2]); key != nil {
				c.params = []param{{"key", key[1]}}
			} else if id[2] == ";req" {
				c.params = []param{{"req", true}}
			}
			var err error
			c.value, err = v.m.value(id[1], id[2])
			must.True(t, err == nil, "%v", err)
			components = append(components, c)
		}
		base, params, err := signatureBase(components, innerList(t, input))
		assert.True(t, err == nil && params == input, "%s: %s, %v, want %s", v.name, params, err, input)
		got := ":" + base64.StdEncoding.EncodeToString(ed25519.Sign(k.private, []byte(base))) + ":"
		assert.Equal(t, got, want, v.name)
	}
}

func innerList(t *testing.T, text string) httpsfv.InnerList {
	t.Helper()
	list := must.Get(httpsfv.UnmarshalList([]string{text}))(t)
	return list[0].(httpsfv.InnerList)
}
