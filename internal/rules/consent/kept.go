package consent

import (
	"encoding/binary"
	"errors"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// The octet of a kept preference: the category, and
const (
	keptCategory   = 0x07
	keptDisallowed = 0x08
	keptSource     = 0x30
	keptLine       = 0x40 // the line follows as a uvarint
	keptTerms      = 0x80

	keptSourceShift = 4
	maxKeptLine     = 1 << 20
)

// Keep encodes the effective preferences of a page and where each stands, in 1 to 4 octets a category
// that has one. Nothing is encoded as nothing. The statements are those that were combined.
func (e Effective) Keep(list []Statement) string {
	var b []byte
	for c, p := range e.Preferences {
		if p == Unknown {
			continue
		}
		s := &list[e.By[c]]
		octet := byte(c) | byte(s.Source)<<keptSourceShift
		if p == Disallowed {
			octet |= keptDisallowed
		}
		if s.Terms {
			octet |= keptTerms
		}
		if s.Line <= 0 || s.Line > maxKeptLine {
			b = append(b, octet)
			continue
		}
		b = binary.AppendUvarint(append(b, octet|keptLine), uint64(s.Line))
	}
	return string(b)
}

// ErrKept says that kept preferences cannot be read.
var ErrKept = errors.New("consent: kept preferences cannot be read")

// Kept decodes what Keep encoded: a statement for each category, in their order, without the text.
func Kept(encoded string) ([]Statement, error) {
	var list []Statement
	d := wire.NewDecoder([]byte(encoded))
	for next := 0; d.Len() > 0; {
		octet := d.Byte()
		s := Statement{Source: Source(octet & keptSource >> keptSourceShift), Terms: octet&keptTerms != 0}
		if octet&keptLine != 0 {
			line := d.Uvarint()
			d.Require(0 < line && line <= maxKeptLine)
			s.Line = int(line)
		}
		c := int(octet & keptCategory)
		if d.Require(next <= c && c < int(categories)); !d.OK() {
			return nil, ErrKept
		}
		next = c + 1
		s.Preferences[c] = Allowed
		if octet&keptDisallowed != 0 {
			s.Preferences[c] = Disallowed
		}
		list = append(list, s)
	}
	return list, nil
}

// Category returns the first category that the statement states a preference for.
func (s Statement) Category() (Category, Preference) {
	for c, p := range s.Preferences {
		if p != Unknown {
			return Category(c), p
		}
	}
	return 0, Unknown
}
