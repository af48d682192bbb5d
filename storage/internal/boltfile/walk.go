package boltfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
)

// The part of bbolt's file format that Walk reads besides the meta pages. A page begins with a
// header of 16 bytes: its own number (8), type (2), number of elements (2), and the number of pages
// behind it that belong to it (4). An element of a branch has the offset of its key from the
// element's start, the key's size (4 each), and the number of a page (8). An element of a leaf has
// its flags, the offset of its key, and the sizes of key and value (4 each). Keys and values follow
// the elements in the same order, without gaps, and a page has as many pages behind it as that takes.
const (
	header      = 16
	elementSize = 16
	Branch      = 0x01
	Leaf        = 0x02
	Freelist    = 0x10
	bucketEntry = 0x01 // flag of a leaf's element: the value is a bucket
	bucketSize  = 16   // bytes of such a value: the number of the root page, 0 if the page follows, and a sequence
	newPages    = 4    // of a file in which nothing was committed: there the tree of buckets is empty
	maxLevels   = 64   // of a tree; more than any real one has
)

// Walk follows the pages of a file by reading it. bbolt follows them in the mapped file, where
// a wrong page number kills the process and a cycle of pages never ends.
type Walk struct {
	Ctx    context.Context
	File   io.ReaderAt
	Meta   Meta
	Report func(bucket, text string) // of damage
	// Leaves reports whether the rows of a bucket are read. Of other buckets only the branches are.
	Leaves func(bucket string) bool
	// Row gets each row that is read. Nil: nobody does.
	Row func(bucket string, k, v []byte)

	FreeKnown bool // the list of free pages was read

	bucket string            // at hand
	height int               // of its tree: the level of its leaves; -1: not known yet
	taken  []uint64          // a bit for each page that something refers to
	levels [maxLevels][]byte // a page of each level
}

// Run follows the pages of the file and reports those that bbolt could not follow. It returns the
// context's error.
func (w *Walk) Run() error {
	w.taken, w.height = make([]uint64, w.Meta.Pages/64+1), -1
	w.freelist()
	return w.tree(w.Meta.root, 0, span{})
}

// Everything is Walk.Leaves for those who read all rows.
func Everything(string) bool { return true }

// Lost reports the pages that belong to nothing, if all leaves were read.
func (w *Walk) Lost(found func(id uint64)) {
	for id := uint64(2); id < w.Meta.Pages; id++ {
		if w.taken[id/64]&(1<<(id%64)) == 0 {
			found(id)
		}
	}
}

func (w *Walk) found(id uint64, format string, args ...any) {
	w.Report(w.bucket, fmt.Sprintf("page %d ", id)+fmt.Sprintf(format, args...))
}

// page is a page with the pages that belong to it, or a small bucket inside a page.
type page struct {
	id     uint64
	inside bool // it is a bucket inside of page id
	kind   uint16
	count  int
	bytes  []byte // header included
}

// span is the keys that a page may have: from one to below another. Nil: all.
type span struct{ from, below []byte }

// take records that something refers to a page.
func (w *Walk) take(id uint64) bool {
	if id < 2 || id >= w.Meta.Pages {
		w.found(id, "is none of the %d pages of the file", w.Meta.Pages)
		return false
	}
	if w.taken[id/64]&(1<<(id%64)) != 0 {
		w.found(id, "is led to twice")
		return false
	}
	w.taken[id/64] |= 1 << (id % 64)
	return true
}

// read reads a page that something refers to. It returns false if bbolt could not read it.
func (w *Walk) read(id uint64, level int) (p page, ok bool) {
	size := int(w.Meta.PageSize)
	b := w.room(level, size)
	if !w.readAt(id, b) {
		return p, false
	}
	p = page{id: id, kind: binary.LittleEndian.Uint16(b[8:]), count: int(binary.LittleEndian.Uint16(b[10:]))}
	more := uint64(binary.LittleEndian.Uint32(b[12:]))
	if own := binary.LittleEndian.Uint64(b); own != id || more >= w.Meta.Pages-id {
		w.found(id, "says that it is page %d and %d more", own, more)
		return p, false
	}
	for n := id + 1; n <= id+more; n++ {
		if !w.take(n) {
			return p, false
		}
	}
	if more > 0 {
		if b = w.room(level, size*int(more+1)); !w.readAt(id, b) {
			return p, false
		}
	}
	p.bytes = b
	return p, true
}

// room returns the memory for a page of a level.
func (w *Walk) room(level, size int) []byte {
	if cap(w.levels[level]) < size {
		w.levels[level] = make([]byte, size)
	}
	return w.levels[level][:size]
}

func (w *Walk) readAt(id uint64, b []byte) bool {
	if _, err := w.File.ReadAt(b, int64(id)*w.Meta.PageSize); err != nil {
		w.found(id, "cannot be read: %v", err)
		return false
	}
	return true
}

// tree follows the pages below a page. Without a bucket at hand it is the tree of buckets.
func (w *Walk) tree(id uint64, level int, keys span) error {
	if err := w.Ctx.Err(); err != nil {
		return err
	}
	if !w.take(id) {
		return nil
	}
	if w.bucket != "" && level == w.height && !w.Leaves(w.bucket) {
		return nil
	}
	if level == maxLevels {
		w.found(id, "is at level %d", level)
		return nil
	}
	p, ok := w.read(id, level)
	if !ok {
		return nil
	}
	switch {
	case p.kind == Branch && p.count > 0 && (w.height < 0 || level < w.height):
		return w.branch(&p, level, keys)
	case p.kind == Leaf && (w.height < 0 || level == w.height):
		w.height = level
		return w.leaf(&p, level, keys)
	}
	w.found(id, "is of type %#x with %d elements, which is neither a branch nor a leaf of level %d", p.kind,
		p.count, level)
	return nil
}

// element is one element of a page. A branch's has no value, and a leaf's leads to no page.
type element struct {
	flags uint32
	at    int // offset of the key in the page
	key   []byte
	value []byte
	child uint64
}

// element returns the element at an index; ok is false if it reaches beyond the page.
func (p *page) element(i int) (e element, ok bool) {
	at := int64(header + i*elementSize)
	if at+elementSize > int64(len(p.bytes)) {
		return e, false
	}
	le, b := binary.LittleEndian, p.bytes[at:]
	pos, size, value := int64(le.Uint32(b)), int64(le.Uint32(b[4:])), int64(0)
	if p.kind == Leaf {
		e.flags = le.Uint32(b)
		pos, size, value = int64(le.Uint32(b[4:])), int64(le.Uint32(b[8:])), int64(le.Uint32(b[12:]))
	} else {
		e.child = le.Uint64(b[8:])
	}
	at += pos
	if at+size+value > int64(len(p.bytes)) {
		return e, false
	}
	e.at, e.key, e.value = int(at), p.bytes[at:at+size], p.bytes[at+size:at+size+value]
	return e, true
}

// elements returns the elements of a page. It reports what bbolt would not have written: gaps, keys that
// are out of order or outside of the span, and pages behind that nothing needs. whole is false then, and
// the elements are those that can be read nevertheless.
func (w *Walk) elements(p *page, keys span) (all []element, whole bool) {
	whole, all = true, make([]element, 0, min(p.count, len(p.bytes)/elementSize))
	wrong := func(format string, args ...any) {
		if whole {
			w.found(p.id, format, args...)
		}
		whole = false
	}
	if p.count == 0 && !p.inside && w.Meta.Pages > newPages { // an empty bucket is inside of the page that leads to it
		wrong("has no elements")
	}
	end := header + p.count*elementSize // of what was read; a key begins here
	last := keys.from
	for i := range p.count {
		e, ok := p.element(i)
		if !ok {
			wrong("has an element beyond its end")
			continue
		}
		if e.at != end {
			wrong("has a gap, or elements one above the other")
		}
		end += len(e.key) + len(e.value)
		order := bytes.Compare(e.key, last)
		if order < 0 || order == 0 && i > 0 || len(e.key) == 0 || keys.below != nil &&
			bytes.Compare(e.key, keys.below) >= 0 {
			wrong("has key %x, which does not belong there", e.key)
		}
		last = e.key
		all = append(all, e)
	}
	if size := int(w.Meta.PageSize); !p.inside && end <= len(p.bytes)-size || p.inside && end != len(p.bytes) {
		wrong("has %d elements of %d bytes in %d bytes", p.count, end, len(p.bytes))
	}
	return all, whole
}

func (w *Walk) branch(p *page, level int, keys span) error {
	all, whole := w.elements(p, keys)
	for i, e := range all {
		below := span{e.key, keys.below}
		if i+1 < len(all) {
			below.below = all[i+1].key
		}
		if !whole {
			below = span{}
		}
		if err := w.tree(e.child, level+1, below); err != nil {
			return err
		}
	}
	return nil
}

func (w *Walk) leaf(p *page, level int, keys span) error {
	all, _ := w.elements(p, keys)
	top := w.bucket == ""
	for _, e := range all {
		if top != (e.flags == bucketEntry) || !top && e.flags != 0 {
			w.found(p.id, "has a bucket in place of a row, or a row in place of a bucket")
			continue
		}
		switch {
		case top:
			w.bucket, w.height = string(e.key), -1
			err := w.inBucket(&page{id: p.id, bytes: e.value}, level+1)
			if w.bucket, w.height = "", level; err != nil {
				return err
			}
		case w.Row != nil && w.Leaves(w.bucket):
			w.Row(w.bucket, e.key, e.value)
		}
	}
	return nil
}

// inBucket follows the pages of the bucket at hand, given its value in the tree of buckets.
func (w *Walk) inBucket(value *page, level int) error {
	b := value.bytes
	if len(b) < bucketSize {
		w.found(value.id, "has a bucket of %d bytes", len(b))
		return nil
	}
	if root := binary.LittleEndian.Uint64(b); root != 0 {
		return w.tree(root, level, span{})
	}
	if b = b[bucketSize:len(b):len(b)]; len(b) < header {
		w.found(value.id, "has a bucket of %d bytes", len(b))
		return nil
	}
	inside := page{
		id: value.id, inside: true,
		kind: binary.LittleEndian.Uint16(b[8:]), count: int(binary.LittleEndian.Uint16(b[10:])), bytes: b,
	}
	if inside.kind != Leaf {
		w.found(value.id, "has a bucket that is no leaf")
		return nil
	}
	return w.leaf(&inside, level, span{})
}

// freelist takes the pages that are free.
func (w *Walk) freelist() {
	w.bucket = ""
	if !w.take(w.Meta.Freelist) {
		return
	}
	p, ok := w.read(w.Meta.Freelist, 0)
	if !ok {
		return
	}
	ids, count := p.bytes[header:], uint64(p.count)
	if count == 0xffff { // too many for 16 bits: the first number is the count
		count, ids = binary.LittleEndian.Uint64(ids), ids[8:]
	}
	if p.kind != Freelist || count > uint64(len(ids)/8) {
		w.found(p.id, "is not a list of free pages")
		return
	}
	last := uint64(0)
	for i := range count {
		id := binary.LittleEndian.Uint64(ids[8*i:])
		if id <= last {
			w.found(p.id, "lists page %d as free behind page %d", id, last)
			return
		}
		if !w.take(id) {
			return
		}
		last = id
	}
	w.FreeKnown = true
}

// EachRow calls f for the rows of a page by its number, if it is a leaf that was not read so far. Those of
// small buckets inside of it are none.
func (w *Walk) EachRow(id uint64, f func(k, v []byte)) {
	if w.taken == nil {
		w.taken = make([]uint64, w.Meta.Pages/64+1)
	}
	if !w.take(id) {
		return
	}
	p, ok := w.read(id, 0)
	if !ok || p.kind != Leaf {
		return
	}
	all, _ := w.elements(&p, span{})
	for _, e := range all {
		if e.flags == 0 {
			f(e.key, e.value)
		}
	}
}
