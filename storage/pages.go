package storage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"

	"github.com/amble-crawler/amble/internal/system"
)

// The part of bbolt's file format that inspect reads: two meta pages, the first at the start of the
// file, the second one page size behind it. Each has a header of 16 bytes and then magic, version,
// page size, flags (4 bytes each), the root bucket (16), the freelist page (8), the number of pages
// in use (8), the transaction (8), and an FNV-1a sum of all these (8).
const (
	boltMagic      = 0xED0CDAED
	boltMetaOffset = 16
	boltMetaSize   = 64
	boltMinPage    = 1 << 9
	boltMaxPage    = 1 << 16
	boltNoFreelist = 1<<64 - 1 // in place of the freelist page: the file has none, ours always have
)

// inspect refuses files that must not be mapped: if a mapped file is shorter than its meta page
// says, the first read behind its end kills the process with SIGBUS.
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
	locked, err := system.IsLocked(f) // by bbolt of another process, for as long as that has it open
	if locked {
		err = ErrInUse
	}
	if err != nil {
		return false, err
	}
	if info, err = f.Stat(); err != nil { // its size now that no process writes it
		return false, err
	}
	need, err := boltSize(f)
	if err != nil {
		return false, err
	}
	if info.Size() < need {
		return false, fmt.Errorf("%w: it has %d bytes and should have at least %d",
			ErrTruncated, info.Size(), need)
	}
	return false, nil
}

// boltMeta is a decoded meta page.
type boltMeta struct {
	at                 int64 // offset in the file
	pageSize           int64
	root, freelist, tx uint64
	pages              uint64 // in use or free: the least number of pages of the file
}

// boltSize returns the least size of the file in bytes, according to the newest valid meta page.
func boltSize(f io.ReaderAt) (int64, error) {
	metas := validMetas(f)
	if len(metas) == 0 {
		return 0, ErrNotDatabase
	}
	m := newest(metas)
	// bbolt would write a free list into a file without one.
	if m.freelist == boltNoFreelist || m.pages == 0 || m.pages > math.MaxInt64/boltMaxPage {
		return 0, ErrNotDatabase
	}
	return int64(m.pages) * m.pageSize, nil
}

// newest returns the meta page in force.
func newest(metas []boltMeta) boltMeta {
	return slices.MaxFunc(metas, func(a, b boltMeta) int { return cmp.Compare(a.tx, b.tx) })
}

// confirm makes what the file shows durable before anybody acts on it. If the last sync of the
// process before failed, or the process was killed before it, the meta page in force may be in the
// page cache only, and the system may take it for written and drop it. So confirm writes and syncs
// the page once more. All that the page refers to was synced before the page was first written.
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
	for _, at := range metaOffsets(f) {
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

// metaOffsets returns the offsets where a meta page may be, for any page size.
func metaOffsets(f io.ReaderAt) []int64 {
	offsets := []int64{0}
	b := make([]byte, boltMetaSize)
	if _, err := f.ReadAt(b, boltMetaOffset); err == nil && binary.LittleEndian.Uint32(b) == boltMagic {
		if size := binary.LittleEndian.Uint32(b[8:]); size >= boltMinPage && size <= boltMaxPage {
			return append(offsets, int64(size))
		}
	}
	for size := int64(boltMinPage); size <= boltMaxPage; size *= 2 {
		offsets = append(offsets, size)
	}
	return offsets
}

// smallFile is the size up to which Open reads all pages of a file, in a few milliseconds.
const smallFile = 16 << 20

// verify reads the pages that bbolt must be able to follow before it follows them: all branches, and the
// leaves of what a verdict needs and of small files. A branch that leads in a circle would end the
// process, and rows that bbolt does not find in a damaged page would look as if they were not there.
func (d *database) verify() error {
	metas := validMetas(d.file)
	if len(metas) == 0 {
		return ErrNotDatabase
	}
	var damage error
	w := pageWalk{
		ctx: context.Background(), file: d.file, meta: newest(metas), leaves: d.verified,
		report: func(bucket, text string) {
			if damage == nil {
				damage = fmt.Errorf("%w: %s", ErrCorrupt, pageText(bucket, text))
			}
		},
	}
	return errors.Join(w.walk(), damage)
}

// verified reports whether Open reads all rows of a bucket.
func (d *database) verified(bucket string) bool {
	switch bucket {
	case string(bucketMeta), string(bucketMark), string(bucketScope), string(bucketName):
		return true
	}
	info, err := d.file.Stat()
	return err == nil && info.Size() <= smallFile
}

// verifyRows checks the checksums of the rows that verified names. Robots records are left out: one that
// is damaged is fetched again.
func (d *database) verifyRows() error {
	if !d.summed {
		return nil
	}
	return d.view(func(tx *txn) error {
		return tx.buckets(func(name []byte, b *bucket) error {
			if !d.verified(string(name)) || bytes.Equal(name, bucketRobots) || bytes.Equal(name, bucketRobotsHistory) {
				return nil
			}
			return b.each(func(_, _ []byte) error { return nil })
		})
	})
}

// pageText names the bucket of a page that is damaged.
func pageText(bucket, text string) string {
	if bucket == "" {
		return text
	}
	return fmt.Sprintf("bucket %s: %s", bucket, text)
}

// openPages opens a file that is not mapped, to read its pages.
func openPages(path string) (*os.File, boltMeta, error) {
	if _, err := inspect(path, true); err != nil {
		return nil, boltMeta{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, boltMeta{}, err
	}
	return f, newest(validMetas(f)), nil
}

// isSummed reports whether the rows of a file that may be damaged have checksums.
func isSummed(f io.ReaderAt, m boltMeta) (summed bool) {
	isMeta := func(bucket string) bool { return bucket == string(bucketMeta) }
	w := pageWalk{ctx: context.Background(), file: f, meta: m, leaves: isMeta, report: func(_, _ string) {}}
	w.row = func(_ string, k, v []byte) {
		_, sum := withoutSum(sumSeed(bucketMeta), k, v)
		summed = summed || sum || bytes.Equal(k, metaVersion) && len(v) == 4 && binary.BigEndian.Uint32(v) == Version
	}
	_ = w.walk() // the context does not end
	return summed
}
