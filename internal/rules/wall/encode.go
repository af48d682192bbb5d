package wall

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// ErrState is wrapped by the errors of [DecodeState].
var ErrState = errors.New("wall: not a stored state")

// MaxStateBytes is the largest number of bytes that [State.AppendBinary] appends.
const MaxStateBytes = 69

// stateVersion is the first byte of an encoded State. In version 1 the documents were all those of digests,
// odd numbers too.
const stateVersion = 2

// The bits of the second byte say which parts follow, in this order. Numbers of 16 and 32 bits are
// big-endian.
const (
	hasHistory   = 1 << iota // pages, refusals, distinct
	hasSections              // tops, sections
	hasDocuments             // document, earlier, usual, returns, same; from version 2 on gate
	hasShape                 // shape, alike
	// since, part, evidence, refused, times, status, pending, counted, judged, kind, lead, maker
	hasEvidence
	hasURL   // url
	hasQuiet // quiet
	hasWall  // probes
)

// AppendBinary appends the state to b in the form that [DecodeState] reads: nothing for the zero
// State, 23 to 36 bytes for a host that only answers, MaxStateBytes at most. The error is always nil.
func (s State) AppendBinary(b []byte) ([]byte, error) {
	if s == (State{}) {
		return b, nil
	}
	start := len(b)
	b = append(b, stateVersion, 0)
	part := func(bit byte, there bool) bool {
		if there {
			b[start+1] |= bit
		}
		return there
	}
	if part(hasHistory, s.pages|s.refusals|s.distinct > 0) {
		b = append(b, s.pages, s.refusals, s.distinct)
	}
	if part(hasSections, s.tops != [3]uint16{} || s.sections != [6]uint16{}) {
		b = appendAll(appendAll(b, s.tops[:]), s.sections[:])
	}
	if part(hasDocuments, s.document|s.earlier[0]|s.earlier[1]|s.usual|s.gate > 0 || s.returns|s.same > 0) {
		b = append(appendAll(b, []uint16{s.document, s.earlier[0], s.earlier[1], s.usual}), s.returns, s.same)
		b = binary.BigEndian.AppendUint16(b, s.gate)
	}
	if part(hasShape, s.shape > 0 || s.alike > 0) {
		b = append(binary.BigEndian.AppendUint16(b, s.shape), s.alike)
	}
	if part(hasEvidence, s.hasEvidence()) {
		b = append(binary.BigEndian.AppendUint32(b, s.since), s.part)
		b = binary.BigEndian.AppendUint16(b, s.evidence)
		b = append(appendAll(b, s.refused[:]), s.times[:]...)
		b = binary.BigEndian.AppendUint16(b, s.status)
		b = append(b, s.pending, s.counted, s.judged, byte(s.kind), s.lead, s.maker)
	}
	if part(hasURL, s.url > 0) {
		b = binary.BigEndian.AppendUint16(b, s.url)
	}
	if part(hasQuiet, s.quiet > 0) {
		b = binary.BigEndian.AppendUint32(b, s.quiet)
	}
	if part(hasWall, s.walled) {
		b = append(b, s.probes)
	}
	return b, nil
}

// hasEvidence reports whether there is a part of that name to encode.
func (s *State) hasEvidence() bool {
	return s.since > 0 || s.evidence|s.status > 0 || s.refused != [3]uint16{} || s.times != [3]uint8{} ||
		s.part|s.pending|s.counted|s.judged|byte(s.kind)|s.lead|s.maker > 0
}

func appendAll(b []byte, list []uint16) []byte {
	for _, v := range list {
		b = binary.BigEndian.AppendUint16(b, v)
	}
	return b
}

// DecodeState reads what [State.AppendBinary] wrote. No bytes are the zero State. An error wraps
// [ErrState].
func DecodeState(b []byte) (State, error) {
	var s State
	if len(b) == 0 {
		return s, nil
	}
	d := wire.NewDecoder(b)
	version := d.Byte()
	if version < 1 || version > stateVersion {
		return s, fmt.Errorf("%w: version %d, this program knows 1 to %d", ErrState, version, stateVersion)
	}
	s.decode(&d, d.Byte(), version)
	if version == 1 {
		for _, document := range []*uint16{&s.document, &s.earlier[0], &s.earlier[1], &s.usual} {
			if *document != 0 {
				*document = max(*document&^1, 2) // as DocumentOf has it
			}
		}
	}
	if d.End() != nil {
		return State{}, fmt.Errorf("%w: %x", ErrState, b)
	}
	return s, nil
}

func (s *State) decode(d *wire.Decoder, has, version byte) {
	if has&hasHistory != 0 {
		s.pages, s.refusals, s.distinct = d.Byte(), d.Byte(), d.Byte()
		d.Require(int(s.pages)+int(s.refusals) <= mostHistory && s.distinct <= fewDocuments)
	}
	if has&hasSections != 0 {
		readAll(d, s.tops[:])
		readAll(d, s.sections[:])
	}
	if has&hasDocuments != 0 {
		s.document, s.earlier[0], s.earlier[1] = d.Uint16(), d.Uint16(), d.Uint16()
		s.usual, s.returns, s.same = d.Uint16(), d.Byte(), d.Byte()
		if version > 1 {
			s.gate = d.Uint16()
		}
	}
	if has&hasShape != 0 {
		s.shape, s.alike = d.Uint16(), d.Byte()
	}
	if has&hasEvidence != 0 {
		s.since, s.part, s.evidence = d.Uint32(), d.Byte(), d.Uint16()
		readAll(d, s.refused[:])
		copy(s.times[:], d.Bytes(len(s.times)))
		s.status, s.pending, s.counted, s.judged = d.Uint16(), d.Byte(), d.Byte(), d.Byte()
		s.kind, s.lead, s.maker = Kind(d.Byte()), d.Byte(), d.Byte()
		d.Require(s.evidence <= threshold && s.kind < kinds)
	}
	if has&hasURL != 0 {
		s.url = d.Uint16()
	}
	if has&hasQuiet != 0 {
		s.quiet = d.Uint32()
	}
	if has&hasWall != 0 {
		s.walled, s.probes = true, d.Byte()
	}
}

func readAll(d *wire.Decoder, list []uint16) {
	for i := range list {
		list[i] = d.Uint16()
	}
}
