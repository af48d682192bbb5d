// Package digest is the digest of a body: a SHA-256, as the output has it.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// Digest is a SHA-256.
type Digest [sha256.Size]byte

const label = "sha256:"

// String returns the digest as the output contains it: "sha256:" and 64 hexadecimal digits.
func (d Digest) String() string {
	b := append(make([]byte, 0, len(label)+2*len(d)), label...)
	return string(hex.AppendEncode(b, d[:]))
}

// NewHash returns the hash for digests.
func NewHash() hash.Hash { return sha256.New() }

// Sum returns the digest of the bytes written to a hash of NewHash.
func Sum(h hash.Hash) (d Digest) {
	h.Sum(d[:0])
	return d
}

// Of returns the digest of bytes.
func Of(b []byte) Digest { return sha256.Sum256(b) }
