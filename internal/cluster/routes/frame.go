package routes

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// version is that of the format of messages.
const version = 1

// kind is the kind of a message.
type kind uint8

const (
	kindOpen kind = iota + 1
	kindAccept
	kindData
	kindCredit
	kindEnd
	kindRefuse
)

// Bounds of a connection and its messages.
const (
	maxData   = 32 << 10 // bytes of a data message
	window    = 16       // data messages that were sent and not taken
	frameHead = 6
)

// frame is one message.
type frame struct {
	kind   kind
	number uint32
	data   []byte // of kindData; the bytes of the message that was decoded
}

// encode returns the bytes of a message.
func (f *frame) encode() []byte {
	b := make([]byte, frameHead, frameHead+len(f.data))
	b[0], b[1] = version, byte(f.kind)
	binary.BigEndian.PutUint32(b[2:], f.number)
	return append(b, f.data...)
}

var (
	errFrame   = errors.New("a message of another node cannot be read")
	errVersion = errors.New("a node of another version; run the same version of amble on all nodes")
)

// decodeFrame is the inverse of encode.
func decodeFrame(b []byte) (f frame, err error) {
	switch {
	case len(b) < 1:
		return f, errFrame
	case b[0] != version:
		return f, fmt.Errorf("message format %d, not %d: %w", b[0], version, errVersion)
	case len(b) < frameHead || len(b) > frameHead+maxData:
		return f, errFrame
	}
	f = frame{kind: kind(b[1]), number: binary.BigEndian.Uint32(b[2:]), data: b[frameHead:]}
	if f.kind < kindOpen || f.kind > kindRefuse || (len(f.data) > 0) != (f.kind == kindData) {
		return f, errFrame
	}
	return f, nil
}
