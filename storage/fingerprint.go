package storage

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/amble-crawler/amble/internal/weburl"
)

const keySize = 16

// Fingerprint is the identity of a URL among the URLs of its host in 64 bits.
// It is keyed with a secret of this store, so that nobody can prepare URLs that
// collide; and a collision costs only time, since texts decide. Any goroutine
// may call it.
func (s *Store) Fingerprint(u weburl.URL) uint64 {
	var buf [weburl.MaxLength]byte
	return s.fingerprint(u.Scheme() == "https", u.Port(), append(buf[:0], u.RequestURI()...))
}

func (s *Store) fingerprint(secure bool, port uint16, uri []byte) uint64 {
	var buf [keySize + 3 + weburl.MaxLength]byte
	b := append(buf[:0], s.key[:]...)
	if secure {
		b = append(b, 's')
	} else {
		b = append(b, 'p')
	}
	b = binary.BigEndian.AppendUint16(b, port)
	sum := sha256.Sum256(append(b, uri...))
	fp := binary.BigEndian.Uint64(sum[:])
	if s.weaken != nil {
		fp = s.weaken(fp)
	}
	return fp
}
