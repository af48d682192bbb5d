package storage

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
)

// What pageWalk knows of bbolt's file format beyond the meta pages. A page begins
// with a header of 16 bytes: its own number (8), type (2), number of elements
// (2), and how many pages follow that belong to it (4). An element of a branch
// has the place of its key, counted from the element's own start, the key's
// size (4 each), and the number of a page (8). One of a leaf has its flags, the
// place of its key, and the sizes of key and value (4 each).
const (
	boltHeader      = 16
	boltElement     = 16
	boltBranch      = 0x01
	boltLeaf        = 0x02
	boltFreelist    = 0x10
	boltBucketEntry = 0x01 // flag of a leaf's element: the value is a bucket
	boltBucket      = 16   // bytes of such a value: the number of the root page and a sequence; where the number is 0, the page itself follows
	boltMaxLevels   = 64   // of a tree; more than any real one has
)

// pageWalk follows the pages of a file by reading it. bbolt follows them in the
// map, where a wrong page number kills the process and a ring of pages never ends.
type pageWalk struct {
	ctx    context.Context
	file   io.ReaderAt
	meta   boltMeta
	report func(text string)
	taken  []uint64              // a bit for each page that something led to
	levels [boltMaxLevels][]byte // the elements of a page of each level
}

// walkPages follows every page of the file, and reports those that bbolt could not
// follow. The error is the context's.
func walkPages(ctx context.Context, f io.ReaderAt, m boltMeta, report func(text string)) error {
	w := &pageWalk{ctx: ctx, file: f, meta: m, report: report, taken: make([]uint64, m.pages/64+1)}
	w.freelist()
	return w.tree(m.root, 0, true)
}

func (w *pageWalk) found(id uint64, format string, args ...any) {
	w.report(fmt.Sprintf("page %d ", id) + fmt.Sprintf(format, args...))
}

// page is a page with those that belong to it, or a small bucket inside of one.
type page struct {
	id       uint64
	at       int64 // place in the file
	size     int64
	kind     uint16
	count    int
	elements []byte
}

// take reads the header of a page, and notes that something led to it. False: bbolt could not read it.
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

// readAt fills b from a place in a page.
func (w *pageWalk) readAt(p *page, b []byte, at int64) bool {
	if _, err := w.file.ReadAt(b, p.at+at); err != nil {
		w.found(p.id, "cannot be read: %v", err)
		return false
	}
	return true
}

// tree follows the pages below one. top is that of the tree of buckets.
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

// end is where something ends that an element places relative to itself. False: not in the page.
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

// freelist looks at the list of free pages.
func (w *pageWalk) freelist() {
	p, ok := w.take(w.meta.freelist)
	if !ok {
		return
	}
	ids := bufio.NewReader(io.NewSectionReader(w.file, p.at+boltHeader, p.size-boltHeader))
	count := uint64(p.count)
	if count == 0xffff { // too many for 16 bits: the first number is how many
		_ = binary.Read(ids, binary.LittleEndian, &count) // what fails to be read fails below too
	}
	if p.kind != boltFreelist || count > uint64(p.size/8) {
		w.found(p.id, "is no list of free pages")
		return
	}
	for b := make([]byte, 8); count > 0; count-- {
		if _, err := io.ReadFull(ids, b); err != nil {
			w.found(p.id, "cannot be read: %v", err)
			return
		}
		if free := binary.LittleEndian.Uint64(b); free < 2 || free >= w.meta.pages {
			w.found(p.id, "lists page %d as free, which is none of the %d pages of the file", free, w.meta.pages)
			return
		}
	}
}
