package fetch

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// encoded returns data in one of the encodings, made as fast as the encoder can; "raw" is deflate
// without zlib.
func encoded(t testing.TB, name string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch name {
	case "gzip", "x-gzip":
		w, err = gzip.NewWriterLevel(&b, gzip.BestSpeed)
	case "deflate":
		w, err = zlib.NewWriterLevel(&b, zlib.BestSpeed)
	case "raw":
		w, err = flate.NewWriter(&b, flate.BestSpeed)
	case "br":
		w = brotli.NewWriterOptions(&b, brotli.WriterOptions{Quality: 1, LGWin: 22})
	case "zstd":
		w, err = zstd.NewWriter(&b, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(8<<20))
	default:
		return data
	}
	must.Do(t, err)
	must.Get(w.Write(data))(t)
	must.Do(t, w.Close())
	return b.Bytes()
}

// flushedGzip is text whose server flushed after each n bytes.
func flushedGzip(t testing.TB, text string, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	for piece := range slices.Chunk([]byte(text), n) {
		_, _ = w.Write(piece)
		_ = w.Flush()
	}
	_ = w.Close()
	return b.Bytes()
}

// brotliOf is data with a window of 1<<bits bytes.
func brotliOf(t testing.TB, bits int, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := brotli.NewWriterOptions(&b, brotli.WriterOptions{Quality: 5, LGWin: bits})
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

// serveEncoded serves body under that Content-Encoding, on kept connections.
func serveEncoded(t testing.TB, name string, body []byte) *server {
	return serve(t, func(c net.Conn, r *bufio.Reader) {
		for readHead(r) != "" {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n", name, len(body))
			if _, err := c.Write(body); err != nil {
				return
			}
		}
	})
}

func TestEncodings(t *testing.T) {
	text := []byte(strings.Repeat("a page of the web. ", 5000))
	gz := encoded(t, "gzip", text)
	tests := []struct {
		name, header string
		body         []byte
		want         []byte
	}{
		{"identity", "identity", text, text},
		{"gzip", "gzip", gz, text},
		{"upper case", "GZIP", gz, text},
		{"x-gzip", "x-gzip", gz, text},
		{"two gzip members", "gzip", append(slices.Clone(gz), gz...), append(slices.Clone(text), text...)},
		{"gzip with padding", "gzip", append(slices.Clone(gz), 0, 0, 0, 0), text},
		{"deflate", "deflate", encoded(t, "deflate", text), text},
		{"deflate without zlib", "deflate", encoded(t, "raw", text), text},
		{"brotli", "br", encoded(t, "br", text), text},
		{"zstd", "zstd", encoded(t, "zstd", text), text},
		{"nested", "gzip, br", encoded(t, "br", gz), text},
		{"the same twice", "gzip, x-gzip", encoded(t, "gzip", gz), text},
		{"brotli twice", "br, br", encoded(t, "br", encoded(t, "br", text)), text},
		{"empty body", "gzip", nil, nil},
		{"empty nested body", "gzip, zstd", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serveEncoded(t, tt.header, tt.body)
			c := newClient(t, quick())
			for range 2 {
				r, err := get(t, c, s)
				if err != nil || !bytes.Equal(whole(t, r), tt.want) || r.Truncated {
					t.Fatalf("%d bytes, %v", r.Body.Size(), err)
				}
			}
			assert.Equal(t, s.accepted(), 1, "the connection was not reused")
		})
	}
}

func TestBadEncodings(t *testing.T) {
	gz := encoded(t, "gzip", []byte(strings.Repeat("text ", 1000)))
	broken := slices.Clone(gz)
	broken[len(broken)-6] ^= 1 // checksum
	wide := encoded(t, "zstd", nil)
	wide = append(wide[:4], 0x00, 0x88) // a window of 128 MiB
	wide = append(wide, 1, 0, 0)
	tests := []struct {
		name, header string
		body         []byte
	}{
		{"unknown", "compress", []byte("x")},
		{"not gzip", "gzip", []byte("<html>plain</html>")},
		{"not brotli", "br", []byte("<html>plain</html>")},
		{"not zstd", "zstd", []byte("<html>plain</html>")},
		{"not deflate", "deflate", []byte("<html>plain</html>")},
		{"cut gzip", "gzip", gz[:len(gz)/2]},
		{"checksum", "gzip", broken},
		{"window too large", "zstd", wide},
		{"three encodings", "gzip, br, zstd", encoded(t, "zstd", encoded(t, "br", gz))},
		{"a thousand encodings", strings.Repeat("gzip,", 1000), gz},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newClient(t, quick())
			_, err := get(t, c, serveEncoded(t, tt.header, tt.body))
			wantKind(t, err, KindBadEncoding)
		})
	}
}

// A broken connection is not blamed on the encoding.
func TestCutConnectionWithinAnEncoding(t *testing.T) {
	gz := encoded(t, "gzip", []byte(strings.Repeat("text ", 1000)))
	s := serve(t,
		answer(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", len(gz)),
			string(gz[:len(gz)/2])))
	_, err := get(t, newClient(t, quick()), s)
	wantKind(t, err, KindIncompleteBody)
}

func TestBombs(t *testing.T) {
	zeros := make([]byte, 16<<20)
	for name, body := range map[string][]byte{
		"gzip": encoded(t, "gzip", zeros), "deflate": encoded(t, "deflate", zeros), "br": encoded(t, "br", zeros),
		"zstd": encoded(t, "zstd", zeros),
	} {
		t.Run(name, func(t *testing.T) {
			s := serveEncoded(t, name, body)
			c := newClient(t, quick())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := get(t, c, s)
			runtime.ReadMemStats(&after)
			if err != nil || !r.Truncated || r.Body.Size() != c.o.MaxBody {
				t.Fatalf("%d bytes, truncated %v, %v", r.Body.Size(), r.Truncated, err)
			}
			mib := (after.TotalAlloc - before.TotalAlloc) >> 20
			assert.True(t, mib <= 24, "%d MiB allocated for a body of 1 MiB", mib)
		})
	}
}

// Streams that decode to nothing for ever are bounded by what arrives.
func TestEndlessEmptyEncodings(t *testing.T) {
	skippable := binary.LittleEndian.AppendUint32(nil, 0x184D2A50)
	skippable = append(binary.LittleEndian.AppendUint32(skippable, 1000), make([]byte, 1000)...)
	stored := "\x00\x00\x00\xff\xff" // an empty block
	for _, tt := range []struct{ name, first, part string }{
		{"gzip", "", string(encoded(t, "gzip", nil))},
		{"zstd", "", string(skippable)},
		{"deflate", "", strings.Repeat(stored, 1000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, forever("HTTP/1.1 200 OK\r\nContent-Encoding: "+tt.name+"\r\n\r\n"+tt.first, tt.part, 0))
			c := newClient(t, quick(func(o *Options) { o.MaxBody = 100_000 }))
			r, err := get(t, c, s)
			assert.True(t, err == nil && r.Truncated && r.Body.Size() == 0, "%+v %v", r, err)
		})
	}
}

func FuzzDecode(f *testing.F) {
	text := []byte(strings.Repeat("some text ", 100))
	for _, name := range []string{"gzip", "deflate", "raw", "br", "zstd"} {
		f.Add(name, encoded(f, name, text))
		f.Add("gzip,"+name, encoded(f, name, encoded(f, "gzip", text)))
	}
	c := newClient(f, quick())
	f.Fuzz(func(t *testing.T, header string, data []byte) {
		list, err := encodings(http.Header{"Content-Encoding": {header}})
		if err != nil {
			return
		}
		for _, cut := range []bool{false, true} {
			body, truncated, err := c.decode(t.Context(), spool.Of(data), list, 10_000, cut, false)
			var encoding *encodingError
			switch {
			case err != nil && !errors.As(err, &encoding):
				t.Errorf("error %v", err)
			case err == nil && (body.Size() > 10_000 || cut && !truncated):
				t.Errorf("%d bytes, cut %v", body.Size(), truncated)
			}
		}
	})
}
