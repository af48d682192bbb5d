package fetch

import (
	"bufio"
	"compress/flate"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// acceptEncoding names what decode can undo.
	acceptEncoding = "gzip, deflate, br, zstd"
	// maxEncodings bounds the encodings laid over one another.
	maxEncodings = 2
	// zstdWindow is the largest window a decoder has to support (RFC 8878,
	// section 3.1.1.1.2; RFC 9659).
	zstdWindow = 8 << 20
)

// encodingError is a body that cannot be decoded.
type encodingError struct{ err error }

func (e *encodingError) Error() string { return e.err.Error() }
func (e *encodingError) Unwrap() error { return e.err }

// encodings lists the content encodings of a response in the order in which
// they were applied (RFC 9110, section 8.4), less those that change nothing.
func encodings(h http.Header) ([]string, error) {
	var list []string
	for _, line := range h["Content-Encoding"] {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			switch name {
			case "", "identity", "none":
				continue
			}
			if len(list) == maxEncodings {
				return nil, &encodingError{fmt.Errorf("more than %d content encodings", maxEncodings)}
			}
			list = append(list, name)
		}
	}
	return list, nil
}

// decode undoes encodings, the last applied first. The returned close releases
// the decoders.
func decode(r io.Reader, list []string) (_ io.Reader, close func(), err error) {
	var closers []func()
	close = func() {
		for _, c := range closers {
			c()
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		br := bufio.NewReader(r)
		if _, err := br.Peek(1); err == io.EOF {
			return br, close, nil // no body, so nothing was encoded
		}
		d, c, err := decoder(br, list[i])
		if err != nil {
			close()
			return nil, nil, &encodingError{fmt.Errorf("content encoding %q: %w", list[i], err)}
		}
		if c != nil {
			closers = append(closers, c)
		}
		r = &decoded{r: d, name: list[i]}
	}
	return r, close, nil
}

// decoder returns a reader that undoes one encoding.
func decoder(br *bufio.Reader, name string) (io.Reader, func(), error) {
	switch name {
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(br)
		if err != nil {
			return nil, nil, err
		}
		z.Multistream(false)
		return &gzipMembers{z: z, br: br}, nil, nil
	case "deflate":
		return inflater(br)
	case "br":
		return brotli.NewReader(br), nil, nil
	case "zstd":
		z, err := zstd.NewReader(br, zstd.WithDecoderMaxWindow(zstdWindow),
			zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return nil, nil, errors.New("unknown")
}

// inflater reads "deflate", which is zlib by RFC 9110, section 8.4.1.2, and
// bare deflate by habit.
func inflater(br *bufio.Reader) (io.Reader, func(), error) {
	head, err := br.Peek(2)
	if err == nil && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		z, err := zlib.NewReader(br)
		return z, nil, err
	}
	return flate.NewReader(br), nil, nil
}

// gzipMembers reads the members of a gzip stream one after another and ignores
// what follows the last, as browsers do: some servers pad.
type gzipMembers struct {
	z  *gzip.Reader
	br *bufio.Reader
}

func (g *gzipMembers) Read(p []byte) (int, error) {
	for {
		n, err := g.z.Read(p)
		if n > 0 || err != io.EOF {
			if err == io.EOF {
				err = nil
			}
			return n, err
		}
		if err := g.z.Reset(g.br); err != nil {
			return 0, io.EOF
		}
		g.z.Multistream(false)
	}
}

// decoded marks the errors of a decoder as such.
type decoded struct {
	r    io.Reader
	name string
}

func (d *decoded) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if err != nil && err != io.EOF {
		err = &encodingError{fmt.Errorf("content encoding %q: %w", d.name, err)}
	}
	return n, err
}
