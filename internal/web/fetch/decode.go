package fetch

import (
	"bufio"
	"compress/flate"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/amble-crawler/amble/internal/web/spool"
)

const (
	// acceptEncoding names the encodings that decode can undo.
	acceptEncoding = "gzip, deflate, br, zstd"
	// maxEncodings bounds the number of nested encodings.
	maxEncodings = 2
)

// encodingError is a body that cannot be decoded.
type encodingError struct{ err error }

func (e *encodingError) Error() string { return e.err.Error() }
func (e *encodingError) Unwrap() error { return e.err }

// encodings lists the content encodings of a response in the order in which they were applied (RFC
// 9110, section 8.4), without those that change nothing.
func encodings(h http.Header) ([]string, error) {
	var list []string
	for _, line := range h["Content-Encoding"] {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			switch name {
			case "", "identity", "none":
				continue
			case "x-gzip":
				name = "gzip"
			}
			if len(list) == maxEncodings {
				return nil, &encodingError{fmt.Errorf("more than %d content encodings", maxEncodings)}
			}
			list = append(list, name)
		}
	}
	return list, nil
}

// decode undoes the encodings of a body, for at most limit bytes of the result; cut reports that
// there is more. cutBefore says that the body itself is cut: then its early end is no error. With
// cutAtBounds neither is a bound of the effort, if something was decoded before it. The body is
// complete, so a decoder waits for nothing but the processor, and frees its memory soon.
func (c *Client) decode(ctx context.Context, body *spool.Content, list []string, limit int64,
	cutBefore, cutAtBounds bool) (_ *spool.Content, cut bool, err error) {
	if len(list) == 0 || body.Size() == 0 { // no body, so nothing was encoded
		return body, cutBefore, nil
	}
	defer body.Close()
	head := body.Head(zstd.HeaderMaxSize)
	decoded, cut, err := c.decodeIn(ctx, body, head, list, limit)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		// A later frame has a larger window than the first one.
		_ = decoded.Close()
		decoded, cut, err = c.decodeIn(ctx, body, nil, list, limit)
	}
	if cutAtBounds && errors.Is(err, errNoWork) && decoded.Size() > 0 {
		return decoded, true, nil
	}
	if err != nil && !(cutBefore && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF))) {
		return nil, false, errors.Join(err, decoded.Close())
	}
	return decoded, cut || cutBefore, nil
}

// decodeIn is decode with the memory that a stream with this head needs, or, if head is nil, any
// stream. With an error it returns the content that was decoded before it.
func (c *Client) decodeIn(ctx context.Context, body *spool.Content, head []byte, list []string,
	limit int64) (_ *spool.Content, cut bool, err error) {
	room, last := int64(0), len(list)-1
	for i, name := range list {
		if i != last {
			room += roomFor(name, nil)
		} else {
			room += roomFor(name, head)
		}
	}
	var b *bench
	select {
	case b = <-c.benches:
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	defer func() { c.benches <- b }()
	release, err := c.o.Spool.Reserve(ctx, room)
	if err != nil {
		return nil, false, err
	}
	defer release()
	runtime.LockOSThread() // see effort
	defer runtime.UnlockOSThread()

	window := uint64(zstdWindow)
	if head != nil && list[last] == "zstd" {
		window = windowOf(head)
	}
	into := c.o.Spool.NewWriter(min(4*body.Size(), 256<<10, limit) + 1)
	defer into.Discard()
	r, done, err := undo(body.NewReader(), list, window, &effort{begin: threadTime()}, b)
	if err == nil {
		cut, err = readUpTo(into, r, limit)
		done()
	}
	return into.Content(), cut, err
}

// undo returns a reader of the decoded body; the encoding applied last is undone first. window is
// the largest window that an outermost zstd stream may have. work may be nil. done releases the
// decoders.
func undo(r io.Reader, list []string, window uint64, work *effort, b *bench) (_ io.Reader, done func(), err error) {
	var closers []func()
	done = func() {
		for _, c := range closers {
			c()
		}
	}
	for i, name := range slices.Backward(list) {
		s := &stage{name: name, work: work, from: r, inner: i > 0}
		br := bufio.NewReaderSize(fed{s}, fedBytes)
		if _, err := br.Peek(1); err == io.EOF {
			return br, done, nil
		}
		if slices.Contains(list[i+1:], name) { // that decoder is in use
			b = new(bench)
		}
		var release func()
		if s.to, release, err = b.decoder(br, name, window); err != nil {
			done()
			return nil, nil, &encodingError{fmt.Errorf("content encoding %q: %w", name, err)}
		}
		closers = append(closers, release)
		r, window = s, zstdWindow
	}
	return r, done, nil
}

// bench decodes bodies, one at a time. It keeps the decoder of the most frequent encoding, which is
// small.
type bench struct{ gzip gzip.Reader }

// newBenches returns one bench for each core: more at once would not be faster.
func newBenches() chan *bench {
	n := runtime.GOMAXPROCS(0)
	benches := make(chan *bench, n)
	for range n {
		benches <- &bench{}
	}
	return benches
}

// decoder returns a reader that undoes one encoding.
func (b *bench) decoder(br *bufio.Reader, name string, window uint64) (io.Reader, func(), error) {
	nothing := func() {}
	switch name {
	case "gzip":
		if err := b.gzip.Reset(br); err != nil {
			return nil, nil, err
		}
		b.gzip.Multistream(false)
		return &gzipMembers{z: &b.gzip, br: br}, nothing, nil
	case "deflate":
		z, err := inflater(br)
		return z, nothing, err
	case "br":
		return brotli.NewReader(br), nothing, nil
	case "zstd":
		z, err := zstd.NewReader(br, zstd.WithDecoderMaxWindow(window),
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
func inflater(br *bufio.Reader) (io.Reader, error) {
	head, err := br.Peek(2)
	if err == nil && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(br)
	}
	return flate.NewReader(br), nil
}

// gzipMembers reads the members of a gzip stream one after another and ignores what follows the
// last, as browsers do: some servers pad.
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
		if err := g.z.Reset(g.br); errors.Is(err, errNoWork) {
			return 0, err
		} else if err != nil {
			return 0, io.EOF
		}
		g.z.Multistream(false)
	}
}

// readUpTo reads r to its end, but at most limit bytes.
func readUpTo(into *spool.Writer, r io.Reader, limit int64) (cut bool, err error) {
	if _, err := into.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
		return false, errors.Join(err, into.Truncate(limit))
	}
	return into.Size() > limit, into.Truncate(limit)
}
