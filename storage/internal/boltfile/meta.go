// Package boltfile reads the pages of a bbolt file, which may be damaged anywhere. bbolt itself follows them in the
// mapped file, where a wrong page number kills the process and a cycle of pages never ends.
package boltfile

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"io"
	"math"
	"os"
	"slices"
)

// The part of bbolt's file format that inspect reads: two meta pages, the first at the start of the
// file, the second one page size behind it. Each has a header of 16 bytes and then magic, version,
// page size, flags (4 bytes each), the root bucket (16), the freelist page (8), the number of pages
// in use (8), the transaction (8), and an FNV-1a sum of all these (8).
const (
	magic      = 0xED0CDAED
	MetaOffset = 16
	MetaSize   = 64
	minPage    = 1 << 9
	maxPage    = 1 << 16
	noFreelist = 1<<64 - 1 // in place of the freelist page: the file has none, ours always have
)

// Meta is a decoded meta page.
type Meta struct {
	At       int64 // offset in the file
	PageSize int64
	root     uint64
	Freelist uint64 // the page that lists those that are free
	TX       uint64 // the transaction that wrote it
	Pages    uint64 // in use or free: the least number of pages of the file
}

// Size returns the least size of the file in bytes; ok is false if bbolt has not written it so: it would write a free
// list into a file without one.
func (m Meta) Size() (bytes int64, ok bool) {
	if m.Freelist == noFreelist || m.Pages == 0 || m.Pages > math.MaxInt64/maxPage {
		return 0, false
	}
	return int64(m.Pages) * m.PageSize, true
}

// Newest returns the meta page in force.
func Newest(metas []Meta) Meta {
	return slices.MaxFunc(metas, func(a, b Meta) int { return cmp.Compare(a.TX, b.TX) })
}

// Confirm makes what the file shows durable before anybody acts on it. If the last sync of the
// process before failed, or the process was killed before it, the meta page in force may be in the
// page cache only, and the system may take it for written and drop it. So Confirm writes and syncs
// the page once more. All that the page refers to was synced before the page was first written.
func Confirm(f *os.File) error {
	metas := Metas(f)
	if len(metas) == 0 {
		return nil // bbolt refuses it
	}
	m := Newest(metas)
	page := make([]byte, m.PageSize)
	if _, err := f.ReadAt(page, m.At); err != nil {
		return err
	}
	if _, err := f.WriteAt(page, m.At); err != nil {
		return err
	}
	return f.Sync()
}

// Metas reads the meta pages whose sums are right.
func Metas(f io.ReaderAt) (metas []Meta) {
	for _, at := range metaOffsets(f) {
		if m, ok := readMeta(f, at); ok {
			metas = append(metas, m)
		}
	}
	return metas
}

// readMeta reads a meta page; ok is false if its sum is not right.
func readMeta(f io.ReaderAt, at int64) (m Meta, ok bool) {
	b, le := make([]byte, MetaSize), binary.LittleEndian
	if _, err := f.ReadAt(b, at+MetaOffset); err != nil {
		return m, false
	}
	if le.Uint32(b) != magic || le.Uint64(b[56:]) != MetaSum(b[:56]) {
		return m, false
	}
	if size := le.Uint32(b[8:]); size < minPage || size > maxPage {
		return m, false
	}
	return Meta{
		At: at, PageSize: int64(le.Uint32(b[8:])), root: le.Uint64(b[16:]), Freelist: le.Uint64(b[32:]),
		Pages: le.Uint64(b[40:]), TX: le.Uint64(b[48:]),
	}, true
}

func MetaSum(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

// metaOffsets returns the offsets where a meta page may be, for any page size.
func metaOffsets(f io.ReaderAt) []int64 {
	offsets := []int64{0}
	if first, ok := readMeta(f, 0); ok {
		return append(offsets, first.PageSize)
	}
	for size := int64(minPage); size <= maxPage; size *= 2 {
		offsets = append(offsets, size)
	}
	return offsets
}
