package fetch

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/zoo"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// Bodies that cost much to decode and carry nothing fail long before their end. The test counts how
// much of them a decoder reads.
func TestHollowBodies(t *testing.T) {
	c := newClient(t, quick(func(o *Options) { o.MaxBody = 64 << 20 }))
	for _, body := range zoo.Hollow() {
		t.Run(body.Name, func(t *testing.T) {
			list := must.Get(encodings(map[string][]string{"Content-Encoding": {body.Coding}}))(t)
			decoded, _, err := c.decode(t.Context(), spool.Of([]byte(body.Body)), list, c.o.MaxBody, false, false)
			switch {
			case body.Name == "wide-br" && err != nil && strings.Contains(err.Error(), "unexpected EOF"):
			case strings.HasPrefix(body.Name, "wide-zstd") && err == nil && decoded.Size() == 1:
			case strings.Contains(body.Name, "tables") && threadTime() == 0:
				t.Skip("the processor time of a thread is not available on this system")
			case err == nil || !strings.Contains(err.Error(), errNoWork.Error()):
				t.Errorf("%v, want %v", err, errNoWork)
			}
		})
	}
}

// TestCutAtBounds: what was decoded before a bound of the effort is kept for who wants it. A body that
// is broken, or brought nothing before, fails.
func TestCutAtBounds(t *testing.T) {
	c := newClient(t, quick(func(o *Options) { o.MaxBody = 64 << 20 }))
	gz, empty := encoded(t, "gzip", []byte("Disallow: /a\n")), encoded(t, "gzip", nil)
	hollow := bytes.Repeat(empty, 100_000)
	for _, tt := range []struct {
		name string
		body []byte
		want string // empty: it fails
	}{
		{"a bomb behind content", append(bytes.Clone(gz), hollow...), "Disallow: /a\n"},
		{"a bomb", hollow, ""},
		{"cut", gz[:len(gz)-4], ""},
	} {
		body, cut, err := c.decode(t.Context(), spool.Of(tt.body), []string{"gzip"}, c.o.MaxBody, false, true)
		if got, _ := body.Bytes(); string(got) != tt.want || (err == nil) != (tt.want != "") || err == nil && !cut {
			t.Errorf("%s: %q, cut %v, %v", tt.name, got, cut, err)
		}
	}
}

// What servers send that flush often, or compress what does not compress, is decoded whole.
func TestCompressedWithinReason(t *testing.T) {
	c := newClient(t, quick(func(o *Options) { o.MaxBody = 8 << 20 }))
	noise := make([]byte, 400_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise)
	for _, name := range []string{"gzip", "deflate", "br", "zstd"} {
		inner := encoded(t, name, noise)
		for _, outer := range []string{"gzip", "deflate", "br", "zstd"} {
			packed, header := inner, name
			if outer != name {
				packed, header = encoded(t, outer, packed), name+", "+outer
			}
			list := must.Get(encodings(map[string][]string{"Content-Encoding": {header}}))(t)
			body, cut, err := c.decode(t.Context(), spool.Of(packed), list, c.o.MaxBody, false, false)
			if b, _ := body.Bytes(); err != nil || cut || !bytes.Equal(b, noise) {
				t.Errorf("%s: %d bytes, %v", header, body.Size(), err)
			}
		}
	}
	flushed := flushedGzip(t, strings.Repeat("0123456789\n", 20_000), 11)
	if body, _, err := c.decode(t.Context(), spool.Of(flushed), []string{"gzip"}, c.o.MaxBody, false,
		false); err != nil ||
		body.Size() != 220_000 {
		t.Errorf("flushed each line: %d bytes, %v", body.Size(), err)
	}
}

// The first bytes of a stream say how large its window is.
func TestWindows(t *testing.T) {
	for bits := uint(10); bits <= 24; bits++ {
		packed := brotliOf(t, int(bits), []byte("hello, hello, hello"))
		assert.Equal(t, windowBits(packed[0]), bits, "brotli bits")
	}
	for name, want := range map[string]uint64{
		"\x28\xb5\x2f\xfd\x00\x68\x09\x00\x00x":                     8 << 20,
		"\x28\xb5\x2f\xfd\x00\x58\x09\x00\x00x":                     2 << 20,
		"\x28\xb5\x2f\xfd\x00\x00\x09\x00\x00x":                     1 << 10,
		"\x28\xb5\x2f\xfd\x00\xf8\x09\x00\x00x":                     zstdWindow,
		"\x28\xb5\x2f\xfd\xa0\x00\x00\x10\x00\x09\x00\x00x":         1 << 20, // one segment
		"\x28\xb5\x2f\xfd\xa0\x00\x00\x10\x7f\x09\x00\x00x":         zstdWindow,
		"\x50\x2a\x4d\x18\x00\x00\x00\x00\x28\xb5\x2f\xfd\x00\x00x": zstdWindow, // may be anything
		"<html>": zstdWindow,
		"":       zstdWindow,
	} {
		assert.Equal(t, windowOf([]byte(name)), want, "zstd", name)
	}
}

// However many decoders there are, and however large the windows that servers announce, the memory
// of decoders stays within the budget, or exceeds it by one decoder. Slow servers hold none of it.
func TestDecodersAreInTheBudget(t *testing.T) {
	const budget = 32 << 20
	pool := newSpool(t, 1<<20, budget)
	c := newClient(t, quick(func(o *Options) { o.Spool = pool }))
	var most int64
	var bodies []zoo.Coded
	for _, b := range zoo.Hollow() {
		if strings.HasPrefix(b.Name, "wide") {
			bodies = append(bodies, b)
		}
	}
	largest := roomFor("br", nil)
	var all sync.WaitGroup
	for i := range 60 {
		body := bodies[i%len(bodies)]
		all.Go(func() {
			w := pool.NewWriter(0)
			_, _ = w.Write([]byte(body.Body))
			decoded, _, _ := c.decode(t.Context(), w.Content(), []string{body.Coding}, c.o.MaxBody, false, false)
			_ = decoded.Close()
		})
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	for running := true; running; {
		most = max(most, pool.Held())
		select {
		case <-ended:
			running = false
		default:
		}
	}
	assert.True(t, most <= budget+largest && most >= zstdWindow && pool.Held() == 0,
		"%d bytes were held, and %d are left; want %d to %d", most, pool.Held(), zstdWindow, budget+largest)
}

// A decoder holds no more than what was reserved for it.
func TestRoomIsEnough(t *testing.T) {
	page := []byte(strings.Repeat("a page of the web, and another one. ", 200_000))
	bodies := zoo.Hollow()
	for _, name := range []string{"gzip", "deflate", "br", "zstd"} {
		bodies = append(bodies, zoo.Coded{Name: name, Coding: name, Body: string(encoded(t, name, page))})
	}
	for _, b := range bodies {
		list := must.Get(encodings(map[string][]string{"Content-Encoding": {b.Coding}}))(t)
		if strings.HasPrefix(b.Name, "hollow") || strings.HasSuffix(b.Name, "later") {
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, done, err := undo(strings.NewReader(b.Body), list, zstdWindow, nil, &bench{})
		if err == nil {
			buf := make([]byte, 32<<10)
			for n := 0; n < 8<<20; {
				k, err := r.Read(buf)
				if n += k; err != nil {
					break
				}
			}
			done()
		}
		runtime.ReadMemStats(&after)
		head := []byte(b.Body[:min(len(b.Body), 18)])
		took, room := int64(after.TotalAlloc-before.TotalAlloc), roomFor(list[0], head)
		assert.True(t, took <= room+room/2, "%s: %d KiB allocated, and %d reserved", b.Name, took>>10, room>>10)
	}
}
