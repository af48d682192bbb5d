package warc

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// zstdFrame returns a frame with any content.
func zstdFrame(t testing.TB, text string, options ...zstd.EOption) []byte {
	t.Helper()
	z := must.Get(zstd.NewWriter(nil, append(options, zstd.WithZeroFrames(true))...))(t)
	return z.EncodeAll([]byte(text), nil)
}

// skippable returns a frame that Zstandard skips.
func skippable(magic uint32, data []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, magic)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(data))), data...)
}

// TestZstdGolden: the bytes of a small file. They may change with the library, as long as others
// can read them.
func TestZstdGolden(t *testing.T) {
	stored := "28b52ffd" + "64" + "6500" + "290b00" + // magic; flags; size 256+101; last raw block of 357 bytes
		hex.EncodeToString([]byte("WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\n"+
			"WARC-Date: 2026-11-20T12:14:15Z\r\nContent-Length: 236\r\n\r\n"+strings.Repeat("short ", 39)+
			"\r\n\r\n\r\n")) +
		"015e9324"
	data := file(t, Compression{Format: FormatZstd, Level: 1}, strings.Repeat("short ", 39)+"\r\n")
	got := hex.EncodeToString(data)
	assert.True(t, got == stored, "a stored record is\n%s, want\n%s", got, stored)
	packed := "28b52ffd640213c5030062471a1d508b1da072e7b789156c1517d7aa8de5a609e389d9080db5311d50d307baba8481406149" +
		"6035ebea32334bde908cf70825dfcb079b6e82b527edab1b5eaa5b298b57f2970ac6d0fe38e6f41767213973504f848b771f3d08451f93" +
		"3ff46854738ba3db48039a5b9c0300be372d1d0ecab5d09d4e09f7ab35"
	data = file(t, Compression{Format: FormatZstd, Level: 1}, strings.Repeat("0123456789", 500))
	if got := hex.EncodeToString(data); got != packed {
		t.Errorf("a record is\n%s, want\n%s", got, packed)
	}
}

// TestZstdFrames: each record is one frame with its size and a checksum, the dictionary comes before
// them, and a decoder of plain Zstandard that knows it reads the uncompressed file.
func TestZstdFrames(t *testing.T) {
	blocks := []string{"", "short", strings.Repeat("long ", 5000), strings.Repeat("very long ", 400_000)}
	plain := plainFile(t, blocks...)
	for name, c := range compressions(t) {
		if c.Format != FormatZstd {
			continue
		}
		data := file(t, c, blocks...)
		decoder, err := zstd.NewReader(nil, zstd.WithDecoderDicts(dictionary(t)), zstd.WithDecoderMaxWindow(maxWindow))
		must.Do(t, err)
		if got, err := decoder.DecodeAll(data, nil); err != nil || string(got) != plain {
			t.Errorf("%s: %d bytes, want %d: %v", name, len(got), len(plain), err)
		}
		decoder.Close()
		r := NewReader(bytes.NewReader(data))
		for range blocks {
			rec, err := r.Next()
			if err == nil {
				err = r.Skip()
			}
			must.Do(t, err)
			record := data[rec.Offset:r.Offset()]
			if rec.Offset == 0 {
				record = record[len(c.Start()):]
			}
			var h zstd.Header
			if err := h.Decode(record); err != nil || !h.HasCheckSum || !h.HasFCS ||
				(h.DictionaryID != 0) != (c.Dictionary != nil) {
				t.Errorf("%s: a frame begins with %+v: %v", name, h, err)
			}
			assert.True(t, h.FrameContentSize >= uint64(rec.Size) && h.WindowSize <= maxWindow,
				"%s: a record of %d bytes has a frame of %+v", name, rec.Size, h)
		}
	}
}

// plainFile returns the uncompressed records.
func plainFile(t *testing.T, blocks ...string) string {
	t.Helper()
	var b strings.Builder
	r := NewReader(bytes.NewReader(file(t, gzipLevel3, blocks...)))
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return b.String()
		}
		must.Do(t, err)
		b.Write(rec.Header.append(nil))
		io.Copy(&b, rec.Block)
		b.WriteString(recordEnd)
	}
}

// TestZstdOfOthers: what the specification allows besides what is written here: a compressed
// dictionary, records in several frames, frames without a size, empty ones, and extensions.
func TestZstdOfOthers(t *testing.T) {
	const record = "WARC/1.1\r\nContent-Length: 2\r\n\r\nab\r\n\r\n"
	withDictionary := zstdFrame(t, record, zstd.WithEncoderDict(dictionary(t)))
	empty, extension := zstdFrame(t, ""), skippable(0x184D2A50, []byte("anything"))
	var unsized bytes.Buffer
	z := must.Get(zstd.NewWriter(&unsized, zstd.WithEncoderCRC(false)))(t)
	io.WriteString(z, record)
	z.Flush()
	z.Close()
	for name, data := range map[string][]byte{
		"dictionary": bytes.Join([][]byte{skippable(dictionaryMagic, dictionary(t)), withDictionary, withDictionary},
			nil),
		"compressed dictionary": bytes.Join([][]byte{
			skippable(dictionaryMagic, zstdFrame(t, string(dictionary(t)))), withDictionary, withDictionary}, nil),
		"several frames": bytes.Join([][]byte{zstdFrame(t, record[:5]), zstdFrame(t, record[5:31]), extension, empty,
			zstdFrame(t, record[31:]), zstdFrame(t, record)}, nil),
		"extensions": bytes.Join([][]byte{zstdFrame(t, record), extension, extension, zstdFrame(t, record), extension},
			nil),
		"empty": bytes.Join([][]byte{empty, zstdFrame(t, record), empty, zstdFrame(t, record), empty, extension},
			nil),
		"unsized": append(bytes.Clone(unsized.Bytes()), unsized.Bytes()...),
	} {
		n, err := readAll(data)
		assert.True(t, n == 2 && err == io.EOF, "%s: %d records, then %v", name, n, err)
	}
}

func TestZstdDamage(t *testing.T) {
	c := Compression{Format: FormatZstd, Level: 2}
	whole := file(t, c, strings.Repeat("whole ", 500), "second")
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/3] ^= 0x40
	const record = "WARC/1.1\r\nContent-Length: 2\r\n\r\nab\r\n\r\n"
	other := Compression{Format: FormatZstd, Level: 1, Dictionary: dictionary(t)}
	for name, test := range map[string]struct {
		data []byte
		want error
	}{
		"torn in the checksum":      {whole[:len(whole)-3], ErrTorn},
		"torn in a header":          {append(bytes.Clone(whole), 0x28, 0xb5), ErrTorn},
		"torn between frames":       {zstdFrame(t, record[:20]), ErrTorn},
		"torn extension":            {append(bytes.Clone(whole), skippable(0x184D2A51, []byte("abc"))[:9]...), ErrTorn},
		"flipped":                   {flipped, ErrFormat},
		"two records in a frame":    {zstdFrame(t, record+record), ErrFormat},
		"length beyond the end":     {zstdFrame(t, strings.Replace(record, ": 2", ": 200", 1)), ErrTorn},
		"length too short":          {zstdFrame(t, strings.Replace(record, ": 2", ": 1", 1)), ErrFormat},
		"length beyond the bound":   {zstdFrame(t, strings.Replace(record, ": 2", ": 99999999999", 1)), ErrFormat},
		"gzip behind it":            {append(bytes.Clone(whole), gzipped(record)...), ErrFormat},
		"a missing dictionary":      {file(t, other, "x")[len(other.Start()):], ErrFormat},
		"a late dictionary":         {append(bytes.Clone(whole), other.Start()...), ErrFormat},
		"a dictionary that is none": {append(skippable(dictionaryMagic, []byte("nonsense")), whole...), ErrFormat},
		"a reserved block":          {[]byte("\x28\xb5\x2f\xfd\x20\x02\x07\x00\x00"), ErrFormat},
	} {
		n, err := readAll(test.data)
		assert.True(t, errors.Is(err, test.want), "%s: %d records, then %v", name, n, err)
	}
}

// TestZstdBombs: what a hostile file announces is refused before memory is used for it, and what it
// expands to is not held.
func TestZstdBombs(t *testing.T) {
	zeros := func(blocks int, window string) []byte {
		head := "WARC/1.1\r\nContent-Length: 17179869184\r\n\r\n"
		b := []byte("\x28\xb5\x2f\xfd" + window)
		b = append(b, byte(len(head)<<3), byte(len(head)>>5), 0)
		b = append(b, head...)
		for range blocks {
			b = append(b, 2, 0, 0x10, 0) // a block of 128 KiB: one byte, repeated
		}
		return b
	}
	huge := bytes.Repeat([]byte{0}, maxDictionary+1)
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"endless block":          {zeros(4000, "\x00\x68"), "ends within a record"}, // half a gigabyte
		"window":                 {zeros(4, "\x00\x70"), "needs a window of 16777216 bytes"},
		"largest window":         {zeros(4, "\x00\xff"), "needs a window of"},
		"one segment":            {zeros(4, "\xe0\xff\xff\xff\xff\xff\xff\xff\x7f"), "needs a window of"},
		"large dictionary":       {skippable(dictionaryMagic, huge), "its dictionary takes 8388609 bytes"},
		"dictionary that is cut": {skippable(dictionaryMagic, huge)[:20], "its dictionary takes"},
		"dictionary that grows":  {skippable(dictionaryMagic, zstdFrame(t, string(huge))), "its dictionary"},
		"extension": {append(zstdFrame(t, ""), "\x50\x2a\x4d\x18\xff\xff\xff\xff"...),
			"ends within a record"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readAll(test.data)
		runtime.ReadMemStats(&after)
		assert.True(t, err != nil && strings.Contains(err.Error(), test.want), "%s: got %v, want %q", name, err,
			test.want)
		used := after.TotalAlloc - before.TotalAlloc
		assert.True(t, used <= 40<<20, "%s: %d bytes were allocated", name, used)
	}
}

func TestCompressionValidate(t *testing.T) {
	for name, test := range map[string]struct {
		c    Compression
		want string
	}{
		"unknown": {Compression{Format: "rar", Level: 1}, `format "rar"`},
		"level 0": {Compression{Format: FormatGzip}, "gzip level 0, allowed are 1 to 9"},
		"level 5": {Compression{Format: FormatZstd, Level: 5}, "zstd level 5, allowed are 1 to 4"},
		"gzip": {Compression{Format: FormatGzip, Level: 1, Dictionary: dictionary(t)},
			"a dictionary is for zstd"},
		"empty dictionary": {Compression{Format: FormatZstd, Level: 1, Dictionary: []byte{}},
			`make one with "zstd --train"`},
		"text": {Compression{Format: FormatZstd, Level: 1, Dictionary: []byte(strings.Repeat("a", 99))},
			"zstd --train"},
		"large": {Compression{Format: FormatZstd, Level: 1, Dictionary: make([]byte, maxDictionary+1)},
			"8388609 bytes"},
	} {
		if _, err := NewPacker(test.c); !errors.Is(err, ErrCompression) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
