package warcfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestSeekLine compares the search in sorted lines with a linear search.
func TestSeekLine(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOf(rapid.StringMatching(`[a-c]{0,4}`)).Draw(rt, "lines")
		slices.Sort(lines)
		var file bytes.Buffer
		for _, l := range lines {
			fmt.Fprintln(&file, l)
		}
		text := rapid.StringMatching(`[a-c]{0,5}`).Draw(rt, "text")
		want := int64(0)
		for _, l := range lines {
			if l+"\n" >= text { // a line counts with its end
				break
			}
			want += int64(len(l)) + 1
		}
		got, err := seekLine(bytes.NewReader(file.Bytes()), int64(file.Len()), []byte(text))
		if err != nil || got != want {
			rt.Fatalf("%q in %q: at %d, want %d: %v", text, lines, got, want, err)
		}
	})
}

// TestCapturesByPrefix: a prefix finds exactly the URLs that begin with it, whatever their keys
// have in common.
func TestCapturesByPrefix(t *testing.T) { eachCompression(t, testCapturesByPrefix) }

func testCapturesByPrefix(t *testing.T, records archive.Compression) {
	o := allOptions(t)
	o.Records = records
	o.Formats = []string{Name}
	w, e := mustOpen(t, o, nil), newEncoder(t, o)
	urls := []string{
		"http://a.test/", "http://a.test/x", "http://a.test/x/1", "http://a.test/x?q=1", "http://a.test/xy",
		"http://www.a.test/x",
		"https://a.test/x", "http://a.test.evil.test/x", "http://a.test:8080/x", "http://ab.test/", "http://a.test/X",
	}
	for i, u := range urls {
		mustWrite(t, w, mustEncode(t, e, &archive.Visit{Exchange: exchangeOf(u, "body", i)}))
	}
	for _, closed := range []bool{false, true} {
		if closed {
			finish(t, w)
		}
		for prefix, want := range map[string][]string{
			"http://a.test/x":  {"http://a.test/x", "http://a.test/x/1", "http://a.test/x?q=1", "http://a.test/xy"},
			"http://a.test/x/": {"http://a.test/x/1"},
			"http://a.test/x?": {"http://a.test/x?q=1"},
			"a.test/x": {"http://a.test/x", "http://a.test/x/1", "http://a.test/x?q=1", "http://a.test/xy",
				"https://a.test/x"},
			"https://":          {"https://a.test/x"},
			"http://www.a.test": {"http://www.a.test/x"},
			"http://nobody/":    nil,
		} {
			var got []string
			c, err := OpenCollection(o.Dir, known())
			must.Do(t, err)
			err = c.Captures(context.Background(), prefix,
				func(e *warc.Entry) error { got = append(got, e.URL); return nil })
			if slices.Sort(got); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q: %v", prefix, got, want, err)
			}
		}
	}
}

// TestHostileIndex: a foreign index causes an error; it cannot fill the memory or make other files
// readable.
func TestHostileIndex(t *testing.T) {
	dir := t.TempDir()
	const base = "amble-20261120121415-000001-h"
	write := func(name, text string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write(base+".warc.gz", "")
	c := must.Get(OpenCollection(dir, known()))(t)
	write(base+".cdxj", "com,example)/ "+strings.Repeat("x", 2*maxLine)+"\n")
	each := func(*warc.Entry) error { return nil }
	err := c.Captures(context.Background(), "", each)
	assert.True(t, errors.Is(err, warc.ErrEntry), "a long line: %v", err)
	write(base+".cdxj", "nonsense\n")
	if err := c.Captures(context.Background(), "", each); !errors.Is(err, warc.ErrEntry) {
		t.Errorf("nonsense: %v", err)
	}
	if s, err := c.Open(context.Background(), warc.Entry{URL: "http://a.test/", Filename: "../secret.warc.gz",
		Length: 10}); err == nil {
		s.Close()
		t.Error("a file of another directory was opened")
	}
}

// TestVerifyFinds damages an archive in several ways, one at a time.
func TestVerifyFinds(t *testing.T) {
	o := allOptions(t)
	o.MaxFileBytes, o.Compress = 1<<20, archive.CompressNone
	w, e := mustOpen(t, o, nil), newEncoder(t, o)
	for n := range 5 {
		mustWrite(t, w, mustEncode(t, e, visitOf(n)))
	}
	finish(t, w)
	verify(t, o.Dir)
	for _, test := range []struct {
		pattern string
		harm    func([]byte) []byte
		want    string
	}{
		{"*.warc.gz", func(b []byte) []byte { return b[:len(b)-7] }, "the file ends within a record"},
		{"*.warc.gz", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, "record at"},
		{"*.warc.gz", func(b []byte) []byte { return append(b, b...) }, "only warcinfo"},
		{"*.warc.gz", repacked("xxx", "yyy"), "its WARC-Payload-Digest is"},
		{"*.warc.gz", repacked("depth: ", "DEPTH: "), "its WARC-Block-Digest is"},
		{"*.warc.gz", repacked("WARC-Payload-Digest: ", "WARC-Missing-Digest: "), "it has no WARC-Payload-Digest"},
		{"*.warc.gz", repacked("Content-Type: application/http;msgtype=response\r\n",
			"Content-Type: application/http;msgtype=response\r\n"+
				"WARC-Block-Digest: "+digest.Of(nil).String()+"\r\n"), "its WARC-Block-Digest is"},
		{"*.cdxj", func(b []byte) []byte { return b[bytes.IndexByte(b, '\n')+1:] }, "the index has no line for it"},
		{"*.cdxj", func(b []byte) []byte { return append(b, b...) }, "the index has it twice"},
		{"*.cdxj", func(b []byte) []byte { return bytes.Replace(b, []byte("text/html"), []byte("text/css"), 1) },
			"the index says"},
		{"*.cdxj", func(b []byte) []byte { return reversed(b) }, "is not behind the one before it"},
		{"pages-*", func(b []byte) []byte { return b[:len(b)-1] }, "has no end"},
		{"links-*", func(b []byte) []byte { return append(b, "nonsense\n"...) }, "is no JSON object"},
	} {
		paths, err := filepath.Glob(filepath.Join(o.Dir, test.pattern))
		must.True(t, err == nil && len(paths) == 1, "%s: %q, %v", test.pattern, paths, err)
		before := must.Get(os.ReadFile(paths[0]))(t)
		must.Do(t, os.WriteFile(paths[0], test.harm(bytes.Clone(before)), 0o644))
		c, _ := OpenCollection(o.Dir, known())
		var problems []string
		must.Get(c.Verify(context.Background(),
			func(p Problem) { problems = append(problems, p.String()) }))(t)
		assert.True(t, strings.Contains(strings.Join(problems, "\n"), test.want), "%s: found %q, want %q",
			test.pattern, problems, test.want)
		must.Do(t, os.WriteFile(paths[0], before, 0o644))
	}
}

// TestVerifyFindsInZstd damages a file of Zstandard frames.
func TestVerifyFindsInZstd(t *testing.T) {
	o := allOptions(t)
	o.Formats, o.MaxFileBytes, o.Records = []string{Name}, 1<<20, compressions(t)["zstd dictionary"]
	w, e := mustOpen(t, o, nil), newEncoder(t, o)
	for n := range 5 {
		mustWrite(t, w, mustEncode(t, e, visitOf(n)))
	}
	finish(t, w)
	verify(t, o.Dir)
	path := filepath.Join(o.Dir, "amble-20261120121415-000001-localhost.warc.zst")
	whole := must.Get(os.ReadFile(path))(t)
	start := len(warc.Compression(o.Records).Start())
	for name, test := range map[string]struct {
		harm func([]byte) []byte
		want string
	}{
		"torn":          {func(b []byte) []byte { return b[:len(b)-7] }, "the file ends within a record"},
		"flipped":       {func(b []byte) []byte { b[(len(b)+start)/2] ^= 1; return b }, "record at"},
		"twice":         {func(b []byte) []byte { return append(b, b[start:]...) }, "only warcinfo"},
		"no dictionary": {func(b []byte) []byte { return b[start:] }, "record at"},
		"gzip":          {func([]byte) []byte { return []byte("\x1f\x8b") }, "the file ends within a record"},
	} {
		must.Do(t, os.WriteFile(path, test.harm(bytes.Clone(whole)), 0o644))
		c, _ := OpenCollection(o.Dir, known())
		var problems []string
		must.Get(c.Verify(context.Background(),
			func(p Problem) { problems = append(problems, p.String()) }))(t)
		assert.True(t, strings.Contains(strings.Join(problems, "\n"), test.want), "%s: found %q, want %q", name,
			problems, test.want)
	}
}

// repacked replaces a text in each record and recomputes the gzip checksums.
func repacked(from, to string) func([]byte) []byte {
	return func(b []byte) []byte {
		var out bytes.Buffer
		rest := bytes.NewReader(b)
		for rest.Len() > 0 {
			in, err := gzip.NewReader(rest)
			if err != nil {
				panic(err)
			}
			in.Multistream(false)
			record, err := io.ReadAll(in)
			if err != nil {
				panic(err)
			}
			z := gzip.NewWriter(&out)
			z.Write(bytes.ReplaceAll(record, []byte(from), []byte(to))) // into memory
			z.Close()
		}
		return out.Bytes()
	}
}

// reversed returns the lines in the opposite order.
func reversed(b []byte) []byte {
	lines := slices.Collect(bytes.Lines(b))
	slices.Reverse(lines)
	return bytes.Join(lines, nil)
}

func FuzzParseJournal(f *testing.F) {
	f.Add([]byte("0 17\n"))
	f.Add(
		appendJournal(nil, 17, 20, "a.warc.gz", (&warc.Entry{Key: "test,a)/", URL: "http://a.test/"}).AppendStart(nil)))
	f.Fuzz(func(t *testing.T, line []byte) {
		j, ok := parseJournal(line)
		if !ok {
			return
		}
		if len(j.entry) > 0 {
			_, err := warc.ParseEntry(j.entry)
			must.True(t, err == nil, "%q has the entry %q: %v", line, j.entry, err)
		}
	})
}
