package storage

import (
	"encoding/binary"
	"fmt"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// MarkLedger is the name of the mark that holds an offset in the ledger. The commit with the mark
// carries the outcome of every request before the offset. Offsets count the bytes of all lines
// since the first ledger of a store, so they only grow.
const MarkLedger = "ledger"

// EncodeOffset encodes an offset for Batch.Marks.
func EncodeOffset(offset uint64) []byte { return binary.BigEndian.AppendUint64(nil, offset) }

// DecodeOffset is the inverse of EncodeOffset. A mark that was never set is offset 0.
func DecodeOffset(b []byte) (uint64, error) {
	d := wire.NewDecoder(b)
	offset := d.Uint64()
	if len(b) > 0 && d.End() != nil {
		return 0, fmt.Errorf("%w: ledger mark", ErrCorrupt)
	}
	return offset, nil
}
