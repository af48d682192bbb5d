package warc

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
)

// Digest is a SHA-256 as the digest fields contain it.
type Digest [sha256.Size]byte

// ErrDigest means that a text is no digest that can be checked.
var ErrDigest = errors.New("warc: not a SHA-256 digest in hexadecimal digits")

const digestLabel = "sha256:"

// String returns the digest as a field contains it: "sha256:" and 64 hexadecimal digits.
func (d Digest) String() string {
	b := append(make([]byte, 0, len(digestLabel)+2*len(d)), digestLabel...)
	return string(hex.AppendEncode(b, d[:]))
}

// ParseDigest is the inverse of String.
func ParseDigest(s string) (d Digest, err error) {
	text, found := strings.CutPrefix(s, digestLabel)
	sum, err := hex.DecodeString(text)
	if !found || err != nil || len(sum) != len(d) {
		return d, fmt.Errorf("%w: %.80q", ErrDigest, s)
	}
	return Digest(sum), nil
}

// NewHash returns the hash for digests.
func NewHash() hash.Hash { return sha256.New() }

// Sum returns the digest of the bytes written to a hash of NewHash.
func Sum(h hash.Hash) (d Digest) {
	h.Sum(d[:0])
	return d
}

// DigestOf returns the digest of bytes.
func DigestOf(b []byte) Digest { return sha256.Sum256(b) }
