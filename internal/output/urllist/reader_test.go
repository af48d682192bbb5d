package urllist

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// entry is the expected result of a line: a URL, or an error.
type entry struct {
	url      string
	depth    uint16
	priority int8
	line     int
	reason   string // part of it; empty: the line is good
}

// readAll reads a list to its end.
func readAll(t *testing.T, r io.Reader) (all []entry, end error) {
	t.Helper()
	list, err := NewReader(r)
	if err != nil {
		return nil, err
	}
	defer list.Close()
	for {
		item, err := list.Next()
		var bad *BadLine
		switch {
		case errors.As(err, &bad):
			all = append(all, entry{line: bad.Line, reason: bad.Reason})
		case err == io.EOF:
			return all, nil
		case err != nil:
			return all, err
		default:
			all = append(all, entry{url: item.URL.String(), depth: item.Depth, priority: item.Priority,
				line: item.Line})
		}
	}
}

func compare(t *testing.T, got, want []entry) {
	t.Helper()
	must.True(t, len(got) == len(want), "%d entries, want %d: %+v", len(got), len(want), got)
	for i, w := range want {
		g := got[i]
		reason := strings.Contains(g.reason, w.reason) && (g.reason == "") == (w.reason == "")
		assert.True(t, g.url == w.url && g.depth == w.depth && g.priority == w.priority && g.line == w.line && reason,
			"entry %d is %+v, want %+v", i, g, w)
	}
}

const sample = "\ufeffhttp://A.test/x#top\r\n" +
	"\n" +
	"# a comment\n" +
	"  https://b.test/ # after white space\n" +
	"ftp://c.test/\n" +
	"http://d.test/a b\n" +
	"{\"url\":\"http://e.test/\",\"depth\":7,\"priority\":-3,\"state\":\"fetched\"}\n" +
	"{\"url\":\"http://e.test/\",\"depth\":70000}\n" +
	"{\"depth\":1}\n" +
	"{\"url\":\n" +
	"{\"url\":\"http://e.test/\",\"priority\":200}\n" +
	"{\"url\":5}\n" +
	"http://g.test/\xff\n" +
	"http://h.test/last"

var sampleEntries = []entry{
	{url: "http://a.test/x", line: 1},
	{url: "https://b.test/", line: 4},
	{line: 5, reason: "ftp"},
	{line: 6, reason: "other white space"},
	{url: "http://e.test/", depth: 7, priority: -3, line: 7},
	{line: 8, reason: "0 to 65535"},
	{line: 9, reason: `no "url"`},
	{line: 10, reason: "not a JSON object"},
	{line: 11, reason: "-128 to 127"},
	{line: 12, reason: "a text"},
	{line: 13, reason: "UTF-8"},
	{url: "http://h.test/last", line: 14},
}

func TestTextAndObjects(t *testing.T) {
	got := must.Get(readAll(t, strings.NewReader(sample)))(t)
	compare(t, got, sampleEntries)
}

func packGzip(t testing.TB, text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	must.Get(io.WriteString(w, text))(t)
	must.Do(t, w.Close())
	return b.Bytes()
}

func packZstd(t testing.TB, text string) []byte {
	var b bytes.Buffer
	w := must.Get(zstd.NewWriter(&b))(t)
	must.Get(io.WriteString(w, text))(t)
	must.Do(t, w.Close())
	return b.Bytes()
}

func TestPackedLists(t *testing.T) {
	for name, body := range map[string][]byte{
		"gzip": packGzip(t, sample), "zstd": packZstd(t, sample),
		"two gzip members": append(packGzip(t, sample[:40]), packGzip(t, sample[40:])...),
	} {
		got, err := readAll(t, bytes.NewReader(body))
		assert.NoError(t, err, name)
		compare(t, got, sampleEntries)
	}
}

// A truncated list must not look like a complete one.
func TestDamagedPackedLists(t *testing.T) {
	long := strings.Repeat("http://a.test/\n", 1000)
	for name, body := range map[string][]byte{"gzip": packGzip(t, long), "zstd": packZstd(t, long)} {
		assert.Fails(readAll(t, bytes.NewReader(body[:len(body)-6])))(t, nil, name,
			"a list that breaks off has no error")
	}
	assert.Fails(readAll(t, bytes.NewReader([]byte{0x1f, 0x8b, 0, 0})))(t, nil,
		"a text that begins like gzip and is not gzip has no error")
}

// endless is one very long line.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	for i := range p[:n] {
		p[i] = 'a'
	}
	e.left -= n
	return n, nil
}

func TestLongLinesAreBoundedAndPassedOver(t *testing.T) {
	const length = 40 << 20
	list := must.Get(NewReader(io.MultiReader(&endless{length}, strings.NewReader("\nhttp://a.test/\n"))))(t)
	var bad *BadLine
	_, err := list.Next()
	assert.True(t, errors.As(err, &bad) && bad.Line == 1 && len(bad.Text) <= shownText &&
		strings.Contains(bad.Reason, "too long"), "%v", err)
	if item, err := list.Next(); err != nil || item.Line != 2 {
		t.Errorf("%+v, %v", item, err)
	}
	if _, err := list.Next(); err != io.EOF || list.Lines() != 2 {
		t.Errorf("%v after %d lines", err, list.Lines())
	}
	exact := "http://a.test/" + strings.Repeat("a", MaxLine-14)
	if got, err := readAll(t, strings.NewReader(exact+"\n"+exact+"a\n")); err != nil || len(got) != 2 ||
		strings.Contains(got[0].reason, "line is too long") || !strings.Contains(got[1].reason, "line is too long") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestErrorsOfTheStreamAreFinal(t *testing.T) {
	broken := errors.New("broken")
	_, err := readAll(t, io.MultiReader(strings.NewReader("http://a.test/\n"), errReader{broken}))
	assert.Is(t, err, broken, "the error")
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

func FuzzReader(f *testing.F) {
	f.Add([]byte(sample))
	f.Add(packGzip(f, sample))
	f.Add(packZstd(f, sample))
	f.Add([]byte("{\"url\":\"http://a.test/\\u0000\"}\n{{{"))
	f.Fuzz(func(t *testing.T, body []byte) {
		list, err := NewReader(bytes.NewReader(body))
		if err != nil {
			return
		}
		defer list.Close()
		last := 0
		for range 100_000 {
			item, err := list.Next()
			var bad *BadLine
			line := item.Line
			switch {
			case errors.As(err, &bad):
				line = bad.Line
			case err != nil:
				return
			case item.URL.IsZero():
				t.Fatal("neither a URL nor an error")
			}
			must.True(t, line > last, "line %d after line %d", line, last)
			last = line
		}
	})
}
