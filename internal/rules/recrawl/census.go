package recrawl

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// census counts the planned pages by the level of their rate and by importance. It is exact: each
// history holds what its page counts as, and that is subtracted when the page is planned again. The
// price and the forecast are computed from the census, without reading pages.
type census struct {
	counts [levels][importances]uint32
	at     [levels]uint64 // pages of each level
	pages  uint64         // the sum of counts
	levels uint64         // the sum of their levels
	fixed  uint64         // visits of plain policies, in units of fixedUnit
	plain  uint64         // pages of plain policies
}

// fixedUnit is the number of units of census.fixed in one visit a second.
const fixedUnit = 1e12

func fixedRate(h History) uint64 { return uint64(fixedUnit / max(h.interval().Seconds(), shortest)) }

func (c *census) add(h History, i Importance) {
	switch {
	case h.indexed():
		c.counts[h.level()][i-leastImportance]++
		c.at[h.level()]++
		c.pages++
		c.levels += uint64(h.level())
	case h.Planned():
		c.fixed += fixedRate(h)
		c.plain++
	}
}

// remove subtracts a page that add has counted.
func (c *census) remove(h History, i Importance) {
	switch {
	case h.indexed():
		n := &c.counts[h.level()][i-leastImportance]
		if *n == 0 {
			return
		}
		*n--
		c.at[h.level()]--
		c.pages--
		c.levels -= uint64(h.level())
	case h.Planned() && c.plain > 0:
		c.fixed -= min(c.fixed, fixedRate(h))
		c.plain--
	}
}

// each calls f for every combination of rate and importance that has pages.
func (c *census) each(f func(rate Rate, i Importance, pages float64)) {
	for l := range c.counts {
		if c.at[l] == 0 {
			continue
		}
		for i, n := range c.counts[l] {
			if n > 0 {
				f(Rate(1/levelSeconds(uint8(l))), leastImportance+Importance(i), float64(n))
			}
		}
	}
}

// demand returns the visits a second that the pages planned by the index need at a price.
func (c *census) demand(price float64, b bounds) (visits float64) {
	c.each(func(rate Rate, i Importance, pages float64) {
		visits += pages / b.clamp(indexWait(rate, i.Weight(), price))
	})
	return visits
}

// The bounds of the price, in seconds.
const (
	cheapest = 1e-3
	dearest  = 1e15
)

// price returns the price at which the pages planned by the index need a number of visits a second,
// or the cheapest one if they need less at any price. near is the first guess. Demand falls as the
// price rises, on the scale of logarithms with a slope between 0 and -1.
func (c *census) price(visits, near float64, b bounds) float64 {
	if c.pages == 0 || visits <= 0 {
		return near
	}
	missing := func(logPrice float64) float64 { return math.Log(c.demand(math.Exp(logPrice), b) / visits) }
	low, high := math.Log(cheapest), math.Log(dearest)
	if missing(low) <= 0 {
		return cheapest
	}
	if missing(high) >= 0 {
		return dearest // the budget is too small even for all of them at their longest waits
	}
	at := min(max(math.Log(near), low), high)
	for range 60 {
		m := missing(at)
		if math.Abs(m) < 5e-3 {
			break
		}
		if m > 0 {
			low = at
		} else {
			high = at
		}
		// The slope is about -1/2 for short waits and -1 for long ones.
		if at += 1.4 * m; at <= low || at >= high {
			at = (low + high) / 2
		}
	}
	return math.Exp(at)
}

const censusVersion = 1

var errCensus = errors.New("recrawl: the census of planned pages cannot be read")

// appendBinary encodes the census: a version, fixed and plain, then for each count other than 0 its
// distance from the one before, and the count; all in uvarints.
func (c *census) appendBinary(b []byte) []byte {
	b = append(b, censusVersion)
	b = binary.AppendUvarint(b, c.fixed)
	b = binary.AppendUvarint(b, c.plain)
	last := 0
	for l := range c.counts {
		for i, n := range c.counts[l] {
			if n > 0 {
				at := l*importances + i
				b = binary.AppendUvarint(b, uint64(at-last))
				b = binary.AppendUvarint(b, uint64(n))
				last = at
			}
		}
	}
	return b
}

func decodeCensus(b []byte) (*census, error) {
	c := &census{}
	if len(b) == 0 || b[0] != censusVersion {
		return nil, errCensus
	}
	d := wire.NewDecoder(b[1:])
	c.fixed, c.plain = d.Uvarint(), d.Uvarint()
	for at := uint64(0); d.Len() > 0; {
		apart, n := d.UvarintMax(levels*uint64(importances)-1), d.UvarintMax(math.MaxUint32)
		if !d.OK() || apart == 0 && c.pages > 0 || n == 0 {
			return nil, errCensus
		}
		if at += apart; at >= levels*uint64(importances) {
			return nil, errCensus
		}
		l := at / uint64(importances)
		c.counts[l][at%uint64(importances)] = uint32(n)
		c.at[l] += n
		c.pages += n
		c.levels += n * l
	}
	if !d.OK() {
		return nil, errCensus
	}
	return c, nil
}
