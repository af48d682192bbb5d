package storage

import (
	"bufio"
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
		return false, fmt.Errorf("%w: it has %d bytes and should have at least %d; restore it from a copy",
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

// The part of bbolt's file format that pageWalk reads besides the meta pages. A page begins with a
// header of 16 bytes: its own number (8), type (2), number of elements (2), and the number of pages
// behind it that belong to it (4). An element of a branch has the offset of its key from the
// element's start, the key's size (4 each), and the number of a page (8). An element of a leaf has
// its flags, the offset of its key, and the sizes of key and value (4 each).
const (
	boltHeader      = 16
	boltElement     = 16
	boltBranch      = 0x01
	boltLeaf        = 0x02
	boltFreelist    = 0x10
	boltBucketEntry = 0x01 // flag of a leaf's element: the value is a bucket
	boltBucket      = 16   // bytes of such a value: the number of the root page, 0 if the page follows, and a sequence
	boltMaxLevels   = 64   // of a tree; more than any real one has
)

// pageWalk follows the pages of a file by reading it. bbolt follows them in the mapped file, where
// a wrong page number kills the process and a cycle of pages never ends.
type pageWalk struct {
	ctx    context.Context
	file   io.ReaderAt
	meta   boltMeta
	report func(text string)
	taken  []uint64              // a bit for each page that something refers to
	levels [boltMaxLevels][]byte // the elements of a page of each level
}

// walkPages follows every page of the file and reports those that bbolt could not follow. It
// returns the context's error.
func walkPages(ctx context.Context, f io.ReaderAt, m boltMeta, report func(text string)) error {
	w := &pageWalk{ctx: ctx, file: f, meta: m, report: report, taken: make([]uint64, m.pages/64+1)}
	w.freelist()
	return w.tree(m.root, 0, true)
}

func (w *pageWalk) found(id uint64, format string, args ...any) {
	w.report(fmt.Sprintf("page %d ", id) + fmt.Sprintf(format, args...))
}

// page is a page with the pages that belong to it, or a small bucket inside a page.
type page struct {
	id       uint64
	at       int64 // offset in the file
	size     int64
	kind     uint16
	count    int
	elements []byte
}

// take reads the header of a page and records that something refers to it. It returns false if
// bbolt could not read the page.
func (w *pageWalk) take(id uint64) (p page, ok bool) {
	if id < 2 || id >= w.meta.pages {
		w.found(id, "is none of the %d pages of the file", w.meta.pages)
		return p, false
	}
	b := make([]byte, boltHeader)
	p = page{id: id, at: int64(id) * w.meta.pageSize}
	if !w.readAt(&p, b, 0) {
		return p, false
	}
	p.kind, p.count = binary.LittleEndian.Uint16(b[8:]), int(binary.LittleEndian.Uint16(b[10:]))
	more := uint64(binary.LittleEndian.Uint32(b[12:]))
	if own := binary.LittleEndian.Uint64(b); own != id || more >= w.meta.pages-id {
		w.found(id, "says that it is page %d and %d more", own, more)
		return p, false
	}
	p.size = int64(more+1) * w.meta.pageSize
	for n := id; n <= id+more; n++ {
		if w.taken[n/64]&(1<<(n%64)) != 0 {
			w.found(n, "is led to twice")
			return p, false
		}
		w.taken[n/64] |= 1 << (n % 64)
	}
	return p, true
}

// readAt fills b from an offset in a page.
func (w *pageWalk) readAt(p *page, b []byte, at int64) bool {
	if _, err := w.file.ReadAt(b, p.at+at); err != nil {
		w.found(p.id, "cannot be read: %v", err)
		return false
	}
	return true
}

// tree follows the pages below a page. top is set for the tree of buckets.
func (w *pageWalk) tree(id uint64, level int, top bool) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if level == boltMaxLevels {
		w.found(id, "is at level %d", level)
		return nil
	}
	p, ok := w.take(id)
	switch {
	case !ok:
		return nil
	case p.kind == boltLeaf:
		return w.leaf(&p, level, top)
	case p.kind == boltBranch && p.count > 0:
		return w.branch(&p, level, top)
	}
	w.found(id, "is of type %#x with %d elements, which is neither a branch nor a leaf", p.kind, p.count)
	return nil
}

// read reads the elements of a page.
func (w *pageWalk) read(p *page, level int) bool {
	size := p.count * boltElement
	if int64(boltHeader+size) > p.size {
		w.found(p.id, "has %d elements, more than fit", p.count)
		return false
	}
	if cap(w.levels[level]) < size {
		w.levels[level] = make([]byte, size)
	}
	p.elements = w.levels[level][:size]
	return w.readAt(p, p.elements, boltHeader)
}

// end returns the end of something whose offset an element has, counted from the element. It
// returns false if that is outside the page.
func (w *pageWalk) end(p *page, i int, sizes ...uint32) (end int64, ok bool) {
	end = boltHeader + int64(i)*boltElement
	for _, n := range sizes {
		end += int64(n)
	}
	if end > p.size {
		w.found(p.id, "has an element beyond its end")
		return end, false
	}
	return end, true
}

func (w *pageWalk) branch(p *page, level int, top bool) error {
	if !w.read(p, level) {
		return nil
	}
	for i := range p.count {
		e := p.elements[i*boltElement:]
		if _, ok := w.end(p, i, binary.LittleEndian.Uint32(e), binary.LittleEndian.Uint32(e[4:])); !ok {
			return nil
		}
		if err := w.tree(binary.LittleEndian.Uint64(e[8:]), level+1, top); err != nil {
			return err
		}
	}
	return nil
}

func (w *pageWalk) leaf(p *page, level int, top bool) error {
	if !w.read(p, level) {
		return nil
	}
	for i := range p.count {
		e := p.elements[i*boltElement:]
		size := binary.LittleEndian.Uint32(e[12:])
		end, ok := w.end(p, i, binary.LittleEndian.Uint32(e[4:]), binary.LittleEndian.Uint32(e[8:]), size)
		if !ok {
			return nil
		}
		bucket := binary.LittleEndian.Uint32(e)&boltBucketEntry != 0
		if bucket != top {
			w.found(p.id, "has a bucket in place of a row, or a row in place of a bucket")
			return nil
		}
		if !bucket {
			continue
		}
		if err := w.bucket(&page{id: p.id, at: p.at + end - int64(size), size: int64(size)}, level+1); err != nil {
			return err
		}
	}
	return nil
}

// bucket follows the pages of one bucket, given its value in the tree of buckets.
func (w *pageWalk) bucket(value *page, level int) error {
	b := make([]byte, boltBucket+boltHeader)
	if value.size < boltBucket || !w.readAt(value, b[:min(int64(len(b)), value.size)], 0) {
		w.found(value.id, "has a bucket of %d bytes", value.size)
		return nil
	}
	if root := binary.LittleEndian.Uint64(b); root != 0 {
		return w.tree(root, level, false)
	}
	inside := page{
		id: value.id, at: value.at + boltBucket, size: value.size - boltBucket,
		kind: binary.LittleEndian.Uint16(b[boltBucket+8:]), count: int(binary.LittleEndian.Uint16(b[boltBucket+10:])),
	}
	if inside.kind != boltLeaf {
		w.found(value.id, "has a bucket that is no leaf")
		return nil
	}
	return w.leaf(&inside, level, false)
}

// freelist checks the list of free pages.
func (w *pageWalk) freelist() {
	p, ok := w.take(w.meta.freelist)
	if !ok {
		return
	}
	ids := bufio.NewReader(io.NewSectionReader(w.file, p.at+boltHeader, p.size-boltHeader))
	count := uint64(p.count)
	if count == 0xffff { // too many for 16 bits: the first number is the count
		_ = binary.Read(ids, binary.LittleEndian, &count) // what cannot be read here fails below too
	}
	if p.kind != boltFreelist || count > uint64(p.size/8) {
		w.found(p.id, "is not a list of free pages")
		return
	}
	for b := make([]byte, 8); count > 0; count-- {
		if _, err := io.ReadFull(ids, b); err != nil {
			w.found(p.id, "cannot be read: %v", err)
			return
		}
		if free := binary.LittleEndian.Uint64(b); free < 2 || free >= w.meta.pages {
			w.found(p.id, "lists page %d as free, but the file has %d pages", free, w.meta.pages)
			return
		}
	}
}
