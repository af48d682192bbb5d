package rowfile

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"
)

// SumSize is the number of bytes of the checksum behind the value of each row.
const SumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SumSeed is what the checksums of a bucket's rows begin with, so that a row in another bucket does not
// have its checksum.
func SumSeed(bucket []byte) uint32 { return crc32.Checksum(bucket, castagnoli) }

// SumOf returns the checksum of a row. It covers the key: bytes under another key are another row.
func SumOf(seed uint32, k, v []byte) uint32 {
	return crc32.Update(crc32.Update(seed^uint32(len(k)), castagnoli, k), castagnoli, v)
}

// WithoutSum returns the value of a row without its checksum; ok is false if that is not the row's.
func WithoutSum(seed uint32, k, v []byte) (value []byte, ok bool) {
	n := len(v) - SumSize
	if n < 0 || binary.BigEndian.Uint32(v[n:]) != SumOf(seed, k, v[:n]) {
		return nil, false
	}
	return v[:n:n], true
}

// The row that has no checksum in any version: every program has to find the version.
const bucketMeta, keyVersion = "meta", "version"

// HasNoSum reports whether a row is that one.
func HasNoSum(bucket, k []byte) bool { return string(k) == keyVersion && string(bucket) == bucketMeta }

// Bucket holds rows. Its methods check the checksum of each row that they return; a row without its
// checksum is a panic, which ends the transaction with ErrCorrupt: it never looks like no row.
type Bucket struct {
	Bolt *bolt.Bucket // for tests
	Name []byte
	db   *DB
	seed uint32
}

// value returns the value of a row as it was put.
func (b *Bucket) value(k, v []byte) []byte {
	if !b.db.Summed || HasNoSum(b.Name, k) {
		return v
	}
	v, ok := WithoutSum(b.seed, k, v)
	if !ok {
		panic(damage{b.db.damaged(b.Name, k)})
	}
	return v
}

// row is value for the rows of a cursor. The key is nil if there is no row.
func (b *Bucket) row(k, v []byte) (key, value []byte) {
	if k == nil {
		return nil, nil
	}
	return k, b.value(k, v)
}

// Get returns the value of a key, nil if there is none.
func (b *Bucket) Get(k []byte) []byte {
	v := b.Bolt.Get(k)
	if v == nil {
		return nil
	}
	return b.value(k, v)
}

// Whole returns the value of a key; ok is false if there is none, or the row is damaged.
func (b *Bucket) Whole(k []byte) (v []byte, ok bool) {
	if v = b.Bolt.Get(k); v == nil || !b.db.Summed {
		return v, v != nil
	}
	return WithoutSum(b.seed, k, v)
}

// Has reports whether there is a row, damaged or not.
func (b *Bucket) Has(k []byte) bool { return b.Bolt.Get(k) != nil }

// Put sets the value of a key. It copies both.
func (b *Bucket) Put(k, v []byte) error {
	size := SumSize
	if HasNoSum(b.Name, k) {
		size = 0
	}
	row := append(b.db.arena.Take(len(v)+size), v...)
	if size > 0 {
		row = binary.BigEndian.AppendUint32(row, SumOf(b.seed, k, v))
	}
	return b.Bolt.Put(k, row)
}

// Delete removes a row, if there is one.
func (b *Bucket) Delete(k []byte) error { return b.Bolt.Delete(k) }

// Fill sets how full pages are when they are divided.
func (b *Bucket) Fill(percent float64) { b.Bolt.FillPercent = percent }

// Each calls f for all rows in the order of their keys.
func (b *Bucket) Each(f func(k, v []byte) error) error {
	return b.Bolt.ForEach(func(k, v []byte) error { return f(k, b.value(k, v)) })
}

// Keys returns the number of rows. It reads all pages.
func (b *Bucket) Keys() int { return b.Bolt.Stats().KeyN }

// Cursor returns a cursor of the rows.
func (b *Bucket) Cursor() *Cursor { return &Cursor{b.Bolt.Cursor(), b} }

// Cursor walks over the rows of a bucket in the order of their keys. A nil key is the end.
type Cursor struct {
	bolt *bolt.Cursor
	of   *Bucket
}

// First moves to the first row.
func (c *Cursor) First() (k, v []byte) { return c.of.row(c.bolt.First()) }

// Last moves to the last row.
func (c *Cursor) Last() (k, v []byte) { return c.of.row(c.bolt.Last()) }

// Next moves to the next row.
func (c *Cursor) Next() (k, v []byte) { return c.of.row(c.bolt.Next()) }

// Prev moves to the previous row.
func (c *Cursor) Prev() (k, v []byte) { return c.of.row(c.bolt.Prev()) }

// Seek moves to a key, or else to the next one.
func (c *Cursor) Seek(key []byte) (k, v []byte) { return c.of.row(c.bolt.Seek(key)) }

// Before moves to the last row before a key. next is the key of the row behind it, which may be damaged; nil: none.
func (c *Cursor) Before(key []byte) (k, v, next []byte) {
	if next, _ = c.bolt.Seek(key); next == nil {
		k, v = c.Last()
	} else {
		k, v = c.Prev()
	}
	return k, v, next
}

// Get returns the value of a key, nil if there is none. Bucket.get makes a cursor for every call.
func (c *Cursor) Get(key []byte) []byte {
	v, _ := c.Find(key)
	return v
}

// Find is Get. If there is no row of the key, next is the key of the first row behind it, which may be damaged.
func (c *Cursor) Find(key []byte) (v, next []byte) {
	k, v := c.bolt.Seek(key)
	if !bytes.Equal(k, key) {
		return nil, k
	}
	return c.of.value(k, v), nil
}

// Delete deletes the row at hand.
func (c *Cursor) Delete() error { return c.bolt.Delete() }
