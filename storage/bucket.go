package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"
)

// sumSize is the size of the checksum behind the value of each row.
const sumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumSeed is what the checksums of a bucket's rows begin with, so that a row in another bucket does not
// have its checksum.
func sumSeed(bucket []byte) uint32 { return crc32.Checksum(bucket, castagnoli) }

// sumOf returns the checksum of a row. It covers the key: bytes under another key are another row.
func sumOf(seed uint32, k, v []byte) uint32 {
	return crc32.Update(crc32.Update(seed^uint32(len(k)), castagnoli, k), castagnoli, v)
}

// withoutSum returns the value of a row without its checksum; ok is false if that is not the row's.
func withoutSum(seed uint32, k, v []byte) (value []byte, ok bool) {
	n := len(v) - sumSize
	if n < 0 || binary.BigEndian.Uint32(v[n:]) != sumOf(seed, k, v[:n]) {
		return nil, false
	}
	return v[:n:n], true
}

// hasNoSum reports whether a row has no checksum in any version: every program has to find the version.
func hasNoSum(bucket, k []byte) bool {
	return len(k) == len(metaVersion) && bytes.Equal(k, metaVersion) && bytes.Equal(bucket, bucketMeta)
}

// bucket holds rows. Its methods check the checksum of each row that they return; a row without its
// checksum is a panic, which ends the transaction with ErrCorrupt: it never looks like no row.
type bucket struct {
	bolt *bolt.Bucket
	name []byte
	db   *database
	seed uint32
}

// value returns the value of a row as it was put.
func (b *bucket) value(k, v []byte) []byte {
	if !b.db.summed || hasNoSum(b.name, k) {
		return v
	}
	v, ok := withoutSum(b.seed, k, v)
	if !ok {
		panic(damage{damagedRow(b.name, k)})
	}
	return v
}

// row is value for the rows of a cursor. The key is nil if there is no row.
func (b *bucket) row(k, v []byte) (key, value []byte) {
	if k == nil {
		return nil, nil
	}
	return k, b.value(k, v)
}

// damagedRow returns the error for a row without its checksum.
func damagedRow(bucket, k []byte) error {
	switch string(bucket) {
	case string(bucketName), string(bucketRobots), string(bucketRobotsHistory), string(bucketScope), string(bucketMark),
		string(bucketMeta):
		return fmt.Errorf("%w: row %q of bucket %s does not have its checksum", ErrCorrupt, k, bucket)
	}
	return fmt.Errorf("host %d: %w: a row of bucket %s does not have its checksum", hostOfKey(k), ErrCorrupt, bucket)
}

// get returns the value of a key, nil if there is none.
func (b *bucket) get(k []byte) []byte {
	v := b.bolt.Get(k)
	if v == nil {
		return nil
	}
	return b.value(k, v)
}

// whole returns the value of a key; ok is false if there is none, or the row is damaged.
func (b *bucket) whole(k []byte) (v []byte, ok bool) {
	if v = b.bolt.Get(k); v == nil || !b.db.summed {
		return v, v != nil
	}
	return withoutSum(b.seed, k, v)
}

// has reports whether there is a row, damaged or not.
func (b *bucket) has(k []byte) bool { return b.bolt.Get(k) != nil }

// put sets the value of a key. It copies both.
func (b *bucket) put(k, v []byte) error {
	size := sumSize
	if hasNoSum(b.name, k) {
		size = 0
	}
	row := append(b.db.arena.Take(len(v)+size), v...)
	if size > 0 {
		row = binary.BigEndian.AppendUint32(row, sumOf(b.seed, k, v))
	}
	return b.bolt.Put(k, row)
}

func (b *bucket) delete(k []byte) error { return b.bolt.Delete(k) }

// fill sets how full pages are when they are divided.
func (b *bucket) fill(percent float64) { b.bolt.FillPercent = percent }

// each calls f for all rows in the order of their keys.
func (b *bucket) each(f func(k, v []byte) error) error {
	return b.bolt.ForEach(func(k, v []byte) error { return f(k, b.value(k, v)) })
}

// keys returns the number of rows. It reads all pages.
func (b *bucket) keys() int { return b.bolt.Stats().KeyN }

// stats returns the size of the bucket, and adds its pages to used. It reads all pages.
func (b *bucket) stats(used *int) BucketStats {
	s := b.bolt.Stats()
	*used += s.BranchPageN + s.BranchOverflowN + s.LeafPageN + s.LeafOverflowN
	return BucketStats{
		Name: string(b.name), Rows: s.KeyN, Levels: s.Depth,
		Bytes: int64(s.BranchAlloc + s.LeafAlloc), InUse: int64(s.BranchInuse + s.LeafInuse),
	}
}

func (b *bucket) cursor() *cursor { return &cursor{b.bolt.Cursor(), b} }

// cursor walks over the rows of a bucket in the order of their keys. A nil key is the end.
type cursor struct {
	bolt *bolt.Cursor
	of   *bucket
}

func (c *cursor) first() (k, v []byte) { return c.of.row(c.bolt.First()) }
func (c *cursor) last() (k, v []byte)  { return c.of.row(c.bolt.Last()) }
func (c *cursor) next() (k, v []byte)  { return c.of.row(c.bolt.Next()) }
func (c *cursor) prev() (k, v []byte)  { return c.of.row(c.bolt.Prev()) }

// seek moves to a key, or else to the next one.
func (c *cursor) seek(key []byte) (k, v []byte) { return c.of.row(c.bolt.Seek(key)) }

// get returns the value of a key, nil if there is none. Bucket.get makes a cursor for every call.
func (c *cursor) get(key []byte) []byte {
	v, _ := c.find(key)
	return v
}

// find is get. If there is no row of the key, next is the key of the first row behind it, which may be damaged.
func (c *cursor) find(key []byte) (v, next []byte) {
	k, v := c.bolt.Seek(key)
	if !bytes.Equal(k, key) {
		return nil, k
	}
	return c.of.value(k, v), nil
}

// delete deletes the row at hand.
func (c *cursor) delete() error { return c.bolt.Delete() }
