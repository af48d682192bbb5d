package robots

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/klauspost/compress/flate"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// ErrRecord is wrapped by every error of DecodeRecord: the bytes are no record, or a damaged one.
var ErrRecord = errors.New("robots record")

// The format of a stored record, version 1. Numbers are unsigned varints unless said otherwise,
// text is its length and its octets, times are signed varints of milliseconds since 1970 with 0 for
// "never".
//
//	version 1 B | class 1 B | copy 1 B | failure 1 B | flags 1 B | status | failures | redirects |
//	fetched | expires | refresh | first unreachable | final URL | etag | last modified |
//	length of the body | body, raw or DEFLATE as the flag says | CRC-32 (IEEE) of all before it, 4 B big-endian
const recordVersion = 1

const (
	flagCut = 1 << iota
	flagDeflate
	flagsEnd
)

// maxRatio is more than DEFLATE can shrink anything by. A body that claims more is invalid.
const maxRatio = 1100

// AppendBinary appends the record in its stored form. Times keep milliseconds.
func (r Record) AppendBinary(b []byte) ([]byte, error) { return r.AppendPacked(b, Pack(r.Body)) }

// AppendPacked is AppendBinary for who has packed the body already: packed is what [Pack] makes of it.
func (r Record) AppendPacked(b, packed []byte) ([]byte, error) {
	if err := r.check(); err != nil {
		return b, err
	}
	start, flags := len(b), byte(0)
	if r.Cut {
		flags |= flagCut
	}
	if len(packed) < len(r.Body) {
		flags |= flagDeflate
	}
	b = append(b, recordVersion, byte(r.Class), byte(r.Copy), byte(r.Failure), flags)
	for _, n := range []int{r.Status, r.Failures, r.Redirects} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	for _, t := range []time.Time{r.Fetched, r.Expires, r.Refresh, r.FirstUnreachable} {
		b = binary.AppendVarint(b, toMilli(t))
	}
	for _, s := range []string{r.FinalURL, r.ETag, r.LastModified} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Body)))
	b = append(b, packed...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[start:])), nil
}

// check returns an error if the record could not be read back.
func (r Record) check() error {
	switch {
	case r.Class >= classEnd || r.Copy >= classEnd || r.Failure >= failureEnd:
		return fmt.Errorf("%w: unknown class or failure", ErrRecord)
	case r.Status < 0 || r.Failures < 0 || r.Redirects < 0:
		return fmt.Errorf("%w: negative number", ErrRecord)
	case len(r.Body) > MaxBody:
		return fmt.Errorf("%w: body of %d octets", ErrRecord, len(r.Body))
	case max(len(r.FinalURL), len(r.ETag), len(r.LastModified)) > maxValidator:
		return fmt.Errorf("%w: text of more than %d octets", ErrRecord, maxValidator)
	}
	return nil
}

// DecodeRecord reads a record that AppendBinary wrote. It copies what it keeps. b may hold
// anything: the error wraps ErrRecord, and the body never takes more than MaxBody bytes.
func DecodeRecord(b []byte) (Record, error) {
	if len(b) < 4 {
		return Record{}, fmt.Errorf("%w: %d bytes", ErrRecord, len(b))
	}
	b, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.ChecksumIEEE(b) != sum {
		return Record{}, fmt.Errorf("%w: checksum does not match", ErrRecord)
	}
	d := newDecoder(b)
	if v := d.Byte(); d.OK() && v != recordVersion {
		return Record{}, fmt.Errorf("%w: version %d, this program knows version %d", ErrRecord, v, recordVersion)
	}
	r := Record{Class: Class(d.Byte()), Copy: Class(d.Byte()), Failure: Failure(d.Byte())}
	flags := d.Byte()
	r.Cut = flags&flagCut != 0
	r.Status, r.Failures, r.Redirects = d.number(), d.number(), d.number()
	r.Fetched, r.Expires, r.Refresh, r.FirstUnreachable = d.time(), d.time(), d.time(), d.time()
	r.FinalURL, r.ETag, r.LastModified = d.text(), d.text(), d.text()
	r.Body = d.body(d.number(), flags&flagDeflate != 0)
	if flags >= flagsEnd {
		d.fail("unknown flags")
	}
	err := d.failure()
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return Record{}, err
	}
	return r, nil
}

// decoder reads the parts of a record.
type decoder struct{ wire.Decoder }

func newDecoder(b []byte) decoder { return decoder{wire.NewDecoder(b)} }

func (d *decoder) fail(what string) { d.Fail(errors.New(what)) }

// failure returns the first failure as an error that wraps ErrRecord, nil if all was read to the end.
func (d *decoder) failure() error {
	if err := d.End(); err != nil {
		return fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return nil
}

// number reads a small number, such as a count or a length.
func (d *decoder) number() int { return int(d.UvarintMax(1 << 30)) }

func (d *decoder) time() time.Time { return fromMilli(d.Varint()) }

func (d *decoder) text() string { return string(d.Long()) }

// body reads a body of n bytes, which is all that is left.
func (d *decoder) body(n int, packed bool) []byte {
	rest := d.Bytes(d.Len())
	switch {
	case !d.OK():
	case n > MaxBody || !packed && n != len(rest) || packed && n > maxRatio*len(rest):
		d.fail("impossible length of the body")
	case n == 0:
	case !packed:
		return bytes.Clone(rest)
	default:
		body := make([]byte, n)
		r := flate.NewReader(bytes.NewReader(rest))
		if _, err := io.ReadFull(r, body); err != nil {
			d.fail("damaged body")
			return nil
		}
		if n, _ := io.ReadFull(r, make([]byte, 1)); n != 0 {
			d.fail("body longer than it says")
			return nil
		}
		return body
	}
	return nil
}

// Pack compresses a robots.txt with DEFLATE, or returns it as it is if that is not shorter. It takes 10
// ns for each byte.
func Pack(body []byte) []byte {
	if packed, err := deflate(body); err == nil && len(packed) < len(body) {
		return packed
	}
	return body
}

// deflate compresses a body. Its encoder is not kept for the next body.
func deflate(body []byte) ([]byte, error) {
	var packed bytes.Buffer
	if err := flate.StatelessDeflate(&packed, body, true, nil); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func toMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
