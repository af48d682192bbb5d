//go:build !core

package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/s2"

	"github.com/amble-crawler/amble/internal/cluster/journal/records"
	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/storage"
)

// frameVersion is the version of the messages of a log.
const frameVersion = 1

// How the record in a frame is packed.
const (
	packedPlain = 0
	packedS2    = 1
)

// maxParts bounds the messages of one record.
const maxParts = 1 << 16

// frame is one message of a log: a record, or a part of one. FORMAT.md describes its bytes.
type frame struct {
	number      uint64 // of the record
	part, parts uint64
	packing     byte
	size        uint64 // of the whole packed record, in bytes
	sum         uint32 // CRC-32C of it
	data        []byte // the part
}

// newFrames packs a record and divides it into frames of at most most bytes of data.
func newFrames(number uint64, record []byte, most int) []frame {
	packing, packed := byte(packedS2), s2.Encode(nil, record)
	if len(packed) >= len(record) {
		packing, packed = packedPlain, record
	}
	f := frame{
		number: number, packing: packing, size: uint64(len(packed)), sum: crc32.Checksum(packed, castagnoli()),
		parts: uint64(max(1, (len(packed)+most-1)/most)),
	}
	all := make([]frame, 0, f.parts)
	for f.part = range f.parts {
		f.data, packed = packed[:min(most, len(packed))], packed[min(most, len(packed)):]
		all = append(all, f)
	}
	return all
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func (f *frame) append(b []byte) []byte {
	b = append(b, frameVersion, f.packing)
	for _, v := range []uint64{f.number, f.part, f.parts, f.size} {
		b = binary.AppendUvarint(b, v)
	}
	return append(binary.BigEndian.AppendUint32(b, f.sum), f.data...)
}

// decodeFrame is the inverse of append. The data is a part of b.
func decodeFrame(b []byte) (f frame, err error) {
	d := wire.NewDecoder(b)
	switch version := d.Byte(); {
	case !d.OK() || version == 0:
		return f, fmt.Errorf("%w: it has no version", storage.ErrRecord)
	case version > frameVersion:
		return f, fmt.Errorf("a message of the log: %w (its version is %d, this amble reads up to %d): "+
			"use a newer amble on this node", storage.ErrNewer, version, frameVersion)
	}
	f.packing = d.Byte()
	d.Require(f.packing <= packedS2)
	f.number, f.part, f.parts, f.size = d.Uvarint(), d.Uvarint(), d.UvarintMax(maxParts),
		d.UvarintMax(records.MaxSize)
	f.sum = d.Uint32()
	f.data = d.Rest()
	d.Require(f.number > 0 && f.part < f.parts && len(f.data) > 0 && uint64(len(f.data)) <= f.size &&
		(f.parts > 1) == (uint64(len(f.data)) < f.size))
	if !d.OK() {
		return frame{}, fmt.Errorf("%w: %w", storage.ErrRecord, d.Err())
	}
	return f, nil
}

// sameRecord reports whether two frames are of the same record.
func (f *frame) sameRecord(g *frame) bool {
	return f.number == g.number && f.parts == g.parts && f.size == g.size && f.sum == g.sum && f.packing == g.packing
}

// assembler puts records together of the frames of a log, in their order. A record whose end is
// missing has never been appended: another follows with the same number. A frame that comes twice
// counts once.
type assembler struct {
	first frame // of the record at hand; its number is 0 if there is none
	next  uint64
	data  []byte
}

// add takes a frame. It returns the record that is complete with it, or nil.
func (a *assembler) add(f *frame) ([]byte, error) {
	same := f.sameRecord(&a.first)
	switch {
	case same && f.part < a.next:
		return nil, nil // it came before
	case f.part == 0:
		a.first, a.next, a.data = *f, 0, a.data[:0]
		a.first.data = nil
	case !same || f.part != a.next:
		return nil,
			fmt.Errorf("%w: part %d of record %d without the parts before it", storage.ErrRecord, f.part, f.number)
	}
	if uint64(len(a.data)+len(f.data)) > f.size {
		return nil, fmt.Errorf("%w: record %d is longer than its %d bytes", storage.ErrRecord, f.number, f.size)
	}
	a.data = append(a.data, f.data...)
	if a.next++; a.next < f.parts {
		return nil, nil
	}
	if uint64(len(a.data)) != f.size || crc32.Checksum(a.data, castagnoli()) != f.sum {
		return nil, fmt.Errorf("%w: the checksum of record %d is wrong", storage.ErrRecord, f.number)
	}
	return unpack(a.data, f.packing)
}

// unpack returns a copy of what was packed.
func unpack(b []byte, packing byte) ([]byte, error) {
	if packing == packedPlain {
		return append([]byte(nil), b...), nil
	}
	n, err := s2.DecodedLen(b)
	if err == nil && n > records.MaxSize {
		err = fmt.Errorf("it unpacks to %d bytes, at most %d are allowed", n, records.MaxSize)
	}
	var record []byte
	if err == nil {
		record, err = s2.Decode(nil, b)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", storage.ErrRecord, err)
	}
	return record, nil
}
