package warcfiles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// allOptions returns options with every format and small files.
func allOptions(t testing.TB) archive.Options {
	o := options(t)
	o.Formats, o.MaxFileBytes, o.Compress = archive.Names(known()), 3000, archive.CompressZstd
	o.Crawler = archive.Crawler{Software: "amble/test", UserAgent: "amble-test", Robots: "obey"}
	return o
}

// compressions are the ways to compress WARC records, by name.
func compressions(t testing.TB) map[string]archive.Compression {
	t.Helper()
	dictionary := must.Get(os.ReadFile("../testdata/dictionary"))(t)
	return map[string]archive.Compression{
		"gzip":            {Format: warc.FormatGzip, Level: 1},
		"zstd":            {Format: warc.FormatZstd, Level: 2},
		"zstd dictionary": {Format: warc.FormatZstd, Level: 1, Dictionary: dictionary},
	}
}

func eachCompression(t *testing.T, f func(t *testing.T, c archive.Compression)) {
	for name, c := range compressions(t) {
		t.Run(name, func(t *testing.T) { f(t, c) })
	}
}

var startOfTime = time.Date(2026, 11, 20, 12, 14, 15, 0, time.UTC)

// exchangeOf returns an exchange with a body, at a number of seconds.
func exchangeOf(url, body string, seconds int) *archive.Exchange {
	request := "GET / HTTP/1.1\r\nHost: h.test\r\n\r\n"
	response := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body)
	return &archive.Exchange{
		URL: url, At: startOfTime.Add(time.Duration(seconds) * time.Second), Address: netip.MustParseAddr("127.0.0.1"),
		Request: spool.Of([]byte(request)), Response: spool.Of([]byte(response)),
		Facts: archive.Facts{{Name: "depth", Value: "1"}},
	}
}

func newEncoder(t testing.TB, o archive.Options) *archive.Encoder {
	t.Helper()
	return must.Get(archive.NewEncoder(o, nil))(t)
}

func mustEncode(t testing.TB, e *archive.Encoder, v *archive.Visit) *archive.Item {
	t.Helper()
	return must.Get(e.Encode(v))(t)
}

// visitOf returns a visit of a page whose URL and content depend on its number.
func visitOf(n int) *archive.Visit {
	url := fmt.Sprintf("http://h.test/%d", n)
	return &archive.Visit{
		Page:     &archive.Page{URL: url, Status: 200, FetchedAt: startOfTime},
		Exchange: exchangeOf(url, strings.Repeat("x", n), n),
		Links:    []archive.Link{{To: "http://h.test/a", Text: "A", Rel: "next"}, {To: "http://h.test/b"}},
		Text:     &archive.Text{Title: "T", Text: "some text"},
	}
}

func mustWrite(t testing.TB, w *archive.Writer, items ...*archive.Item) []archive.Mark {
	t.Helper()
	for _, i := range items {
		must.Do(t, w.Append(i, startOfTime))
	}
	return mustSync(t, w)
}

// verify checks that a directory has no defect.
func verify(t testing.TB, dir string) Verified {
	t.Helper()
	c := must.Get(OpenCollection(dir, known()))(t)
	return must.Get(c.Verify(context.Background(), func(p Problem) { t.Errorf("%s", p) }))(t)
}

// captures returns the URLs of all captures, in their order in each file.
func captures(t testing.TB, dir string) (urls []string) {
	t.Helper()
	c := must.Get(OpenCollection(dir, known()))(t)
	must.Do(t, c.Captures(context.Background(), "", func(e *warc.Entry) error {
		urls = append(urls, e.URL)
		return nil
	}))
	return urls
}

func get(t testing.TB, dir, url string, at time.Time) (head, body string) {
	t.Helper()
	c := must.Get(OpenCollection(dir, known()))(t)
	e, err := c.Find(context.Background(), url, at)
	must.Do(t, err, url)
	s := must.Get(c.Open(context.Background(), e))(t)
	defer s.Close()
	b := must.Get(io.ReadAll(s.Body))(t)
	return string(s.Head), string(b)
}

// TestConcurrentFormats writes all formats, which are synced at the same time.
func TestConcurrentFormats(t *testing.T) { eachCompression(t, testFormats) }

func testFormats(t *testing.T, records archive.Compression) {
	for _, compression := range []string{archive.CompressNone, archive.CompressGzip, archive.CompressZstd} {
		t.Run(compression, func(t *testing.T) {
			o := allOptions(t)
			o.Records = records
			o.Compress = compression
			w, e := mustOpen(t, o, nil), newEncoder(t, o)
			for n := range 20 {
				mustWrite(t, w, mustEncode(t, e, visitOf(n)))
				if n == 10 {
					v := verify(t, o.Dir)
					assert.True(t, v.Captures == 11 && v.Lines == 11*4, "while it is written: %+v", v)
				}
			}
			check := func() {
				t.Helper()
				v := verify(t, o.Dir)
				assert.True(t, v.Captures == 20 && v.Lines == 80 && v.Records == 60+v.Files-3-linesFiles(t, o.Dir),
					"verified %+v", v)
				for n := range 20 {
					if _, body := get(t, o.Dir, fmt.Sprintf("http://h.test/%d", n),
						time.Time{}); body != strings.Repeat("x", n) {
						t.Errorf("page %d is %q", n, body)
					}
				}
			}
			check()
			finish(t, w)
			check()
			for _, name := range names(t, o.Dir) {
				assert.True(t, !strings.Contains(name, ".open") && !strings.HasSuffix(name, ".new"), "%s is left",
					name)
			}
		})
	}
}

// linesFiles returns how many files of lines there are beyond one of each form.
func linesFiles(t testing.TB, dir string) int {
	t.Helper()
	n := -3
	for _, name := range names(t, dir) {
		if strings.Contains(name, ".jsonl") {
			n++
		}
	}
	return n
}

// TestRevisits: a response that equals a stored one is stored as a reference to it, and so is a
// 304.
func TestRevisits(t *testing.T) { eachCompression(t, testRevisits) }

func testRevisits(t *testing.T, records archive.Compression) {
	o := allOptions(t)
	o.Records = records
	w, e := mustOpen(t, o, nil), newEncoder(t, o)
	body := strings.Repeat("the same ", 500)
	first := exchangeOf("http://h.test/a", body, 1)
	item := mustEncode(t, e, &archive.Visit{Exchange: first})
	must.True(t, item.Stored, "the first response is not reported as stored")
	original := &archive.Original{URL: first.URL, At: first.At, Payload: item.Payload}
	full := item.Size()
	second := exchangeOf("http://h.test/b", body, 20)
	second.Original = original
	repeated := mustEncode(t, e, &archive.Visit{Exchange: second})
	assert.True(t, !repeated.Stored && repeated.Payload == item.Payload, "the second response: stored %t, payload %s",
		repeated.Stored, repeated.Payload)
	if repeated.Size() > full+400 {
		t.Errorf("the first takes %d bytes, the second %d", full, repeated.Size())
	}
	unchanged := exchangeOf("http://h.test/a", "", 30)
	unchanged.Response = spool.Of([]byte("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n"))
	unchanged.Original = original
	other := exchangeOf("http://h.test/c", body+"!", 40)
	other.Original = original
	mustWrite(t, w, item, repeated, mustEncode(t, e, &archive.Visit{Exchange: unchanged}),
		mustEncode(t, e, &archive.Visit{Exchange: other}))
	for _, closed := range []bool{false, true} {
		if closed {
			finish(t, w)
		}
		verify(t, o.Dir)
		head, got := get(t, o.Dir, "http://h.test/a", time.Time{})
		assert.True(t, got == body && strings.HasPrefix(head, "HTTP/1.1 304"),
			"the page that did not change: %q, %d bytes", head, len(got))
		if head, got := get(t, o.Dir, "http://h.test/a", startOfTime.Add(29*time.Second)); got != body ||
			!strings.HasPrefix(head, "HTTP/1.1 200") {
			t.Errorf("the page before: %q, %d bytes", head, len(got))
		}
		if _, got := get(t, o.Dir, "http://h.test/b", time.Time{}); got != body {
			t.Errorf("the repeated page has %d bytes", len(got))
		}
		if _, got := get(t, o.Dir, "http://h.test/c", time.Time{}); got != body+"!" {
			t.Errorf("the page that differs has %d bytes", len(got))
		}
	}
	c, _ := OpenCollection(o.Dir, known())
	_, err := c.Find(context.Background(), "http://h.test/a", startOfTime)
	assert.True(t, err != nil, "a capture was found before the first")
}

// inChunks returns a response whose body is in chunks of a size.
func inChunks(url, body string, size, seconds int) *archive.Exchange {
	var b strings.Builder
	b.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\ntransfer-ENCODING: chunked\r\n")
	b.WriteString("Trailer: X-Sum\r\nX-Last: 1\r\n\r\n")
	for rest := body; len(rest) > 0; {
		n := min(size, len(rest))
		fmt.Fprintf(&b, "%x;ext=1\r\n%s\r\n", n, rest[:n])
		rest = rest[n:]
	}
	b.WriteString("0\r\nX-Sum: 1\r\n\r\n")
	x := exchangeOf(url, "", seconds)
	x.Response, x.Chunked = spool.Of([]byte(b.String())), true
	return x
}

// TestChunks: a body is stored without its chunks, so equal bodies are equal however they came.
func TestChunks(t *testing.T) {
	o := allOptions(t)
	pool, err := spool.Open(spool.Options{Dir: filepath.Join(t.TempDir(), "spool"), Above: 4 << 10, Budget: 64 << 10})
	must.Do(t, err)
	e, err := archive.NewEncoder(o, pool)
	must.Do(t, err)
	for _, size := range []int{3000, 100_000} { // in memory, and in a file
		w := mustOpen(t, o, nil)
		body := string(incompressible(size))
		first := mustEncode(t, e, &archive.Visit{Exchange: inChunks("http://h.test/1", body, 1000, 1)})
		assert.True(t, first.Payload == digest.Of([]byte(body)) && first.Stored, "payload %s, stored %t",
			first.Payload, first.Stored)
		original := &archive.Original{URL: "http://h.test/1", At: startOfTime.Add(time.Second), Payload: first.Payload}
		others := []*archive.Exchange{inChunks("http://h.test/2", body, 1001, 2),
			inChunks("http://h.test/3", body, size, 3),
			exchangeOf("http://h.test/4", body, 4)}
		items := []*archive.Item{first}
		for _, x := range others {
			x.Original = original
			item := mustEncode(t, e, &archive.Visit{Exchange: x})
			if item.Stored || item.Payload != first.Payload {
				t.Errorf("%s is stored as a whole", x.URL)
			}
			items = append(items, item)
		}
		mustWrite(t, w, items...)
		finish(t, w)
		verify(t, o.Dir)
		for i := 1; i <= 4; i++ {
			head, got := get(t, o.Dir, fmt.Sprintf("http://h.test/%d", i), time.Time{})
			assert.True(t, got == body, "the body of %d has %d bytes", i, len(got))
			want := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"+
				"X-Archive-Orig-transfer-ENCODING: chunked\r\n"+
				"X-Archive-Orig-Trailer: X-Sum\r\nX-Last: 1\r\nContent-Length: %d\r\n\r\n", size)
			assert.True(t, i >= 4 || head == want, "the header of %d is %q, want %q", i, head, want)
		}
		for _, item := range items {
			must.Do(t, item.Close())
		}
		if pool.Held() != 0 || pool.Files() != 0 {
			t.Errorf("%d bytes and %d files are left", pool.Held(), pool.Files())
		}
		o.Dir += "x"
	}
}

// TestBrokenOff: an incomplete response is stored with the reason, and its header announces only
// the stored body.
func TestBrokenOff(t *testing.T) {
	o := allOptions(t)
	w, e := mustOpen(t, o, nil), newEncoder(t, o)
	body := string(incompressible(2000))
	plain := exchangeOf("http://h.test/plain", body, 1)
	plain.Response = spool.Of(bytes.Replace(mustBytes(t, plain.Response), []byte("2000"), []byte("9000"), 1))
	chunked := inChunks("http://h.test/chunked", body+body, 1500, 2)
	// the second chunk has 400 bytes
	head, _, _ := bytes.Cut(mustBytes(t, chunked.Response), []byte("5dc;ext=1\r\n"))
	chunked.Response = spool.Of(mustBytes(t, chunked.Response)[:len(head)+2*len("5dc;ext=1\r\n")+1500+len("\r\n")+400])
	broken := inChunks("http://h.test/malformed", body, 1500, 3)
	broken.Response = spool.Of(bytes.Replace(mustBytes(t, broken.Response), []byte("1f4;"), []byte("zz;;"), 1))
	none := exchangeOf("http://h.test/none", "", 4)
	none.Response = spool.Of([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	var items []*archive.Item
	for x, why := range map[*archive.Exchange]archive.Truncation{
		plain: archive.Disconnected, chunked: archive.TookTooLong,
		broken: archive.Unspecified,
		none:   archive.Disconnected} {
		x.Truncated = why
		item := mustEncode(t, e, &archive.Visit{Exchange: x})
		if item.Stored {
			t.Errorf("%s is said to be stored as a whole", x.URL)
		}
		items = append(items, item)
	}
	mustWrite(t, w, items...)
	finish(t, w)
	verify(t, o.Dir)
	for url, want := range map[string]string{plain.URL: body, chunked.URL: body[:1900], broken.URL: body[:1500],
		none.URL: ""} {
		head, got := get(t, o.Dir, url, time.Time{})
		if got != want || !strings.HasSuffix(head, fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n", len(want))) ||
			strings.Count(head, "\nContent-Length") != 1 {
			t.Errorf("%s has %d bytes, want %d; header %q", url, len(got), len(want), head)
		}
	}
}

func mustBytes(t *testing.T, c *spool.Content) []byte {
	t.Helper()
	b, ok := c.Bytes()
	must.True(t, ok, "not in memory")
	return b
}

// TestTruncated: a cut response is marked as cut, and is never an original.
func TestTruncated(t *testing.T) {
	o := allOptions(t)
	w, e := mustOpen(t, o, nil), newEncoder(t, o)
	x := exchangeOf("http://h.test/long", strings.Repeat("x", 5000), 0)
	x.Truncated = archive.TooLong
	item := mustEncode(t, e, &archive.Visit{Exchange: x})
	assert.True(t, !item.Stored, "a part is said to be stored as a whole")
	mustWrite(t, w, item)
	c := must.Get(OpenCollection(o.Dir, known()))(t)
	entry := must.Get(c.Find(context.Background(), x.URL, time.Time{}))(t)
	s := must.Get(c.Open(context.Background(), entry))(t)
	defer s.Close()
	assert.True(t, s.Truncated == archive.TooLong, "the record does not say that it was cut")
}

// TestSpooled: an exchange that is too long for memory is spooled to disk, with the same result.
func TestSpooled(t *testing.T) { eachCompression(t, testSpooled) }

func testSpooled(t *testing.T, records archive.Compression) {
	o := allOptions(t)
	o.Records = records
	pool, err := spool.Open(spool.Options{Dir: filepath.Join(t.TempDir(), "spool"), Above: 4 << 10, Budget: 64 << 10})
	must.Do(t, err)
	e, err := archive.NewEncoder(o, pool)
	must.Do(t, err)
	body := incompressible(200 << 10)
	x := exchangeOf("http://h.test/long", "", 0)
	in := pool.NewWriter(0)
	fmt.Fprintf(in, "HTTP/1.1 200 OK\r\n\r\n%s", body)
	x.Response = in.Content()
	defer x.Response.Close()
	w := mustOpen(t, o, nil)
	item := mustEncode(t, e, &archive.Visit{Exchange: x})
	if pool.Files() != 2 || pool.Held() > 64<<10 {
		t.Errorf("%d files, %d bytes in memory", pool.Files(), pool.Held())
	}
	marks := mustWrite(t, w, item)
	mustWrite(t, w, item)
	if err := w.Rollback(marks); err != nil { // a batch is written again after a failure
		t.Fatal(err)
	}
	if err := item.Close(); err != nil || pool.Files() != 1 {
		t.Errorf("after Close: %d files, %v", pool.Files(), err)
	}
	verify(t, o.Dir)
	_, got := get(t, o.Dir, x.URL, time.Time{})
	assert.True(t, got == string(body), "%d bytes came back", len(got))
}

// incompressible returns bytes that do not compress.
func incompressible(n int) []byte {
	b := make([]byte, 0, n)
	for i := 0; len(b) < n; i++ {
		d := digest.Of(fmt.Append(nil, i))
		b = append(b, d[:]...)
	}
	return b[:n]
}

// TestIndexIsMadeAgain: the index does not depend on its journal, which is not synced.
func TestIndexIsMadeAgain(t *testing.T) { eachCompression(t, testIndexIsMadeAgain) }

func testIndexIsMadeAgain(t *testing.T, records archive.Compression) {
	for name, harm := range map[string]func(journal string) error{
		"missing":  os.Remove,
		"torn":     func(journal string) error { return os.Truncate(journal, 700) },
		"hollow":   func(journal string) error { return hollow(journal, 300) },
		"outdated": func(journal string) error { return os.WriteFile(journal, []byte("0 17\n"), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			o := allOptions(t)
			o.Records = records
			o.MaxFileBytes = 1 << 20
			w, e := mustOpen(t, o, nil), newEncoder(t, o)
			var marks []archive.Mark
			for n := range 10 {
				marks = mustWrite(t, w, mustEncode(t, e, visitOf(n)))
			}
			w.Close()
			journals, err := filepath.Glob(filepath.Join(o.Dir, "*"+journalExtension))
			must.True(t, err == nil && len(journals) == 1, "journals %v: %v", journals, err)
			must.Do(t, harm(journals[0]))
			w = mustOpen(t, o, marks)
			mustWrite(t, w, mustEncode(t, e, visitOf(10)))
			finish(t, w)
			v := verify(t, o.Dir)
			assert.True(t, v.Captures == 11, "verified %+v", v)
			got := captures(t, o.Dir)
			assert.True(t, len(got) == 11 && slices.IsSorted(got), "the index has %q", got)
		})
	}
}

// hollow fills a file with zeros from an offset on, as a power cut can.
func hollow(path string, from int) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b[:from:from], bytes.Repeat([]byte{0}, len(b)-from)...), 0o644)
}

func TestFilesRotateByAge(t *testing.T) { eachCompression(t, testFilesRotateByAge) }

func testFilesRotateByAge(t *testing.T, records archive.Compression) {
	o := allOptions(t)
	o.Records = records
	o.Formats, o.MaxFileBytes, o.MaxFileAge = []string{Name, archive.FormatJSONL}, 1<<20, time.Hour
	w, e := mustOpen(t, o, nil), newEncoder(t, o)
	now := startOfTime
	for n := range 4 {
		must.Do(t, w.Append(mustEncode(t, e, visitOf(n)), now))
		mustSync(t, w)
		now = now.Add(31 * time.Minute)
	}
	finish(t, w)
	wantNames(t, o.Dir, "amble-20261120121415-000001-localhost.cdxj", "amble-20261120121415-000001-localhost"+
		warc.Compression(records).Extension(),
		"amble-20261120131615-000002-localhost.cdxj",
		"amble-20261120131615-000002-localhost"+warc.Compression(records).Extension(),
		"pages-000001.jsonl.zst", "pages-000002.jsonl.zst")
	verify(t, o.Dir)
}

// TestFilesExpire: a file that is old enough is completed even if no record comes, and the next
// record begins another file.
func TestFilesExpire(t *testing.T) { eachCompression(t, testFilesExpire) }

func testFilesExpire(t *testing.T, records archive.Compression) {
	o := allOptions(t)
	o.Records = records
	o.Formats, o.MaxFileBytes, o.MaxFileAge = []string{Name, archive.FormatJSONL}, 1<<20, time.Hour
	w, e := mustOpen(t, o, nil), newEncoder(t, o)
	add := func(n int, at time.Time) []archive.Mark {
		must.Do(t, w.Append(mustEncode(t, e, visitOf(n)), at))
		return mustSync(t, w)
	}
	var marks []archive.Mark
	expire := func(at time.Time) {
		t.Helper()
		moved, err := w.Expire(at)
		if moved != nil {
			marks = moved
		}
		must.Do(t, errors.Join(err, w.Committed()))
	}
	expire(startOfTime.Add(100 * time.Hour)) // there is no file
	marks = add(0, startOfTime)
	expire(startOfTime.Add(59 * time.Minute))
	wantNames(t, o.Dir, "amble-20261120121415-000001-localhost.cdxj.open",
		"amble-20261120121415-000001-localhost"+warc.Compression(records).Extension()+".open",
		"pages-000001.jsonl.zst.open")
	expire(startOfTime.Add(time.Hour))
	complete := []string{"amble-20261120121415-000001-localhost.cdxj", "amble-20261120121415-000001-localhost" +
		warc.Compression(records).Extension() + "",
		"pages-000001.jsonl.zst"}
	wantNames(t, o.Dir, complete...)
	add(1, startOfTime.Add(2*time.Hour))
	if err := w.Rollback(marks); err != nil { // the commit of the next fails
		t.Fatal(err)
	}
	wantNames(t, o.Dir, complete...)
	verify(t, o.Dir)
	marks = add(1, startOfTime.Add(3*time.Hour))
	w.Close()

	w = mustOpen(t, o, marks)
	expire(startOfTime.Add(100 * time.Hour))
	expire(startOfTime.Add(101 * time.Hour))
	verify(t, o.Dir)
	complete = append(complete, "amble-20261120151415-000002-localhost.cdxj",
		"amble-20261120151415-000002-localhost"+warc.Compression(records).Extension()+"", "pages-000002.jsonl.zst")
	slices.Sort(complete)
	wantNames(t, o.Dir, complete...)
}

// TestChangedCompression: after the compression has changed, an unfinished file is completed, and
// the next file has the new compression.
func TestChangedCompression(t *testing.T) {
	o := options(t)
	w := mustOpen(t, o, nil)
	mustAppend(t, w, "{}")
	marks := mustSync(t, w)
	mustAppend(t, w, `{"uncommitted":1}`)
	mustSync(t, w)
	w.Close()
	o.Compress = archive.CompressGzip
	w = mustOpen(t, o, marks)
	wantNames(t, o.Dir, "pages-000001.jsonl.open")
	want := []archive.Mark{archive.FileMark{File: "pages-000001.jsonl", Length: 3, Complete: true}.Mark()}
	if !slices.Equal(w.Marks(), want) {
		t.Errorf("marks are %v, want %v", w.Marks(), want)
	}
	must.Do(t, w.Committed())
	wantNames(t, o.Dir, "pages-000001.jsonl")
	mustAppend(t, w, "{}")
	mustSync(t, w)
	wantNames(t, o.Dir, "pages-000001.jsonl", "pages-000002.jsonl.gz.open")
	v := verify(t, o.Dir)
	assert.True(t, v.Lines == 2, "verified %+v", v)
}

// TestChangedRecords: after the compression of WARC records or its dictionary has changed, an
// unfinished file is completed as it is, and the next file has the new compression. If nothing has
// changed, the file goes on.
func TestChangedRecords(t *testing.T) {
	all := compressions(t)
	for name, first := range all {
		for other, second := range all {
			t.Run(name+" to "+other, func(t *testing.T) {
				o := allOptions(t)
				o.Formats, o.MaxFileBytes, o.Records = []string{Name}, 1<<20, first
				w, e := mustOpen(t, o, nil), newEncoder(t, o)
				marks := mustWrite(t, w, mustEncode(t, e, visitOf(0)))
				mustWrite(t, w, mustEncode(t, e, visitOf(1))) // and it is not committed
				w.Close()
				o.Records = second
				w, e = mustOpen(t, o, marks), newEncoder(t, o)
				must.Do(t, w.Committed())
				mustWrite(t, w, mustEncode(t, e, visitOf(1)))
				const base = "amble-20261120121415-00000"
				if name == other {
					wantNames(t, o.Dir, base+"1-localhost.cdxj.open",
						base+"1-localhost"+warc.Compression(first).Extension()+".open")
				} else {
					wantNames(t, o.Dir, base+"1-localhost.cdxj", base+"1-localhost"+warc.Compression(first).Extension(),
						base+"2-localhost.cdxj.open", base+"2-localhost"+warc.Compression(second).Extension()+".open")
				}
				finish(t, w)
				v := verify(t, o.Dir)
				assert.True(t, v.Captures == 2, "verified %+v", v)
				for n := range 2 {
					if _, body := get(t, o.Dir, fmt.Sprintf("http://h.test/%d", n),
						time.Time{}); body != strings.Repeat("x", n) {
						t.Errorf("page %d is %q", n, body)
					}
				}
			})
		}
	}
}

// TestDamagedDictionary: a file whose dictionary was damaged after it was written does not keep a
// crawl from going on: it is completed as it is.
func TestDamagedDictionary(t *testing.T) {
	o := allOptions(t)
	o.Formats, o.MaxFileBytes, o.Records = []string{Name}, 1<<20, compressions(t)["zstd dictionary"]
	w, e := mustOpen(t, o, nil), newEncoder(t, o)
	marks := mustWrite(t, w, mustEncode(t, e, visitOf(0)))
	w.Close()
	var mark archive.FileMark
	must.Do(t, json.Unmarshal([]byte(marks[0]), &mark))
	path := filepath.Join(o.Dir, mark.File+archive.SuffixOpen)
	content := must.Get(os.ReadFile(path))(t)
	content[7] = 0xff // of the length of the dictionary
	must.Do(t, os.WriteFile(path, content, 0o640))
	w = mustOpen(t, o, marks)
	mustWrite(t, w, mustEncode(t, e, visitOf(1)))
	finish(t, w)
	got := captures(t, o.Dir)
	assert.True(t, len(got) == 2, "captures are %q", got)
}

// TestDictionaryHelps: with a dictionary the records of a page take less than half of what they take
// without compression of short ones.
func TestDictionaryHelps(t *testing.T) {
	size := make(map[string]int64)
	for name, c := range compressions(t) {
		o := allOptions(t)
		o.Records = c
		size[name] = mustEncode(t, newEncoder(t, o), &archive.Visit{Exchange: benchExchange(500)}).Size()
	}
	assert.True(t, size["zstd dictionary"]*2 <= size["gzip"] && size["zstd"] <= size["gzip"], "a page takes %v bytes",
		size)
}
