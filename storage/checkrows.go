//go:build !core

package storage

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// metadata checks the metadata of a host.
func (c *checker) metadata(r *hostRow) {
	b := c.tx.Bucket(bucketMetadata)
	if b == nil {
		return
	}
	cursor := b.Cursor()
	for k, v := cursor.Seek(appendHostKey(nil, r.id)); k != nil && hostOfKey(k) == r.id; k, v = cursor.Next() {
		c.rows[string(bucketMetadata)]++
		m, ok := DecodeMetadata(v)
		if ordinal := binary.BigEndian.Uint32(k[4:]); !ok || len(m) == 0 || ordinal < r.first || ordinal >= r.next {
			c.found("host %d: metadata of URL %d cannot be read or belong to no URL", r.id, ordinal)
		}
	}
}

// payloads checks the payloads of a host, in its row and in the bucket.
func (c *checker) payloads(r *hostRow) {
	for item := range slices.Chunk(r.payloads, payloadItemSize) {
		c.payload(r, item[:8], item[8:])
	}
	b := c.tx.Bucket(bucketPayload)
	if b == nil {
		return
	}
	cursor, prefix := b.Cursor(), appendHostKey(nil, r.id)
	for k, v := cursor.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = cursor.Next() {
		c.rows[string(bucketPayload)]++
		c.payload(r, k[len(prefix):], v)
	}
}

func (c *checker) payload(r *hostRow, digest, v []byte) {
	if p, ok := decodePayload(v); !ok || len(digest) != 8 || p.Ordinal >= r.next {
		c.found("host %d: payload %x cannot be read or names no URL of the host", r.id, digest)
	}
}

// recrawl looks for the row of a URL's recrawl.
func (c *checker) recrawl(r *hostRow, q *Backlog, e *Entry, at uint32) {
	if at == 0 {
		return
	}
	q.Recrawls++
	q.NextRecrawl = earlier(q.NextRecrawl, at)
	key := appendRecrawlKey(nil, r.id, e.Origin, at, e.Ordinal)
	if bucket := c.tx.Bucket(bucketRecrawl); bucket != nil {
		if k, _ := bucket.Cursor().Seek(key); bytes.Equal(k, key) {
			c.rows[string(bucketRecrawl)]++
			return
		}
	}
	c.found("host %d: URL %d is planned for a recrawl but has no row in bucket %s", r.id, e.Ordinal, bucketRecrawl)
}

// traps checks the host's row of the trap bucket.
func (c *checker) traps(id HostID) {
	b := c.tx.Bucket(bucketTrap)
	if b == nil {
		return
	}
	v := b.Get(appendHostKey(nil, id))
	if v == nil {
		return
	}
	c.rows[string(bucketTrap)]++
	if counts, ok := decodeTraps(v); !ok || len(counts) == 0 || !bytes.Equal(appendTraps(nil, counts), v) {
		c.found("host %d: traps cannot be read", id)
	}
}
