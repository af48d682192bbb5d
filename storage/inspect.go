package storage

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
)

// What inspect knows of bbolt's file format: two meta pages, the first at the
// start of the file, the second one page size behind it. Each has a header of 16
// bytes and then magic, version, page size, flags (4 bytes each), the root
// bucket (16), the freelist page (8), the number of pages in use (8), the
// transaction (8), and an FNV-1a sum of all these (8).
const (
	boltMagic      = 0xED0CDAED
	boltMetaOffset = 16
	boltMetaSize   = 64
	boltMinPage    = 1 << 9
	boltMaxPage    = 1 << 16
	boltNoFreelist = 1<<64 - 1 // in place of the freelist page: not kept in the file, which we always do
)

// inspect refuses files that must not be mapped: a mapped file that is shorter
// than its meta page says kills the process with SIGBUS on the first read.
func inspect(path string, readOnly bool) (fresh bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !readOnly {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("%w: it is not a regular file", ErrNotDatabase)
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if info.Size() == 0 && !readOnly {
		return true, nil
	}
	if err := lockedByOther(f); err != nil {
		return false, err
	}
	if info, err = f.Stat(); err != nil { // its size now that nobody writes it
		return false, err
	}
	need, err := boltSize(f)
	if err != nil {
		return false, err
	}
	if info.Size() < need {
		return false, fmt.Errorf("%w: it has %d bytes and should have at least %d; restore it from a copy", ErrTruncated, info.Size(), need)
	}
	return false, nil
}

// boltMeta is what a meta page says.
type boltMeta struct {
	at                 int64 // where it begins in the file
	pageSize           int64
	root, freelist, tx uint64
	pages              uint64 // in use or free: the file has at least so many
}

// boltSize reads from the newest valid meta page how many bytes the file has
// to have at least.
func boltSize(f io.ReaderAt) (int64, error) {
	metas := validMetas(f)
	if len(metas) == 0 {
		return 0, ErrNotDatabase
	}
	m := newest(metas)
	if m.freelist == boltNoFreelist || m.pages == 0 || m.pages > math.MaxInt64/boltMaxPage { // without a free list bbolt would write one into it at once
		return 0, ErrNotDatabase
	}
	return int64(m.pages) * m.pageSize, nil
}

// newest is the meta page that is in force.
func newest(metas []boltMeta) boltMeta {
	return slices.MaxFunc(metas, func(a, b boltMeta) int { return cmp.Compare(a.tx, b.tx) })
}

// confirm makes what the file shows durable before anybody acts on it. If the process before had
// its last sync fail, or was killed before it, the meta page in force may be in the memory of the
// system alone, which may take it for written and forget it. So the page is written once more. All
// that it refers to was synced before it was first written.
func confirm(f *os.File) error {
	metas := validMetas(f)
	if len(metas) == 0 {
		return nil // bbolt refuses it
	}
	m := newest(metas)
	page := make([]byte, m.pageSize)
	if _, err := f.ReadAt(page, m.at); err != nil {
		return err
	}
	if _, err := f.WriteAt(page, m.at); err != nil {
		return err
	}
	return f.Sync()
}

// validMetas reads the meta pages whose sums are right.
func validMetas(f io.ReaderAt) (metas []boltMeta) {
	for _, at := range metaPlaces(f) {
		b := make([]byte, boltMetaSize)
		if _, err := f.ReadAt(b, at+boltMetaOffset); err != nil {
			continue
		}
		le := binary.LittleEndian
		if le.Uint32(b) != boltMagic || le.Uint64(b[56:]) != metaSum(b[:56]) {
			continue
		}
		if size := le.Uint32(b[8:]); size < boltMinPage || size > boltMaxPage {
			continue
		}
		metas = append(metas, boltMeta{
			at: at, pageSize: int64(le.Uint32(b[8:])), root: le.Uint64(b[16:]), freelist: le.Uint64(b[32:]),
			pages: le.Uint64(b[40:]), tx: le.Uint64(b[48:]),
		})
	}
	return metas
}

func metaSum(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

// metaPlaces are the places where a meta page can be, whatever the page size.
func metaPlaces(f io.ReaderAt) []int64 {
	places := []int64{0}
	b := make([]byte, boltMetaSize)
	if _, err := f.ReadAt(b, boltMetaOffset); err == nil && binary.LittleEndian.Uint32(b) == boltMagic {
		if size := binary.LittleEndian.Uint32(b[8:]); size >= boltMinPage && size <= boltMaxPage {
			return append(places, int64(size))
		}
	}
	for size := int64(boltMinPage); size <= boltMaxPage; size *= 2 {
		places = append(places, size)
	}
	return places
}
