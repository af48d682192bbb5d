package warc

import (
	"crypto/sha1"
	"encoding/base32"
	"errors"
	"fmt"
	"hash"
	"strings"
)

// Digest is a SHA-1 as the digest fields hold it. It finds equal payloads and damage, it is no protection against forgery.
type Digest [sha1.Size]byte

// ErrDigest says that a text is no digest that can be checked.
var ErrDigest = errors.New("warc: not a SHA-1 digest in base 32")

const digestLabel = "sha1:"

// String is the digest as a field holds it, such as "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ".
func (d Digest) String() string {
	b := append(make([]byte, 0, len(digestLabel)+32), digestLabel...)
	return string(base32.StdEncoding.AppendEncode(b, d[:]))
}

// ParseDigest is the inverse of String.
func ParseDigest(s string) (d Digest, err error) {
	text, found := strings.CutPrefix(s, digestLabel)
	sum, err := base32.StdEncoding.DecodeString(strings.ToUpper(text))
	if !found || err != nil || len(sum) != len(d) {
		return d, fmt.Errorf("%w: %.80q", ErrDigest, s)
	}
	return Digest(sum), nil
}

// NewHash returns the hash that digests are made with.
func NewHash() hash.Hash { return sha1.New() }

// Sum returns the digest of what was written to a hash of NewHash.
func Sum(h hash.Hash) (d Digest) {
	h.Sum(d[:0])
	return d
}

// DigestOf returns the digest of bytes.
func DigestOf(b []byte) Digest { return sha1.Sum(b) }
