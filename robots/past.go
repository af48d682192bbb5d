package robots

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// Past is a version of a robots.txt that was in force before.
type Past struct {
	Class     Class     // what the answer came to: ClassFound, or one that has no file
	Version   Version   // of the file; zero: there was none
	Size      int       // of the file in octets
	Confirmed time.Time // when it was last fetched, or confirmed by a 304
	Replaced  time.Time // when another answer came
	Body      []byte    // the file; empty where it was too long to be kept. Nobody may change it
}

// Bounds of a Pasts.
const (
	MaxPast     = 8         // versions
	MaxPastBody = 16 << 10  // octets of one file, longer ones are not kept
	maxPasts    = 512 << 10 // octets of an encoded Pasts, more than it can take
)

// Pasts are the earlier versions of the robots.txt of one origin, the newest first.
type Pasts []Past

// Replaces reports whether a record has another answer than the one before it. An attempt without an answer has not, nor has the first answer of all.
func (r Record) Replaces(previous Record) bool {
	if previous.Copy == ClassNone || r.Class == ClassUnreachable {
		return false
	}
	return r.Copy != previous.Copy || !bytes.Equal(r.Body, previous.Body)
}

// With are the versions with another in front that is replaced now; the oldest are forgotten.
func (p Pasts) With(replaced Record, now time.Time) Pasts {
	last := Past{Class: replaced.Copy, Size: len(replaced.Body), Confirmed: replaced.Fetched, Replaced: now}
	if replaced.Copy == ClassFound {
		last.Version = VersionOf(replaced.Body)
	}
	if len(replaced.Body) <= MaxPastBody {
		last.Body = replaced.Body
	}
	return append(Pasts{last}, p[:min(len(p), MaxPast-1)]...)
}

// The format of stored versions, as that of a record: version 1 B, their number, and of each: class 1 B | version 16 B | size | confirmed | replaced |
// length and octets of the body, packed by DEFLATE.
const pastVersion = 1

// AppendBinary appends the versions as they are stored. Times keep milliseconds.
func (p Pasts) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, pastVersion, byte(len(p)))
	for _, v := range p {
		b = append(append(b, byte(v.Class)), v.Version[:]...)
		b = binary.AppendUvarint(b, uint64(v.Size))
		b = binary.AppendVarint(binary.AppendVarint(b, toMilli(v.Confirmed)), toMilli(v.Replaced))
		packed, err := deflate(v.Body)
		if err != nil {
			return b, fmt.Errorf("compress an earlier robots.txt: %w", err)
		}
		if len(v.Body) == 0 {
			packed = nil
		}
		b = append(binary.AppendUvarint(b, uint64(len(packed))), packed...)
	}
	return b, nil
}

// DecodePasts reads what AppendBinary wrote; no bytes are no versions. The bytes may be anything: an error wraps ErrRecord, and
// what is allocated is bounded.
func DecodePasts(b []byte) (Pasts, error) {
	if len(b) == 0 {
		return nil, nil
	}
	d := newDecoder(b)
	if v := d.Byte(); v != pastVersion || len(b) > maxPasts {
		return nil, fmt.Errorf("%w: %d bytes of version %d are no earlier versions", ErrRecord, len(b), v)
	}
	n := int(d.Byte())
	if n > MaxPast {
		return nil, fmt.Errorf("%w: %d earlier versions", ErrRecord, n)
	}
	var list Pasts
	for range n {
		v := Past{Class: Class(d.Byte())}
		copy(v.Version[:], d.Bytes(len(v.Version)))
		v.Size = d.number()
		v.Confirmed, v.Replaced = d.time(), d.time()
		packed := newDecoder(d.Bytes(d.number()))
		if v.Size > MaxBody || v.Class >= classEnd {
			d.fail("impossible version")
		}
		if d.OK() && packed.Len() > 0 {
			v.Body = packed.body(v.Size, true)
		}
		if !packed.OK() {
			d.Fail(packed.Err())
		}
		list = append(list, v)
	}
	if err := d.failure(); err != nil {
		return nil, err
	}
	return list, nil
}
