//go:build !core

package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Key is a signing key of Ed25519, or its public half.
type Key struct {
	public  ed25519.PublicKey
	private ed25519.PrivateKey // nil: another process signs with it
	// ID is the thumbprint of the key (RFC 7638, RFC 8037 appendix A.3), in base64url.
	ID string
	// From is when signing with it begins. It is published before that.
	From time.Time
}

// CanSign reports whether the private half is here.
func (k *Key) CanSign() bool { return k.private != nil }

// Public returns the public half.
func (k *Key) Public() ed25519.PublicKey { return k.public }

// NewKey returns the key of a seed of 32 random bytes.
func NewKey(seed []byte, from time.Time) (*Key, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("a key has %d bytes, not %d", ed25519.SeedSize, len(seed))
	}
	private := ed25519.NewKeyFromSeed(seed)
	return newKey(private.Public().(ed25519.PublicKey), private, from)
}

func newKey(public ed25519.PublicKey, private ed25519.PrivateKey, from time.Time) (*Key, error) {
	k := &Key{public: public, private: private, ID: Thumbprint(public), From: from}
	if slices.Contains(testKeys(), hex.EncodeToString(public)) {
		return nil, errors.New("it is a published test key, which anybody can sign with")
	}
	return k, nil
}

// testKeys are public keys whose private halves are printed in documents: RFC 9421 appendix B.1.4 (which the drafts of
// Web Bot Auth use too), RFC 8032 section 7.1 (RFC 8037 appendix A has the first), and the key of zeros.
func testKeys() []string {
	return []string{
		"26b40b8f93fff3d897112f7ebc582b232dbd72517d082fe83cfb30ddce43d1bb",
		"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
		"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
		"fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
		"278117fc144c72340f67d0f2316e8386ceffbf2b2428c9c51fef7c597f1d426e",
		"ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
		"3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29",
	}
}

// Thumbprint returns the thumbprint of a public key (RFC 7638) in base64url: the keyid of its signatures.
func Thumbprint(public ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + encode(public) + `"}`))
	return encode(sum[:])
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// jwk is a key as JSON (RFC 7517, RFC 8037).
type jwk struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv"`
	ID        string `json:"kid,omitempty"`
	X         string `json:"x"`
	D         string `json:"d,omitempty"`
	Algorithm string `json:"alg,omitempty"`
	Use       string `json:"use,omitempty"`
	NotBefore int64  `json:"nbf,omitempty"` // in seconds
}

// public returns the public half as JSON has it.
func (k *Key) publicJWK() jwk {
	return jwk{Type: "OKP", Curve: "Ed25519", ID: k.ID, X: encode(k.public), Algorithm: "EdDSA", Use: "sig",
		NotBefore: k.From.Unix()}
}

// marshal returns the content of the key's file, with the private half.
func (k *Key) marshal() ([]byte, error) {
	j := k.publicJWK()
	j.D = encode(k.private.Seed())
	return json.Marshal(j)
}

// maxKeyFile bounds a key file in bytes.
const maxKeyFile = 4 << 10

// parseKey reads a JWK of Ed25519, with or without the private half.
func parseKey(text []byte) (*Key, error) {
	var j jwk
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&j); err != nil {
		return nil, errors.New("it is no JSON Web Key") // without its text: that is a secret
	}
	if j.Type != "OKP" || j.Curve != "Ed25519" {
		return nil, fmt.Errorf("it is a key of type %.20q and curve %.20q; only OKP with Ed25519 is used", j.Type,
			j.Curve)
	}
	public, err := base64.RawURLEncoding.DecodeString(j.X)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return nil, errors.New("its x is no public key")
	}
	from := time.Unix(j.NotBefore, 0)
	if j.D == "" {
		return newKey(public, nil, from)
	}
	seed, err := base64.RawURLEncoding.DecodeString(j.D)
	if err != nil {
		return nil, errors.New("its d is no private key")
	}
	k, err := NewKey(seed, from)
	if err == nil && !k.public.Equal(ed25519.PublicKey(public)) {
		return nil, errors.New("its x and d do not belong together")
	}
	return k, err
}
