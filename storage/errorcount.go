package storage

import (
	"encoding/binary"
	"slices"
)

// ErrorCount is how often something went wrong with URLs of a host, over all
// runs, attempts that were made again included.
type ErrorCount struct {
	Reason Reason
	Count  uint32
}

// errorCounts are the counts of one host, by rising reason.
type errorCounts []ErrorCount

// counted reports whether an outcome is one of those that are counted.
func (o *Outcome) counted() bool {
	if o.State != Failed && o.State != Retrying {
		return false
	}
	switch o.Reason {
	case ReasonStatus, ReasonRedirects, ReasonLocation, ReasonLoop, ReasonCrash:
		return true
	}
	return o.Reason >= ReasonFetch
}

func (c errorCounts) add(reason Reason) errorCounts {
	i, found := slices.BinarySearchFunc(c, reason, func(e ErrorCount, r Reason) int { return int(e.Reason) - int(r) })
	if !found {
		return slices.Insert(c, i, ErrorCount{reason, 1})
	}
	if c[i].Count < 1<<32-1 {
		c[i].Count++
	}
	return c
}

func (c errorCounts) append(b []byte) []byte {
	b = append(b, byte(len(c)))
	for _, e := range c {
		b = binary.AppendUvarint(append(b, byte(e.Reason)), uint64(e.Count))
	}
	return b
}

// decodeErrors decodes counts into those given. Counts out of order make d bad.
func decodeErrors(d *decoder, c errorCounts) errorCounts {
	c = c[:0]
	last := ReasonNone
	for range int(d.u8()) {
		e := ErrorCount{Reason: Reason(d.u8())}
		n := d.uvarint()
		if d.bad || e.Reason <= last || n == 0 || n > 1<<32-1 {
			d.bad = true
			return c[:0]
		}
		last, e.Count = e.Reason, uint32(n)
		c = append(c, e)
	}
	return c
}
