package robots

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// HistoryEntry is an earlier version of a robots.txt.
type HistoryEntry struct {
	Class     Class     // of the response: ClassFound, or one without a file
	Version   Version   // of the file; zero: there was none
	Size      int       // of the file in octets
	Confirmed time.Time // when it was last fetched, or confirmed by a 304
	Replaced  time.Time // when another response replaced it
	Body      []byte    // the file; empty if it was longer than MaxHistoryBody; read-only
}

// Bounds of History.
const (
	MaxHistory      = 8         // versions
	MaxHistoryBody  = 16 << 10  // octets of one file; longer ones are not kept
	maxHistoryBytes = 512 << 10 // octets of encoded History, more than they can take
)

// History is the earlier versions of the robots.txt of one origin, the newest first.
type History []HistoryEntry

// Replaces reports whether r replaces the response of previous: not if r is an attempt without a
// response, or the first response of all.
func (r Record) Replaces(previous Record) bool {
	if previous.Copy == ClassNone || r.Class == ClassUnreachable {
		return false
	}
	return r.Copy != previous.Copy || !bytes.Equal(r.Body, previous.Body)
}

// With returns the versions with a replaced record in front. It drops the oldest ones beyond
// MaxHistory.
func (p History) With(replaced Record, now time.Time) History {
	last := HistoryEntry{Class: replaced.Copy, Size: len(replaced.Body), Confirmed: replaced.Fetched, Replaced: now}
	if replaced.Copy == ClassFound {
		last.Version = VersionOf(replaced.Body)
	}
	if len(replaced.Body) <= MaxHistoryBody {
		last.Body = replaced.Body
	}
	return append(History{last}, p[:min(len(p), MaxHistory-1)]...)
}

// The format of stored versions, with the encodings of a record: version 1 B, number of versions,
// and of each: class 1 B | version 16 B | size | confirmed | replaced | length and octets of the
// body, packed by DEFLATE.
const historyFormat = 1

// AppendBinary appends the versions in their stored form. Times keep milliseconds.
func (p History) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, historyFormat, byte(len(p)))
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

// DecodeHistory reads what AppendBinary wrote. No bytes are no versions. b may hold anything: an
// error wraps ErrRecord, and the memory is bounded.
func DecodeHistory(b []byte) (History, error) {
	if len(b) == 0 {
		return nil, nil
	}
	d := newDecoder(b)
	if v := d.Byte(); v != historyFormat || len(b) > maxHistoryBytes {
		return nil, fmt.Errorf("%w: %d bytes of version %d are no earlier versions", ErrRecord, len(b), v)
	}
	n := int(d.Byte())
	if n > MaxHistory {
		return nil, fmt.Errorf("%w: %d earlier versions", ErrRecord, n)
	}
	var list History
	for range n {
		v := HistoryEntry{Class: Class(d.Byte())}
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
