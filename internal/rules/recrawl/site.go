package recrawl

import (
	"encoding/binary"
	"errors"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// Site is the memory of a host: how often its pages change, as a prior for pages with few
// observations, and how reliable its notices of changes are. The zero value knows nothing.
type Site struct {
	pages     uint32 // with observations, planned by the index
	levels    uint64 // the sum of their times between changes
	notices   uint16 // visits that a notice brought forward
	confirmed uint16 // those of notices that found a change
	yield     Yield
}

// Yield returns what the recrawls of the host have brought.
func (s *Site) Yield() Yield { return s.yield }

// doubt is the number of pages of a host that count as much as all pages of other hosts.
const doubt = 3

// prior returns the expected rate of a page of the host: the mean of its pages' estimates on the
// scale of logarithms, drawn towards expected while they are few.
func (s *Site) prior(expected float64) Rate {
	mean := (float64(s.levels) + doubt*expected) / (float64(s.pages) + doubt)
	return Rate(1 / levelSecondsOf(mean))
}

func (s *Site) add(h History) {
	if h.indexed() && h.observed() {
		s.pages++
		s.levels += uint64(h.level())
	}
}

func (s *Site) remove(h History) {
	if h.indexed() && h.observed() && s.pages > 0 {
		s.pages--
		s.levels -= min(s.levels, uint64(h.level()))
	}
}

// countNotice records whether a notice was true. Of many notices, the newest count.
func (s *Site) countNotice(changed bool) {
	const most = 200
	if s.notices >= most {
		s.notices, s.confirmed = s.notices/2, s.confirmed/2
	}
	s.notices++
	if changed {
		s.confirmed++
	}
}

// trust returns the share of the host's notices that is expected to be true.
func (s *Site) trust() float64 { return float64(s.confirmed+1) / float64(s.notices+2) }

const siteVersion = 2 // version 1 has no yield

// AppendBinary encodes the site: a version, then pages, levels, notices, confirmed notices and the yield in uvarints.
// It appends nothing for the zero value.
func (s *Site) AppendBinary(b []byte) ([]byte, error) {
	if *s == (Site{}) {
		return b, nil
	}
	b = append(b, siteVersion)
	for _, n := range [...]uint64{uint64(s.pages), s.levels, uint64(s.notices), uint64(s.confirmed)} {
		b = binary.AppendUvarint(b, n)
	}
	return s.yield.append(b), nil
}

// errSite is the error for a site that cannot be decoded.
var errSite = errors.New("recrawl: what is remembered of a host cannot be read")

// DecodeSite is the inverse of Site.AppendBinary.
func DecodeSite(b []byte) (s Site, err error) {
	if len(b) == 0 {
		return s, nil
	}
	var n [4]uint64
	if b[0] == 0 || b[0] > siteVersion {
		return s, errSite
	}
	d := wire.NewDecoder(b[1:])
	for i := range n {
		n[i] = d.Uvarint()
	}
	s = Site{pages: uint32(n[0]), levels: n[1], notices: uint16(n[2]), confirmed: uint16(n[3])}
	if b[0] > 1 {
		s.yield = decodeYield(&d)
	}
	if d.End() != nil || uint64(s.pages) != n[0] || uint64(s.notices) != n[2] || n[3] > n[2] || n[1] > n[0]*levels {
		return Site{}, errSite
	}
	return s, nil
}
