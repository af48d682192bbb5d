package recrawl

import (
	"encoding/binary"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// Yield counts what recrawls have brought.
type Yield struct {
	Recrawls       uint64 `json:"recrawls"`        // requests for pages that had been fetched before
	Unchanged      uint64 `json:"unchanged"`       // those of pages that are the same, whatever their validators say
	UnchangedBytes uint64 `json:"unchanged_bytes"` // of the bodies that came all the same
}

// count counts a visit of a page; the first one is no recrawl.
func (y *Yield) count(v *Visit, gone bool) {
	switch {
	case v.Requisite, v.Change == First && !gone:
		return
	case v.Change == Same && !gone:
		y.Unchanged++
		y.UnchangedBytes += v.Bytes
	}
	y.Recrawls++
}

// Add adds another yield.
func (y *Yield) Add(more *Yield) {
	y.Recrawls, y.Unchanged = y.Recrawls+more.Recrawls, y.Unchanged+more.Unchanged
	y.UnchangedBytes += more.UnchangedBytes
}

// append encodes three uvarints.
func (y *Yield) append(b []byte) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, y.Recrawls), y.Unchanged)
	return binary.AppendUvarint(b, y.UnchangedBytes)
}

func decodeYield(d *wire.Decoder) Yield {
	y := Yield{d.Uvarint(), d.Uvarint(), d.Uvarint()}
	d.Require(y.Unchanged <= y.Recrawls)
	return y
}
