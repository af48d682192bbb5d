package zoo

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// bombBytes is the decoded size of a bomb in a zoo of full size.
const bombBytes = 24 << 20

// codings are servers with content codings.
func codings(s size) []server {
	bomb := sync.OnceValue(func() string { return pack(gzipTo, zeros(s)) })
	page := pack(gzipTo, strings.NewReader("<p>a page that is long enough to be cut somewhere"))
	member := pack(gzipTo, strings.NewReader(""))
	return []server{
		made("gzip-bomb", func(name string) server { return answers(name, packed("gzip", bomb())) }),
		made("br-bomb", func(name string) server { return answers(name, packed("br", pack(brotliTo, zeros(s)))) }),
		made("zstd-bomb", func(name string) server { return answers(name, packed("zstd", pack(zstdTo, zeros(s)))) }),
		made("gzip-in-gzip-bomb", func(name string) server {
			return answers(name, packed("gzip, gzip", pack(gzipTo, strings.NewReader(bomb()))))
		}),
		answers("zstd-large-window", coded("zstd", "\x28\xb5\x2f\xfd\x00\xa8\x09\x00\x00x")),
		answers("three-codings", coded("gzip, gzip, gzip", page)),
		answers("many-codings", coded(strings.Repeat("gzip, ", 500)+"br", page)),
		answers("unknown-coding", coded("sdch", page)),
		answers("no-gzip", coded("gzip", "<p>not compressed at all")),
		answers("no-zstd", coded("zstd", "<p>not compressed at all")),
		answers("gzip-cut", coded("gzip", page[:len(page)/2])),
		answers("gzip-bad-sum", coded("gzip", page[:len(page)-8]+"\x00\x00\x00\x00\x00\x00\x00\x00")),
		answers("gzip-then-noise", coded("gzip", page+"and some padding")),
		after("gzip-empty-members", func(g *client) {
			g.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n")
			g.forever(0, strings.Repeat(member, 500))
		}),
	}
}

// coded is a page in a content coding, packed any other file.
func coded(coding, body string) string { return sizedIn(coding, "text/html", body) }

func packed(coding, body string) string { return sizedIn(coding, "application/octet-stream", body) }

func sizedIn(coding, contentType, body string) string {
	return sized(contentType+"\r\nContent-Encoding: "+coding, body)
}

func brotliTo(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, 0) }

func zstdTo(w io.Writer) io.WriteCloser {
	z, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)) // the option is valid
	return z
}

func gzipTo(w io.Writer) io.WriteCloser {
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level exists
	return z
}

func zeros(s size) io.Reader { return io.LimitReader(zeroReader{}, int64(s.of(bombBytes))) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// pack compresses all of r. Writing to memory does not fail.
func pack(to func(io.Writer) io.WriteCloser, r io.Reader) string {
	var b bytes.Buffer
	w := to(&b)
	_, _ = io.Copy(w, r)
	_ = w.Close()
	return b.String()
}
