//go:build !core

package requestlog

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/amble-crawler/amble/robots"
)

// The types of frames.
const (
	frameHeader = iota
	frameRequest
	frameContext
	framePolicy
	frameBody
	frameLost
	frameOpen
	frameSync
)

const (
	magic   = "amble-requests"
	version = 2
)

// maxPayload bounds the payload that a reader accepts: a body, and a little.
const maxPayload = robots.MaxBody + 64<<10

// checksumBytes is the length of the checksum after a payload.
const checksumBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends a payload as a frame.
func appendFrame(b, payload []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(payload)))
	b = append(b, payload...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli))
}
