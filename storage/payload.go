package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Payload tells in which answer the output holds a body, so that later answers with the same body can point to it.
type Payload struct {
	Host    HostID
	Digest  uint64    // as in Outcome.Digest
	SHA1    [20]byte  // of the body as it came, before it was unpacked
	Ordinal uint32    // of the URL that was answered
	At      time.Time // when the request began, in whole seconds
}

const (
	payloadKeySize   = 4 + 8
	payloadValueSize = 20 + 4 + 4
)

// The digests of a host are divided into sets by their first bits, and a set that is full forgets its oldest body for a new one. So a host has 262,144 rows
// at most, nothing needs to be counted, and what goes lies beside what comes.
const (
	payloadSetBits = 13
	payloadsOfSet  = 32
)

func appendPayloadKey(b []byte, host HostID, digest uint64) []byte {
	return binary.BigEndian.AppendUint64(appendHostKey(b, host), digest)
}

func appendPayload(b []byte, p *Payload) []byte {
	b = append(b, p.SHA1[:]...)
	b = binary.BigEndian.AppendUint32(b, p.Ordinal)
	return binary.BigEndian.AppendUint32(b, seconds(p.At))
}

func decodePayload(v []byte) (p Payload, ok bool) {
	d := decoder{b: v}
	copy(p.SHA1[:], d.take(len(p.SHA1)))
	p.Ordinal = d.u32()
	p.At = fromSeconds(d.u32())
	return p, !d.bad && len(d.b) == 0
}

// Payload returns where the output holds a body of a host, by its Outcome.Digest; not ok where it does not. It may be
// called concurrently.
func (s *Store) Payload(host HostID, digest uint64) (p Payload, ok bool, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketPayload)
		if b == nil { // no commit has had one yet
			return nil
		}
		v := b.Get(appendPayloadKey(make([]byte, 0, payloadKeySize), host, digest))
		if v == nil {
			return nil
		}
		if p, ok = decodePayload(v); !ok {
			return fmt.Errorf("host %d: %w: where it holds a body cannot be read", host, ErrCorrupt)
		}
		p.Host, p.Digest = host, digest
		return nil
	})
	return p, ok, err
}

// putPayloads writes them from left to right. The last one of a digest counts.
func (w *writer) putPayloads(payloads []Payload) error {
	if len(payloads) == 0 {
		return nil
	}
	bucket, err := w.tx.CreateBucketIfNotExists(bucketPayload)
	if err != nil {
		return err
	}
	order := make([]int, len(payloads))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &payloads[i], &payloads[j]
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Digest, b.Digest))
	})
	cursor := bucket.Cursor()
	for _, i := range order {
		p := &payloads[i]
		if gone := w.forgotten(cursor, p); gone != nil {
			if err := bucket.Delete(gone); err != nil {
				return fmt.Errorf("payload of host %d: %w", p.Host, err)
			}
		}
		key := appendPayloadKey(w.key[:0], p.Host, p.Digest)
		if err := bucket.Put(key, w.arena.copy(appendPayload(w.scratch[:0], p))); err != nil {
			return fmt.Errorf("payload of host %d: %w", p.Host, err)
		}
	}
	return nil
}

// forgotten is the key that makes room for a new body: nil where its set has room, or has the body already.
func (w *writer) forgotten(c *bolt.Cursor, p *Payload) []byte {
	const within = math.MaxUint64 >> payloadSetBits
	n, oldest := 0, uint32(math.MaxUint32)
	key := w.scratch[:0]
	last := appendPayloadKey(make([]byte, 0, payloadKeySize), p.Host, p.Digest|within)
	for k, v := c.Seek(appendPayloadKey(w.key[:0], p.Host, p.Digest&^within)); k != nil && bytes.Compare(k, last) <= 0; k, v = c.Next() {
		if len(k) != payloadKeySize || len(v) != payloadValueSize || binary.BigEndian.Uint64(k[4:]) == p.Digest {
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

// payloads checks the rows of a host's bodies.
func (c *checker) payloads(id HostID, tail uint32) {
	b := c.tx.Bucket(bucketPayload)
	if b == nil {
		return
	}
	cursor, prefix := b.Cursor(), appendHostKey(nil, id)
	for k, v := cursor.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = cursor.Next() {
		c.rows[string(bucketPayload)]++
		if p, ok := decodePayload(v); !ok || len(k) != payloadKeySize || p.Ordinal >= tail {
			c.found("host %d: where the body %x is held cannot be read, or is no URL of the host", id, k[len(prefix):])
		}
	}
}
