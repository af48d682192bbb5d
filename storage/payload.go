package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// Payload says which response in the output holds a body, so that later responses with the same body can refer to it.
type Payload struct {
	Host    HostID
	Digest  uint64    // as in Outcome.Digest
	SHA256  [32]byte  // of the body as received, packed if it was, but without chunks
	Ordinal uint32    // of the URL with the response
	At      time.Time // when the request began, in whole seconds
}

const (
	payloadKeySize   = 4 + 8
	payloadValueSize = 32 + 4 + 4
	payloadItemSize  = 8 + payloadValueSize
)

// maxRecentPayloads is how many payloads the host's row may hold.
const maxRecentPayloads = 32

// The digests of a host are divided into sets by their first bits. A full set evicts its oldest
// body for a new one. So a host has at most 262,144 rows, nothing needs to be counted, and the
// evicted row is close to the new one.
const (
	payloadSetBits = 13
	payloadsOfSet  = 32
)

func appendPayloadKey(b []byte, host HostID, digest uint64) []byte {
	return binary.BigEndian.AppendUint64(appendHostKey(b, host), digest)
}

func appendPayload(b []byte, p *Payload) []byte {
	b = append(b, p.SHA256[:]...)
	b = binary.BigEndian.AppendUint32(b, p.Ordinal)
	return binary.BigEndian.AppendUint32(b, Seconds(p.At))
}

func decodePayload(v []byte) (p Payload, ok bool) {
	d := wire.NewDecoder(v)
	copy(p.SHA256[:], d.Bytes(len(p.SHA256)))
	p.Ordinal = d.Uint32()
	p.At = FromSeconds(d.Uint32())
	return p, d.End() == nil
}

// recentPayloads are the payloads in a host's row: digest and encoded payload, one after the other, ordered by digest.
type recentPayloads []byte

// find returns the offset of a digest, or the offset where it belongs.
func (r recentPayloads) find(digest uint64) (at int, found bool) {
	for ; at < len(r); at += payloadItemSize {
		if d := binary.BigEndian.Uint64(r[at:]); d >= digest {
			return at, d == digest
		}
	}
	return at, false
}

// get returns the encoded payload of a digest, or nil.
func (r recentPayloads) get(digest uint64) []byte {
	at, found := r.find(digest)
	if !found {
		return nil
	}
	return r[at+8 : at+payloadItemSize]
}

func (r recentPayloads) append(b []byte) []byte {
	return append(append(b, byte(len(r)/payloadItemSize)), r...)
}

// decodeRecentPayloads returns a part of d's bytes. No payloads, too many of them, and digests out
// of order are a failure of d.
func decodeRecentPayloads(d *wire.Decoder) recentPayloads {
	n := int(d.Byte())
	r := recentPayloads(d.Bytes(n * payloadItemSize))
	d.Require(n > 0 && n <= maxRecentPayloads)
	for at := payloadItemSize; at < len(r); at += payloadItemSize {
		d.Require(binary.BigEndian.Uint64(r[at:]) > binary.BigEndian.Uint64(r[at-payloadItemSize:]))
	}
	if !d.OK() {
		return nil
	}
	return r
}

// Payload returns the response in the output that holds a body of a host, given its Outcome.Digest.
// ok is false if there is none. Any goroutine may call it.
func (s *rows) Payload(host HostID, digest uint64) (p Payload, ok bool, err error) {
	err = s.db.View(func(tx *txn) error {
		v, err := findPayload(tx, host, digest)
		if err != nil || v == nil {
			return err
		}
		if p, ok = decodePayload(v); !ok {
			return fmt.Errorf("host %d: %w: a payload cannot be read", host, ErrCorrupt)
		}
		p.Host, p.Digest = host, digest
		return nil
	})
	return p, ok, err
}

// findPayload returns an encoded payload from the host's row or else from the bucket, or nil.
func findPayload(tx *txn, host HostID, digest uint64) ([]byte, error) {
	key, first := appendPayloadKey(make([]byte, 0, payloadKeySize), host, digest), uint32(0)
	if v := tx.Bucket(bucketHost).Get(key[:hostKeySize]); v != nil {
		var r hostRow
		if !r.decodePayloads(host, v) {
			return nil, fmt.Errorf("host %d: %w: its row cannot be read", host, ErrCorrupt)
		}
		if v = r.payloads.get(digest); v != nil {
			return v, nil
		}
		first = r.first
	}
	b := tx.Bucket(bucketPayload)
	if b == nil { // the file is of an older version and no row has overflowed yet
		return nil, nil
	}
	v := b.Get(key)
	if p, ok := decodePayload(v); ok && p.Ordinal < first {
		return nil, nil // of a URL that is deleted
	}
	return v, nil
}

// payload puts a payload into the row, where it replaces the one of the same digest. When the row
// is full, all its payloads move to the payload bucket. The keys of one host are in random order
// there, so each of them costs a page.
func (w *hostWork) payload(r *hostRow, p *Payload) error {
	if p.Ordinal >= r.next {
		return fmt.Errorf("body of URL %d, but the host has %d URLs", p.Ordinal, r.next)
	}
	if p.Ordinal < r.first {
		return nil
	}
	w.scratch = appendPayload(binary.BigEndian.AppendUint64(w.scratch[:0], p.Digest), p)
	at, found := w.payloads.find(p.Digest)
	if found {
		copy(w.payloads[at:], w.scratch)
		return nil
	}
	w.payloads = slices.Insert(w.payloads, at, w.scratch...)
	if len(w.payloads) <= maxRecentPayloads*payloadItemSize {
		return nil
	}
	if err := w.putPayloads(r.id); err != nil {
		return err
	}
	w.payloads = w.payloads[:0]
	return nil
}

// putPayloads moves the payloads of a host's row to the bucket, in the order of their keys.
func (w *hostWork) putPayloads(host HostID) error {
	bucket, err := w.tx.MakeBucket(bucketPayload)
	if err != nil {
		return err
	}
	cursor := bucket.Cursor()
	for item := range slices.Chunk(w.payloads, payloadItemSize) {
		digest := binary.BigEndian.Uint64(item)
		if gone := w.evicted(cursor, host, digest); gone != nil {
			if err := bucket.Delete(gone); err != nil {
				return fmt.Errorf("payload: %w", err)
			}
		}
		if err := bucket.Put(appendPayloadKey(w.key[:0], host, digest), item[8:]); err != nil {
			return fmt.Errorf("payload: %w", err)
		}
	}
	return nil
}

// evicted returns the key that makes room for a new body, or nil if the set of the body has room or
// has the body already.
func (w *hostWork) evicted(c *cursor, host HostID, digest uint64) []byte {
	const within = math.MaxUint64 >> payloadSetBits
	n, oldest := 0, uint32(math.MaxUint32)
	key := w.scratch[:0]
	last := appendPayloadKey(make([]byte, 0, payloadKeySize), host, digest|within)
	k, v := c.Seek(appendPayloadKey(w.key[:0], host, digest&^within))
	for ; k != nil && bytes.Compare(k, last) <= 0; k, v = c.Next() {
		if len(k) != payloadKeySize || len(v) != payloadValueSize || binary.BigEndian.Uint64(k[4:]) == digest {
			return nil
		}
		n++
		if at := binary.BigEndian.Uint32(v[payloadValueSize-4:]); at <= oldest {
			key, oldest = append(key[:0], k...), at
		}
	}
	if n < payloadsOfSet {
		return nil
	}
	return key
}
