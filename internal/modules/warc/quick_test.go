package warc

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// newTestQuick returns a compressor as a packer has it.
func newTestQuick(t testing.TB) *quickGzip {
	z := must.Get(newGzip(Compression{Format: FormatGzip, Level: 1}, false))(t)
	return z.(*quickGzip)
}

// member compresses a record, given in pieces.
func (q *quickGzip) member(t testing.TB, record []byte) []byte {
	var out bytes.Buffer
	q.begin(&out, int64(len(record)))
	for piece := range slices.Chunk(record, 1000) {
		must.Get(q.Write(piece))(t)
	}
	must.Do(t, q.Close())
	return out.Bytes()
}

// checkMember has the standard library read what a record was compressed to.
func checkMember(t testing.TB, member, record []byte) {
	t.Helper()
	z := must.Get(gzip.NewReader(bytes.NewReader(member)))(t)
	z.Multistream(false)
	got, err := io.ReadAll(z)
	must.True(t, err == nil && bytes.Equal(got, record), "a record of %d bytes comes back with %d bytes and error %v",
		len(record), len(got), err)
}

func TestQuickGzip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n, of int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.IntN(of))
		}
		return b
	}
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	q := newTestQuick(t)
	for name, record := range map[string][]byte{
		"empty": nil, "one byte": {'x'}, "eight bytes": []byte("abcdefgh"), "nine bytes": []byte("abcdabcda"),
		"every byte": append(every, bytes.Repeat([]byte("x"), 8000)...),
		"random":     random(20_000, 256), "text": random(20_000, 40), "two letters": random(quickMax, 2),
		"the longest": random(quickMax, 128), "too long": random(quickMax+1, 128),
		"one letter": bytes.Repeat([]byte("a"), quickMax), "Cyrillic": bytes.Repeat([]byte("Разное. "), 900),
	} {
		t.Run(name, func(t *testing.T) { checkMember(t, q.member(t, record), record) })
	}
	for n := 1; n < 540; n++ { // matches of each length, near and far
		record := slices.Concat([]byte("....."), random(n, 100), []byte("-----"), random(n%4*2000, 100))
		record = append(record, record[:n+5]...)
		record = record[:min(len(record), quickMax)]
		checkMember(t, q.member(t, record), record)
	}
}

// TestQuickSize: what the code does not suit is compressed as before.
func TestQuickSize(t *testing.T) {
	q := newTestQuick(t)
	random := make([]byte, 20_000)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	n := len(q.member(t, random))
	assert.True(t, n <= len(random)+100, "%d random bytes became %d", len(random), n)
	text := []byte(strings.Repeat("Не всякий текст подходит. ", 100) + fmt.Sprint(rand.Perm(300)))
	var slow bytes.Buffer
	q.gzipCompressor.begin(&slow, int64(len(text)))
	_, _ = q.gzipCompressor.Write(text)
	_ = q.gzipCompressor.Close()
	if n := len(q.member(t, text)); n > slow.Len() {
		t.Errorf("a Cyrillic text became %d bytes, %d with a code of its own", n, slow.Len())
	}
}

func FuzzQuickGzip(f *testing.F) {
	f.Add([]byte("<p>abc abc abc abc abc</p>"), uint16(30))
	f.Fuzz(func(t *testing.T, record []byte, times uint16) {
		record = bytes.Repeat(record, int(times)%64)
		record = record[:min(len(record), 2*quickMax)]
		checkMember(t, newTestQuick(t).member(t, record), record)
	})
}

// TestQuickTable: the code is complete, as DEFLATE demands, and fits into its header. With the path
// of a folder in AMBLE_TRAIN, it prints the lengths of the best code for the HTML files below it of
// up to 32 KiB.
func TestQuickTable(t *testing.T) {
	for _, lengths := range []string{quickLengths[:allSymbols], quickLengths[allSymbols:]} {
		sum := 0
		for _, c := range []byte(lengths) {
			if n := c - 'a' + 1; n < 2 || n > 13 {
				t.Errorf("a code has %d bits", n)
			} else {
				sum += 1 << (13 - n)
			}
		}
		assert.True(t, sum == 1<<13, "the codes fill %d of %d", sum, 1<<13)
	}
	if folder := os.Getenv("AMBLE_TRAIN"); folder != "" {
		symbols, distances := countSymbols(t, folder)
		t.Logf("%s%s", bestLengths(symbols[:]), bestLengths(distances[:]))
	}
}

// countSymbols compresses pages and counts what was written.
func countSymbols(t *testing.T, folder string) (symbols [allSymbols]int, distances [allDistances]int) {
	q := newTestQuick(t)
	var skip [allSymbols]uint8
	for n := range q.code.lengths {
		s, extra := scale(uint32(n), 4)
		if n == maxMatch-minMatch {
			s, extra = allSymbols-1-endOfBlock-1, 0
		}
		skip[endOfBlock+1+s] = extra
	}
	must.Do(t, filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".html") || !e.Type().IsRegular() {
			return err
		}
		page, err := os.ReadFile(path)
		if err != nil || len(page) > quickMax-500 || !isLatin(page) {
			return err
		}
		head := "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: " + NewID() +
			"\r\nWARC-Date: 2026-11-22T12:00:00Z\r\nWARC-Target-URI: https://" + path[1:] +
			"\r\nContent-Type: application/http;msgtype=response\r\nWARC-Payload-Digest: " + digest.Of(page).String() +
			"\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
		q.member(t, append([]byte(head), page...))
		r := bitReader{q.out.bytes, q.start.at*8 + int(q.start.n)}
		for {
			s := r.symbol(q.code.symbols[:])
			if symbols[s]++; s == endOfBlock {
				return nil
			} else if s > endOfBlock {
				r.at += int(skip[s])
				d := r.symbol(q.code.distances[:])
				distances[d]++
				r.at += max(d/2-1, 0)
			}
		}
	}))
	return symbols, distances
}

type bitReader struct {
	bytes []byte
	at    int
}

// symbol reads a symbol of a code.
func (r *bitReader) symbol(codes []bitString) int {
	for s := (bitString{}); s.n < 16; {
		s = s.and(uint32(r.bytes[r.at/8]>>(r.at%8))&1, 1)
		r.at++
		if i := slices.Index(codes, s); i >= 0 {
			return i
		}
	}
	panic("no symbol")
}

// bestLengths returns the lengths of a Huffman code of at most 13 bits in which every symbol has a
// place.
func bestLengths(counts []int) string {
	weights := make([]int, len(counts))
	for i, n := range counts {
		weights[i] = 8*n + 1
	}
	for {
		type node struct {
			weight  int
			symbols []int
		}
		var nodes []node
		lengths := make([]byte, len(counts))
		for i, w := range weights {
			nodes = append(nodes, node{w, []int{i}})
		}
		for len(nodes) > 1 {
			slices.SortStableFunc(nodes, func(a, b node) int { return cmp.Compare(a.weight, b.weight) })
			both := node{nodes[0].weight + nodes[1].weight, slices.Concat(nodes[0].symbols, nodes[1].symbols)}
			for _, s := range both.symbols {
				lengths[s]++
			}
			nodes = append(nodes[2:], both)
		}
		if slices.Max(lengths) <= 13 {
			for i := range lengths {
				lengths[i] += 'a' - 1
			}
			return string(lengths)
		}
		for i := range weights {
			weights[i] = weights[i]/2 + 1
		}
	}
}
