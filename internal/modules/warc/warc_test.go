package warc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func newPacker(t testing.TB, c Compression) *Packer {
	t.Helper()
	return must.Get(NewPacker(c))(t)
}

// dictionary is one that "zstd --train" made of records.
func dictionary(t testing.TB) []byte {
	t.Helper()
	return must.Get(os.ReadFile("testdata/dictionary"))(t)
}

// compressions are the ways to compress records, by name.
func compressions(t testing.TB) map[string]Compression {
	return map[string]Compression{
		"gzip, fast":      {Format: FormatGzip, Level: 1},
		"gzip, small":     {Format: FormatGzip, Level: 3},
		"zstd, fast":      {Format: FormatZstd, Level: 1},
		"zstd, small":     {Format: FormatZstd, Level: 3},
		"zstd dictionary": {Format: FormatZstd, Level: 1, Dictionary: dictionary(t)},
	}
}

func eachCompression(t *testing.T, f func(t *testing.T, c Compression)) {
	for name, c := range compressions(t) {
		t.Run(name, func(t *testing.T) { f(t, c) })
	}
}

func header(kind string) Header {
	var h Header
	h.Add(FieldType, kind)
	h.Add(FieldRecordID, "<urn:uuid:1>")
	h.Add(FieldDate, "2026-11-20T12:14:15Z")
	return h
}

// file packs a record for each block.
func file(t testing.TB, c Compression, blocks ...string) []byte {
	t.Helper()
	b := bytes.NewBuffer(c.Start())
	p := newPacker(t, c)
	for i, block := range blocks {
		write := func() error { return p.Write(b, header(TypeResponse), []byte(block)) }
		if i%2 == 1 {
			write = func() error {
				return p.WriteFrom(b, header(TypeResponse), strings.NewReader(block), int64(len(block)))
			}
		}
		must.Do(t, write())
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	eachCompression(t, func(t *testing.T, c Compression) {
		blocks := []string{"", "short", strings.Repeat("long ", 5000), noise(300_000),
			strings.Repeat("very long ", 400_000),
			"last\r\n\r\n"}
		data := file(t, c, blocks...)
		for name, source := range map[string]io.Reader{
			"at once": bytes.NewReader(data), "byte by byte": iotest.OneByteReader(bytes.NewReader(data)),
		} {
			t.Run(name, func(t *testing.T) {
				r := NewReader(source)
				for i, want := range blocks {
					rec := must.Get(r.Next())(t)
					if i == 2 { // one that nobody reads
						continue
					}
					got, err := io.ReadAll(rec.Block)
					if err != nil || string(got) != want || rec.Size != int64(len(want)) || rec.Type() != TypeResponse {
						t.Errorf("record %d: %.99q of %d bytes, %v", i, got, rec.Size, err)
					}
				}
				_, err := r.Next()
				assert.True(t, err == io.EOF, "behind the last record: %v", err)
				if r.Offset() != int64(len(data)) {
					t.Errorf("the reader is at %d of %d", r.Offset(), len(data))
				}
			})
		}
	})
}

// noise returns bytes that cannot be compressed.
func noise(n int) string {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return string(b)
}

// TestOffsets: a reader can go to each offset, and each offset is the end of the last record.
func TestOffsets(t *testing.T) {
	eachCompression(t, func(t *testing.T, c Compression) {
		data := file(t, c, "one", strings.Repeat("two", 3000), "three")
		r := NewReader(bytes.NewReader(data))
		end := int64(0)
		for {
			rec, err := r.Next()
			if err == io.EOF {
				break
			}
			must.Do(t, err)
			assert.True(t, rec.Offset == end, "a record at %d behind one that ends at %d", rec.Offset, end)
			want, err := io.ReadAll(rec.Block)
			if err == nil {
				err = r.Skip()
			}
			must.Do(t, err)
			end = r.Offset()
			for name, source := range map[string]io.Reader{
				"seeks": io.NewSectionReader(bytes.NewReader(data), 0, end), "reads": bytes.NewBuffer(data[:end]),
			} {
				other := NewReader(source)
				must.Do(t, other.Goto(rec.Offset))
				again, err := other.Next()
				must.Do(t, err, name)
				if got, err := io.ReadAll(again.Block); err != nil || !bytes.Equal(got, want) ||
					again.Offset != rec.Offset {
					t.Errorf("%s to %d: %.20q at %d, %v", name, rec.Offset, got, again.Offset, err)
				}
				if _, err := other.Next(); err != io.EOF {
					t.Errorf("%s to %d: behind it: %v", name, rec.Offset, err)
				}
			}
		}
	})
}

var gzipLevel3 = Compression{Format: FormatGzip, Level: 3}

// gzipped returns a gzip member with any content.
func gzipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(text))
	z.Close()
	return b.Bytes()
}

// readAll reads a file to its end, or to its first defect.
func readAll(data []byte) (records int, err error) {
	r := NewReader(bytes.NewReader(data))
	for {
		if _, err = r.Next(); err != nil {
			return records, err
		}
		records++
	}
}

func TestDamage(t *testing.T) {
	whole := file(t, gzipLevel3, strings.Repeat("whole ", 500), "second")
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/3] ^= 0x40
	record := "WARC/1.1\r\nContent-Length: 2\r\n\r\nab\r\n\r\n"
	for name, test := range map[string]struct {
		data []byte
		want error
	}{
		"torn in the checksum":     {whole[:len(whole)-3], ErrTorn},
		"torn in a header of gzip": {append(bytes.Clone(whole), 0x1f, 0x8b), ErrTorn},
		"flipped":                  {flipped, ErrFormat},
		"no gzip":                  {[]byte(record), ErrFormat},
		"another version":          {gzipped(strings.Replace(record, "1.1", "2.0", 1)), ErrFormat},
		"no length":                {gzipped("WARC/1.1\r\nA: b\r\n\r\n\r\n\r\n"), ErrFormat},
		"negative length":          {gzipped(strings.Replace(record, "2", "-2", 1)), ErrFormat},
		"length beyond the end":    {gzipped(strings.Replace(record, ": 2", ": 200", 1)), ErrFormat},
		"length too short":         {gzipped(strings.Replace(record, ": 2", ": 1", 1)), ErrFormat},
		"two records in a member":  {gzipped(record + record), ErrFormat},
		"no field":                 {gzipped("WARC/1.1\r\nnonsense\r\n\r\n"), ErrFormat},
		"endless header":           {gzipped("WARC/1.1\r\n" + strings.Repeat("A: b\r\n", 100_000)), ErrFormat},
		"endless line":             {gzipped("WARC/1.1\r\nA: " + strings.Repeat("b", maxHeader)), ErrFormat},
		"many fields": {gzipped("WARC/1.1\r\n" + strings.Repeat("A:b\r\n", maxFields+1) + "\r\n"),
			ErrFormat},
	} {
		n, err := readAll(test.data)
		assert.True(t, errors.Is(err, test.want), "%s: %d records, then %v", name, n, err)
	}
}

// TestTornAnywhere: wherever a file ends, all whole records before that can be read, and a torn end
// is distinguished from damage.
func TestTornAnywhere(t *testing.T) {
	eachCompression(t, func(t *testing.T, c Compression) {
		data := file(t, c, "first", strings.Repeat("second", 400))
		first := len(file(t, c, "first"))
		for n := range data {
			records, err := readAll(data[:n])
			switch {
			case n == 0 || n == first:
				assert.True(t, err == io.EOF, "%d bytes: %v", n, err)
			case n == len(c.Start()): // a dictionary and nothing else
				assert.True(t, err == io.EOF && records <= 0, "%d bytes: %d records, then %v", n, records, err)
			case !errors.Is(err, ErrTorn):
				t.Errorf("%d bytes: %d records, then %v", n, records, err)
			}
			assert.True(t, n < first || records >= 1, "%d bytes: the first record was not read", n)
		}
	})
}

// TestLinesOfOthers: the records of other tools can be read: folded values, lines that end in LF,
// any letter case of names.
func TestLinesOfOthers(t *testing.T) {
	rec := must.Get(NewReader(
		bytes.NewReader(gzipped("WARC/1.0\nwarc-type: response\nX: a\n  b\nCONTENT-LENGTH:2\n\nab\r\n\r\n"))).Next())(t)
	assert.True(t, rec.Type() == TypeResponse && rec.Header.Get("x") == "a b" && rec.Size == 2, "header %q",
		rec.Header)
}

func TestHeaderKeepsToItsLines(t *testing.T) {
	b := AppendFields(nil, []Field{{"via", "http://a.test/\r\nevil: 1\x00"}})
	want := "via: http://a.test/  evil: 1 \r\n"
	assert.True(t, string(b) == want, "%q", b)
}

func TestIDsDiffer(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		id := NewID()
		must.True(t, len(id) == len("<urn:uuid:00000000-0000-4000-8000-000000000000>") && id[24] == '4' &&
			strings.Contains("89ab", id[29:30]) && !seen[id], "%q", id)
		seen[id] = true
	}
}

func TestWriteFromHoldsTheLength(t *testing.T) {
	if err := newPacker(t, gzipLevel3).WriteFrom(io.Discard, nil, strings.NewReader("abc"), 4); !errors.Is(err,
		ErrLength) {
		t.Errorf("got %v", err)
	}
}

func TestHTTP(t *testing.T) {
	head := "HTTP/1.1 301 Moved\r\nLocation:  /x \r\nlocation: /y\r\n\r\n"
	n, ok := HTTPHead([]byte(head + "body\r\n\r\n"))
	assert.True(t, n == len(head) && ok, "the header has %d bytes: %t", n, ok)
	if _, ok := HTTPHead([]byte("HTTP/1.1 200 OK\r\nA: b\r\n")); ok {
		t.Error("a header without an end is whole")
	}
	if Status([]byte(head)) != 301 || HTTPField([]byte(head), "LOCATION") != "/x" ||
		HTTPField([]byte(head), "nothing") != "" {
		t.Errorf("status %d, location %q", Status([]byte(head)), HTTPField([]byte(head), "LOCATION"))
	}
	for _, bad := range []string{"", "HTTP/1.1", "HTTP/1.1 x", "HTTP/1.1 99", "HTTP/1.1 abc d"} {
		assert.Equal(t, Status([]byte(bad)), 0, bad, "status")
	}
}

var someEntry = Entry{
	Key: "com,example)/a?b=c", Time: time.Date(2026, 11, 20, 12, 14, 15, 0, time.UTC), URL: "https://example.com/a?b=c",
	Mime: "text/html", Status: 200, Digest: "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
	Offset: 1024, Length: 512, Filename: "a.warc.gz",
}

func TestStoredHead(t *testing.T) {
	for head, want := range map[string]string{
		"HTTP/1.1 200 OK\r\n\r\n": "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
		"HTTP/1.1 200 OK\r\ncontent-length : 99\r\nX-Content-Length: 1\r\n\r\n": "HTTP/1.1 200 OK\r\n" +
			"X-Archive-Orig-content-length : 99\r\nX-Content-Length: 1\r\nContent-Length: 7\r\n\r\n",
		"HTTP/1.1 200 OK\nTransfer-Encoding:\n chunked\nA: b\n\n": "HTTP/1.1 200 OK\n" +
			"X-Archive-Orig-Transfer-Encoding:\n chunked\nA: b\nContent-Length: 7\r\n\n",
		"": "",
	} {
		assert.Equal(t, string(AppendStoredHead([]byte("x"), []byte(head), 7)), "x"+want, head, "became", want)
	}
}

func TestEntry(t *testing.T) {
	const want = `com,example)/a?b=c 20261120121415 {"url":"https://example.com/a?b=c","mime":"text/html","status":"200",` +
		`"digest":"sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824","length":"512","offset":"1024","filename":"a.warc.gz"}` + "\n"
	line := someEntry.Append(nil)
	assert.True(t, string(line) == want, "got  %s\nwant %s", line, want)
	strange := someEntry
	strange.Mime, strange.Status, strange.URL = "te\"xt\\\x01ü", 0, "http://a.test/<&>"
	for _, e := range []Entry{someEntry, strange, {Key: "-", Time: someEntry.Time}} {
		back, err := ParseEntry(e.Append(nil))
		assert.True(t, err == nil && back == e, "got %+v, want %+v: %v", back, e, err)
	}
	for _, bad := range []string{"", "a", "a b", "a 20261120121415", "a 2026 {}", "a 20261120121415 nonsense",
		" 20261120121415 {}",
		`a 20261120121415 {"length":"x","offset":"1"}`, `a 20261120121415 {"length":"1","offset":"-1"}`,
		`a 20261120121415 {"length":"1","offset":"1","status":"x"}`} {
		_, err := ParseEntry([]byte(bad))
		assert.True(t, errors.Is(err, ErrEntry), "%q: %v", bad, err)
	}
}

func TestEntryOf(t *testing.T) {
	h := header(TypeResponse)
	h.Add(FieldTargetURI, "http://www.example.com/A/")
	head := []byte("HTTP/1.1 404 Not Found\r\nContent-Type: text/HTML; charset=x\r\n\r\n")
	e, ok := EntryOf(h, head)
	if want := (Entry{Key: "com,example)/a", Time: someEntry.Time, URL: "http://www.example.com/A/", Mime: "text/HTML",
		Status: 404}); e != want || !ok {
		t.Errorf("got %+v", e)
	}
	h[0].Value = TypeRevisit
	e, ok = EntryOf(h, head)
	assert.True(t, ok && e.Mime == MimeRevisit, "a revisit: %+v", e)
	for _, kind := range []string{TypeInfo, TypeRequest, TypeMetadata} {
		h[0].Value = kind
		_, ok := EntryOf(h, head)
		assert.True(t, !ok, "a %s record has an entry", kind)
	}
}

// TestKey compares the keys with those of the Python package surt 0.3.1.
func TestKey(t *testing.T) {
	for url, want := range map[string]string{
		"http://www.archive.org/":                                          "org,archive)/",
		"https://example.com":                                              "com,example)/",
		"http://www2.example.com/A/B/":                                     "com,example)/a/b",
		"http://wwwx.example.com/":                                         "com,example,wwwx)/",
		"http://example.com:80/":                                           "com,example)/",
		"https://example.com:443/":                                         "com,example)/",
		"http://example.com:8080/":                                         "com,example:8080)/",
		"https://example.com:80/":                                          "com,example:80)/",
		"http://127.0.0.1:8377/x":                                          "1,0,0,127:8377)/x",
		"http://example.com/?b=2&a=1":                                      "com,example)/?a=1&b=2",
		"http://example.com/?":                                             "com,example)/",
		"http://example.com/x?a&a=&a=b":                                    "com,example)/x?a&a=&a=b",
		"http://example.com//a//b/../c/./d":                                "com,example)/a/c/d",
		"http://example.com/%7Efoo/%41":                                    "com,example)/~foo/a",
		"http://example.com/%25%32%35":                                     "com,example)/%25",
		"http://example.com/%20a%23b":                                      "com,example)/%20a%23b",
		"http://example.com/%C3%BC":                                        "com,example)/%c3%bc",
		"http://example.com/x?jsessionid=" + strings.Repeat("0", 32):       "com,example)/x",
		"http://example.com/x?a=1&sid=" + strings.Repeat("a", 32) + "&b=2": "com,example)/x?a=1&b=2",
		"http://[::1]:8080/a":                                              "::1:8080)/a",
		"http://example.com/..%2f":                                         "com,example)/..",
		"http://example.com/a?x=%zz":                                       "com,example)/a?x=%25zz",
		"http://example.com/a?q=a+b%20c&Q=1":                               "com,example)/a?q=1&q=a+b%20c",
		"http://example.com/a?&b&&a":                                       "com,example)/a?&&a&b",
		"http://www.com/":                                                  "com)/",
		"http://user:pass@example.com/":                                    "com,example)/",
		"http://example.com/(S(4hqa0555fwsecu455xqckv45))/m.aspx":          "com,example)/m.aspx",
	} {
		assert.Equal(t, Key(url), want, url)
	}
}

func FuzzReader(f *testing.F) {
	for _, c := range compressions(f) {
		f.Add(file(f, c, "one", strings.Repeat("two ", 900)))
	}
	f.Add(zstdFrame(f, strings.Repeat("WARC/1.1\r\nContent-Length: 2\r\n\r\nab\r\n\r\n", 2)))
	f.Add(gzipped("WARC/1.1\r\nContent-Length: 2\r\n\r\nab\r\n\r\n"))
	f.Add(gzipped("WARC/1.1\r\n A\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewReader(bytes.NewReader(data))
		var last int64 = -1
		for range 16 { // records behind them are read the same way
			rec, err := r.Next()
			if err != nil {
				return
			}
			must.True(t, rec.Offset > last && rec.Offset < int64(len(data)), "record at %d behind one at %d",
				rec.Offset, last)
			last = rec.Offset
			n, err := io.Copy(io.Discard, io.LimitReader(rec.Block, 64<<10)) // more would only take time
			if err == nil && n != min(rec.Size, 64<<10) {
				t.Fatalf("%d bytes of %d", n, rec.Size)
			}
			must.True(t, rec.Size <= maxBlock, "a record of %d bytes", rec.Size)
			EntryOf(rec.Header, []byte("HTTP/1.1 200 OK\r\n\r\n"))
		}
	})
}

func FuzzParseEntry(f *testing.F) {
	f.Add(someEntry.Append(nil))
	f.Add([]byte(`a 20261120121415 {"length":"1","offset":"1","status":"-","url":"\u00fc"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := ParseEntry(line)
		if err != nil {
			return
		}
		if back, err := ParseEntry(e.Append(nil)); err != nil || back != e {
			t.Fatalf("%q: %+v comes back as %+v, %v", line, e, back, err)
		}
	})
}

func FuzzKey(f *testing.F) {
	for _, s := range []string{"http://www.example.com/A?b=c", "http://[::1]:80/%25", "http://a/?sid=x", "//",
		"http://a/%%41"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, url string) {
		if key := IndexKey(url); strings.ContainsAny(key, " \n") && !strings.ContainsAny(url, "\n") {
			t.Fatalf("%q has the key %q", url, key)
		}
	})
}

func ExampleKey() {
	fmt.Println(Key("https://www.example.com/Some/Page?b=2&a=1"))
	// Output: com,example)/some/page?a=1&b=2
}
