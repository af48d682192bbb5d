//go:build !core

package sweep

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/storage"
)

// Moved returns the mark of a sweep as it is in a database in which ordinals have moved. A mark of something
// else stays, and so does one that cannot be read.
func Moved(name string, value []byte, to func(storage.HostID, uint32) uint32) []byte {
	switch {
	case name == MarkExclude:
		at, err := storage.ParsePosition(string(value))
		if err != nil {
			return value
		}
		at.Ordinal = to(at.Host, at.Ordinal)
		return []byte(at.String())
	case strings.HasPrefix(name, MarkRetry):
		var c Command
		if json.Unmarshal(value, &c) != nil {
			return value
		}
		c.Ordinal = to(c.Host, c.Ordinal)
		return c.Encode()
	}
	for _, prefix := range []string{MarkRecheck, MarkDrop, MarkOffer, MarkWall, MarkDelete} {
		if rest, is := strings.CutPrefix(name, prefix); is {
			return movedBounds(rest, value, to)
		}
	}
	return value
}

// movedBounds changes the bounds that the mark of a sweep of one host begins with.
func movedBounds(name string, value []byte, to func(storage.HostID, uint32) uint32) []byte {
	var host storage.HostID
	if _, err := fmt.Sscanf(name, "%d", &host); err != nil {
		return value
	}
	moved := append([]byte(nil), value...)
	for at := 0; at+4 <= min(len(moved), 8); at += 4 {
		binary.BigEndian.PutUint32(moved[at:], to(host, binary.BigEndian.Uint32(moved[at:])))
	}
	return moved
}
