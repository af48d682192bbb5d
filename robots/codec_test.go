package robots

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

var fullRecord = Record{
	Class: ClassUnreachable, Copy: ClassFound, Status: 503, Failure: FailureTimeout, Cut: true, Failures: 7,
	Redirects: 3,
	Body:      []byte("User-agent: *\nDisallow: /a\n"), FinalURL: "https://a.example/robots.txt", ETag: `"abc"`,
	LastModified: "Sat, 21 Nov 2026 10:00:00 GMT", Fetched: begin, Expires: begin.Add(time.Hour),
	Refresh: begin.Add(1500 * time.Millisecond), FirstUnreachable: begin.Add(-time.Second),
}

// golden is fullRecord as version 1 stores it. It must never change: databases of users hold it.
const golden = "0105010401f703070380a4e3d8bf6880de9adcbf68b8bbe3d8bf68b094e3d8bf68" + // to the times
	"1c68747470733a2f2f612e6578616d706c652f726f626f74732e747874" +
	"0522616263221d5361742c203231204e6f7620323032362031303a30303a303020474d54" +
	"1b557365722d6167656e743a202a0a446973616c6c6f773a202f610a" + "6767079d"

// goldenPacked is the same record with packedBody. A later compressor may produce other bytes;
// these must stay readable.
const goldenPacked = "0105010403f703070380a4e3d8bf6880de9adcbf68b8bbe3d8bf68b094e3d8bf681c68747470733a2f2f612e6578616d706c652f726f626f74732e7478740522616263221d5361742c203231204e6f7620323032362031303a30303a303020474d5492020b2d4e2dd24d4c4fcd2bb152d0e272c92c4eccc9c92fb752d04f1ca91c00cbd5681a"

var packedBody = []byte("User-agent: *\n" + strings.Repeat("Disallow: /a\n", 20))

func TestRecordGolden(t *testing.T) {
	b := must.Get(fullRecord.AppendBinary(nil))(t)
	assert.Equal(t, hex.EncodeToString(b), golden, "stored as")
	b = must.Get(hex.DecodeString(golden))(t)
	r, err := DecodeRecord(b)
	assert.True(t, err == nil && reflect.DeepEqual(r, fullRecord), "%+v, %v", r, err)
	b = must.Get(hex.DecodeString(goldenPacked))(t)
	packed := fullRecord
	packed.Body = packedBody
	if r, err := DecodeRecord(b); err != nil || !reflect.DeepEqual(r, packed) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestFailureNumbers: the numbers of failures are stored, and never get another meaning.
func TestFailureNumbers(t *testing.T) {
	for number, name := range []string{"none", "dns", "connect", "tls", "timeout", "broken transfer", "blocked address",
		"protocol", "redirect target busy", "crash", "wall", "not confirmed"} {
		f := Failure(number)
		assert.True(t, f.String() == name && f.IsKnown(), "failure %d is %q, want %q", number, f, name)
	}
}

func TestRecordRoundTrip(t *testing.T) {
	long := fullRecord
	long.Body = []byte(strings.Repeat("Disallow: /x\n", 999))
	records := map[string]Record{"zero": {}, "full": fullRecord, "long": long, "good": good()}
	for name, want := range records {
		b, err := want.AppendBinary([]byte("before"))
		must.Do(t, err, name)
		got, err := DecodeRecord(b[len("before"):])
		assert.True(t, err == nil && reflect.DeepEqual(got, want), "%s: got %+v, %v; want %+v", name, got, err, want)
		assert.True(t, name != "long" || len(b) <= len(want.Body)/10, "a body of %d octets takes %d bytes",
			len(want.Body), len(b))
	}
}

func TestRecordRefuses(t *testing.T) {
	for name, r := range map[string]Record{
		"class":    {Class: classEnd},
		"failure":  {Failure: failureEnd},
		"negative": {Status: -1},
		"body":     {Body: make([]byte, MaxBody+1)},
		"etag":     {ETag: strings.Repeat("x", maxValidator+1)},
	} {
		b, err := r.AppendBinary([]byte("x"))
		assert.True(t, errors.Is(err, ErrRecord) && string(b) == "x", "%s: %v", name, err)
	}
}

// sealed appends the checksum, so that the decoder reads on.
func sealed(b []byte) []byte {
	return binary.BigEndian.AppendUint32(bytes.Clone(b), crc32.ChecksumIEEE(b))
}

func TestDecodeHostile(t *testing.T) {
	whole, err := fullRecord.AppendBinary(nil)
	must.Do(t, err)
	for n := range whole {
		assert.Fails(DecodeRecord(whole[:n]))(t, ErrRecord, "cut at", n)
		_, err := DecodeRecord(sealed(whole[:n]))
		assert.True(t, n >= len(whole)-4 || errors.Is(err, ErrRecord), "cut at %d and sealed: %v", n, err)
		flipped := bytes.Clone(whole)
		flipped[n] ^= 0x10
		assert.Fails(DecodeRecord(flipped))(t, ErrRecord, "damaged at", n)
		DecodeRecord(sealed(flipped[:len(flipped)-4])) // must not panic
	}
	_, err = DecodeRecord(sealed([]byte{2, 0, 0, 0, 0}))
	assert.True(t, err != nil && strings.Contains(err.Error(), "version 2"), "another version: %v", err)
}

// TestDecodeBomb decodes records that claim more than they hold, or hold more than they claim.
func TestDecodeBomb(t *testing.T) {
	header := func(flags byte, length uint64) []byte {
		b := append([]byte{recordVersion, 1, 1, 0, flags}, make([]byte, 3+4+3)...)
		return binary.AppendUvarint(b, length)
	}
	zeros := must.Get(deflate(make([]byte, 100<<20)))(t)
	bombs := map[string][]byte{
		"deflate bomb, honest":      append(header(flagDeflate, 100<<20), zeros...),
		"deflate bomb, too long":    append(header(flagDeflate, MaxBody), zeros...),
		"deflate, too short":        append(header(flagDeflate, MaxBody), zeros[:1000]...),
		"deflate of nothing":        header(flagDeflate, MaxBody),
		"raw, longer than there is": append(header(0, 1<<40), 'x'),
		"raw, shorter":              append(header(0, 1), "xyz"...),
		"unknown flag":              append(header(8, 1), 'x'),
		"rubbish for deflate":       append(header(flagDeflate, 20), "rubbish rubbish rubbish"...),
	}
	for name, b := range bombs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeRecord(sealed(b))
		runtime.ReadMemStats(&after)
		assert.True(t, errors.Is(err, ErrRecord), "%s: %v", name, err)
		n := after.TotalAlloc - before.TotalAlloc
		assert.True(t, n <= 4*MaxBody, "%s: %d bytes allocated", name, n)
	}
}

// TestVersion: rules know the version of the body that they were compiled from, also after a
// restart. Without a file they have none.
func TestVersion(t *testing.T) {
	body := []byte("User-agent: *\nDisallow: /a\n")
	r := Record{Class: ClassFound, Copy: ClassFound, Body: body}
	const want = "f26c1148a87f1114697fc794684d6aac"
	v := r.Rules("amble").Version()
	assert.True(t, v.String() == want && v == VersionOf(body) && !v.IsZero(), "version %s, want %s", v, want)
	r.Class = ClassUnreachable
	assert.Equal(t, r.Rules("other").Version(), v, "rules of the last good copy have version")
	for _, r := range []Record{{}, {Class: ClassUnavailable, Copy: ClassUnavailable}, {Class: ClassUnreachable}} {
		got := r.Rules("amble").Version()
		assert.True(t, got.IsZero(), "%s: version %s without a file", r.Class, got)
	}
}
