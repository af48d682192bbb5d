package storage

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/wire"
)

// Flags of an encoded outcome: which optional fields follow.
const (
	outcomeStatus = 1 << iota
	outcomeBytes
	outcomeDigest
	outcomeDue
	outcomeLine
	outcomeETag
	outcomeModified
	outcomeHistory
)

// outcomeMore stands beside the state where a second byte of flags follows at the end.
const outcomeMore = 0x80

// outcomeSimhash is a flag of the second byte.
const outcomeSimhash = 1

// maxRecent is how many outcomes wait in the host's row.
const maxRecent = 16

func appendOutcome(b []byte, o *Outcome) []byte {
	at := len(b)
	var flags byte
	b = append(b, 0, byte(o.State), byte(o.Reason), o.Attempts)
	b = binary.BigEndian.AppendUint32(b, seconds(o.At))
	if o.Status != 0 {
		flags |= outcomeStatus
		b = binary.BigEndian.AppendUint16(b, o.Status)
	}
	if o.Bytes != 0 {
		flags |= outcomeBytes
		b = binary.AppendUvarint(b, o.Bytes)
	}
	if o.Digest != 0 {
		flags |= outcomeDigest
		b = binary.BigEndian.AppendUint64(b, o.Digest)
	}
	if !o.Due.IsZero() {
		flags |= outcomeDue
		b = binary.BigEndian.AppendUint32(b, secondsUp(o.Due))
	}
	if o.Line != 0 {
		flags |= outcomeLine
		b = binary.AppendUvarint(b, uint64(o.Line))
	}
	if o.ETag != "" && len(o.ETag) < 256 {
		flags |= outcomeETag
		b = appendShort(b, o.ETag)
	}
	if o.Modified != "" && len(o.Modified) < 256 {
		flags |= outcomeModified
		b = appendModified(b, o.Modified)
	}
	if o.History != [8]byte{} {
		flags |= outcomeHistory
		b = append(b, o.History[:]...)
	}
	b[at] = flags
	if o.Simhash != 0 {
		b[at+1] |= outcomeMore
		b = append(b, outcomeSimhash)
		b = binary.BigEndian.AppendUint64(b, o.Simhash)
	}
	return b
}

func decodeOutcome(b []byte) (Outcome, []byte, bool) {
	d := wire.NewDecoder(b)
	flags := d.Byte()
	state := d.Byte()
	o := Outcome{State: State(state &^ outcomeMore), Reason: Reason(d.Byte()), Attempts: d.Byte(), At: fromSeconds(d.Uint32())}
	if flags&outcomeStatus != 0 {
		o.Status = d.Uint16()
	}
	if flags&outcomeBytes != 0 {
		o.Bytes = d.Uvarint()
	}
	if flags&outcomeDigest != 0 {
		o.Digest = d.Uint64()
	}
	if flags&outcomeDue != 0 {
		o.Due = fromSeconds(d.Uint32())
	}
	if flags&outcomeLine != 0 {
		o.Line = uint32(d.Uvarint())
	}
	if flags&outcomeETag != 0 {
		o.ETag = string(d.Short())
	}
	if flags&outcomeModified != 0 {
		o.Modified = decodeModified(&d)
	}
	if flags&outcomeHistory != 0 {
		copy(o.History[:], d.Bytes(8))
	}
	if state&outcomeMore != 0 {
		if d.Byte() != outcomeSimhash {
			return o, d.Rest(), false
		}
		o.Simhash = d.Uint64()
	}
	return o, d.Rest(), d.OK() && o.State < numStates
}

// httpDate is the form of nearly every Last-Modified (RFC 9110 section 5.6.7).
const httpDate = "Mon, 02 Jan 2006 15:04:05 GMT"

// appendModified encodes a date in the usual form as a zero and Unix seconds,
// anything else as a short string. It never is the empty string.
func appendModified(b []byte, s string) []byte {
	t, err := time.Parse(httpDate, s)
	if unix := t.Unix(); err == nil && unix >= 0 && unix < 1<<32 && t.Format(httpDate) == s {
		return binary.BigEndian.AppendUint32(append(b, 0), uint32(unix))
	}
	return appendShort(b, s)
}

func decodeModified(d *wire.Decoder) string {
	if n := d.Byte(); n != 0 {
		return string(d.Bytes(int(n)))
	}
	return time.Unix(int64(d.Uint32()), 0).UTC().Format(httpDate)
}

// slots are the outcomes of one block of sixteen ordinals as the state bucket
// holds them: for each touched URL a byte with its place in the block, the
// length of what follows in a uvarint, and the encoded outcome, ordered by place.
type slots struct {
	place []uint8
	body  [][]byte
}

func decodeSlots(b []byte) (slots, bool) {
	var s slots
	d := wire.NewDecoder(b)
	last := -1
	for d.Len() > 0 {
		place := d.Byte()
		body := d.Long()
		if !d.OK() || int(place) <= last || place >= blockSize {
			return slots{}, false
		}
		last = int(place)
		s.place, s.body = append(s.place, place), append(s.body, body)
	}
	return s, d.OK()
}

func (s *slots) set(place uint8, body []byte) {
	i, found := slices.BinarySearch(s.place, place)
	if found {
		s.body[i] = body
		return
	}
	s.place = slices.Insert(s.place, i, place)
	s.body = slices.Insert(s.body, i, body)
}

func (s *slots) append(b []byte) []byte {
	for i, place := range s.place {
		b = append(b, place)
		b = binary.AppendUvarint(b, uint64(len(s.body[i])))
		b = append(b, s.body[i]...)
	}
	return b
}

// findSlot returns the encoded outcome of one place of a block.
func findSlot(b []byte, place uint8) ([]byte, bool) {
	d := wire.NewDecoder(b)
	for d.Len() > 0 {
		p := d.Byte()
		body := d.Long()
		if !d.OK() || p > place {
			return nil, false
		}
		if p == place {
			return body, true
		}
	}
	return nil, false
}
