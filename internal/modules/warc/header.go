package warc

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"time"
)

// Version is the first line of every record.
const Version = "WARC/1.1"

// The types of the records that are written (section 5.5 of the standard). A reader may meet
// others.
const (
	TypeInfo     = "warcinfo"
	TypeRequest  = "request"
	TypeResponse = "response"
	TypeMetadata = "metadata"
	TypeRevisit  = "revisit"
)

// The profiles of revisit records (section 6.7).
const (
	ProfileIdenticalPayload = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	ProfileNotModified      = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// The names of the fields in use (section 5).
const (
	FieldType              = "WARC-Type"
	FieldRecordID          = "WARC-Record-ID"
	FieldDate              = "WARC-Date"
	FieldLength            = "Content-Length"
	FieldContentType       = "Content-Type"
	FieldTargetURI         = "WARC-Target-URI"
	FieldInfoID            = "WARC-Warcinfo-ID"
	FieldIPAddress         = "WARC-IP-Address"
	FieldConcurrentTo      = "WARC-Concurrent-To"
	FieldBlockDigest       = "WARC-Block-Digest"
	FieldPayloadDigest     = "WARC-Payload-Digest"
	FieldTruncated         = "WARC-Truncated"
	FieldProfile           = "WARC-Profile"
	FieldRefersToTargetURI = "WARC-Refers-To-Target-URI"
	FieldRefersToDate      = "WARC-Refers-To-Date"
	FieldRefersToIndex     = "X-Refers-To-Index" // the index of another collection, which has the original
	FieldFilename          = "WARC-Filename"
	FieldProtocol          = "WARC-Protocol" // of a later proposal, as Heritrix and warcio have it
)

// The media types of blocks.
const (
	MediaRequest  = "application/http;msgtype=request"
	MediaResponse = "application/http;msgtype=response"
	MediaFields   = "application/warc-fields"
)

// Field is one named field of a header, or of a block of [MediaFields].
type Field struct{ Name, Value string }

// Header is the header of a record: its fields in order.
type Header []Field

// Get returns the value of the first field with the name, in any letter case; empty if there is
// none.
func (h Header) Get(name string) string {
	for i := range h {
		if len(h[i].Name) == len(name) && strings.EqualFold(h[i].Name, name) {
			return h[i].Value
		}
	}
	return ""
}

// Add appends a field, unless its value is empty.
func (h *Header) Add(name, value string) {
	if value != "" {
		*h = append(*h, Field{name, value})
	}
}

// append appends the header as it is in a file, with the empty line behind it.
func (h Header) append(b []byte) []byte {
	b = append(b, Version+"\r\n"...)
	return append(AppendFields(b, h), "\r\n"...)
}

// AppendFields appends lines of "name: value". Control characters in a value become spaces, because
// they would begin another line.
func AppendFields(b []byte, fields []Field) []byte {
	for _, f := range fields {
		b = append(b, f.Name...)
		b = append(b, ": "...)
		from := len(b)
		b = append(b, f.Value...)
		for i, c := range b[from:] {
			if c < ' ' || c == 0x7f {
				b[from+i] = ' '
			}
		}
		b = append(b, "\r\n"...)
	}
	return b
}

// NewID returns a fresh WARC-Record-ID: a random UUID (RFC 9562 section 5.4) as a URN in angle
// brackets.
func NewID() string {
	var u [16]byte
	binary.NativeEndian.PutUint64(u[:8], rand.Uint64()) // it must be unique, not secret
	binary.NativeEndian.PutUint64(u[8:], rand.Uint64())
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	b := make([]byte, 0, 48)
	b = append(b, "<urn:uuid:"...)
	for i, part := range [...][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return string(append(b, '>'))
}

// FormatDate formats a WARC-Date: UTC, whole seconds, as every tool reads it.
func FormatDate(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// ParseDate reads a WARC-Date, with or without a fraction of the second.
func ParseDate(s string) (time.Time, error) { return time.Parse(time.RFC3339, s) }
