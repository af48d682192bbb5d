package wacz

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/spool"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// stored writes n pages in many files, every tenth with the body of the one before it, and returns their collection.
// If finish is false, the newest file stays open.
func stored(t *testing.T, compression string, n int, finish bool) (dir string, c *warcfiles.Collection) {
	t.Helper()
	o := archive.DefaultOptions()
	o.Known, o.Dir, o.Formats = []archive.Format{warcfiles.Format()}, t.TempDir(), []string{warcfiles.Name}
	o.MaxFileBytes, o.Records = 12_000, archive.Compression{Format: compression, Level: 1}
	w := must.Get(archive.Open(o, nil))(t)
	defer w.Close()
	e := must.Get(archive.NewEncoder(o, nil))(t)
	commit := func() {
		must.Get(w.Sync())(t)
		must.Do(t, w.Committed())
	}
	var last *archive.Original
	for i := range n {
		body := bodyOf(i)
		x := &archive.Exchange{URL: urlOf(i), At: start.Add(time.Duration(i) * time.Second),
			Request: spool.Of([]byte("GET / HTTP/1.1\r\n\r\n")), Response: spool.Of([]byte(body))}
		_, content, _ := strings.Cut(body, "\r\n\r\n")
		if i%10 == 9 {
			x.Original = last
		} else {
			last = &archive.Original{URL: x.URL, At: x.At, Payload: digest.Of([]byte(content))}
		}
		if i < 2 {
			x.Facts.Add("seed", "true")
		}
		x.Facts.Add("depth", "1")
		if i%10 == 7 { // a frame of the page before
			x.Facts.Add("kind", "requisite")
		}
		item := must.Get(e.Encode(&archive.Visit{Exchange: x}))(t)
		must.Do(t, w.Append(item, x.At))
		if i%20 == 1 {
			commit()
		}
	}
	commit()
	if finish {
		must.Get(w.Finish())(t)
		commit()
	}
	c = must.Get(warcfiles.OpenCollection(o.Dir, o.Known))(t)
	return o.Dir, c
}

func urlOf(i int) string { return fmt.Sprintf("http://h.test/%d", i) }

func bodyOf(i int) string {
	switch {
	case i%10 == 9:
		i--
	case i%10 == 5:
		return "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<title>none</title>"
	case i%10 == 6:
		return "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n<title>none</title>"
	}
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=iso-8859-1\r\n\r\n"+
		"<title>Page %d</title><p>W\xf6rds of %d", i, i)
}

func mustWrite(t *testing.T, c *warcfiles.Collection, o Options) (Report, *zip.Reader) {
	t.Helper()
	r := must.Get(Write(context.Background(), c, o))(t)
	text := must.Get(os.ReadFile(o.Path))(t)
	z := must.Get(zip.NewReader(bytes.NewReader(text), int64(len(text))))(t)
	return r, z
}

func read(t *testing.T, z *zip.Reader, name string) []byte {
	t.Helper()
	f := must.Get(z.Open(name))(t)
	defer f.Close()
	return must.Get(io.ReadAll(f))(t)
}

// TestPackage reads a package as a viewer does: the list of blocks, a block, the record at its offset.
func TestPackage(t *testing.T) {
	for _, compression := range []string{warc.FormatGzip, warc.FormatZstd} {
		const n = 300
		dir, c := stored(t, compression, n, true)
		path := filepath.Join(dir, "all.wacz")
		r, z := mustWrite(t, c, Options{Path: path, Title: "T", Software: "amble test", Now: start})
		assert.True(t, r.Files > 32 && r.Captures == n && r.Pages == n*7/10 && r.Seeds == 2 && r.Open == 0, "%s: %+v",
			compression, r)
		files := must.Get(os.ReadDir(dir))(t)
		for _, f := range files {
			assert.True(t, !strings.Contains(f.Name(), ".wacz."), "%s: %s is left", compression, f.Name())
		}
		checkManifest(t, z)
		checkIndex(t, z, n)
		checkPages(t, z)
	}
}

func checkManifest(t *testing.T, z *zip.Reader) {
	t.Helper()
	var m struct {
		Resources []resource
		Main      string `json:"mainPageUrl"`
	}
	var sum struct{ Hash string }
	text := read(t, z, "datapackage.json")
	must.Do(t, errors.Join(json.Unmarshal(text, &m),
		json.Unmarshal(read(t, z, "datapackage-digest.json"), &sum)))
	assert.True(t, sum.Hash == digest.Of(text).String() && m.Main == urlOf(0), "manifest %s, %q", sum.Hash, m.Main)
	assert.True(t, len(m.Resources) == len(z.File)-2, "%d of %d parts are in the manifest", len(m.Resources),
		len(z.File))
	for _, r := range m.Resources {
		part := read(t, z, r.Path)
		assert.True(t, int64(len(part)) == r.Bytes && digest.Of(part).String() == r.Hash,
			"%s is not as the manifest says", r.Path)
	}
}

func checkIndex(t *testing.T, z *zip.Reader, n int) {
	t.Helper()
	packed := read(t, z, "indexes/index.cdx.gz")
	var lines []string
	for i, line := range slices.Collect(strings.Lines(string(read(t, z, "indexes/index.idx")))) {
		if i == 0 {
			continue // what it is
		}
		key, place, _ := strings.Cut(line, " {")
		var b struct{ Offset, Length int }
		must.Do(t, json.Unmarshal([]byte("{"+place), &b))
		block := must.Get(gzip.NewReader(bytes.NewReader(packed[b.Offset : b.Offset+b.Length])))(t)
		text, err := io.ReadAll(block)
		must.True(t, err == nil && strings.HasPrefix(string(text), key), "block %d does not begin with %q: %v", i,
			key, err)
		lines = append(lines, slices.Collect(strings.Lines(string(text)))...)
	}
	if len(lines) != n || !slices.IsSorted(lines) {
		t.Fatalf("%d lines, sorted: %v", len(lines), slices.IsSorted(lines))
	}
	for _, line := range lines {
		e := must.Get(warc.ParseEntry([]byte(line)))(t)
		file := read(t, z, "archive/"+e.Filename)
		record := warc.NewReader(bytes.NewReader(file[e.Offset : e.Offset+e.Length]))
		rec, err := record.Next()
		must.True(t, err == nil && rec.Header.Get(warc.FieldTargetURI) == e.URL && record.Skip() == nil &&
			record.Offset() == e.Length, "%+v: %v, %v", e, rec, err)
	}
	first, err := warc.NewReader(bytes.NewReader(read(t, z, z.File[0].Name))).Next()
	if err != nil || "archive/"+first.Header.Get(warc.FieldFilename) != z.File[0].Name {
		t.Errorf("%s begins with %+v, %v", z.File[0].Name, first, err)
	}
}

func checkPages(t *testing.T, z *zip.Reader) {
	t.Helper()
	seen := make(map[string]page)
	for name, want := range map[string]int{"pages/pages.jsonl": 2, "pages/extraPages.jsonl": 208} {
		lines := bufio.NewScanner(bytes.NewReader(read(t, z, name)))
		lines.Scan() // what it is
		found := 0
		for ; lines.Scan(); found++ {
			var p page
			must.Do(t, json.Unmarshal(lines.Bytes(), &p))
			seen[p.URL] = p
		}
		assert.True(t, found == want, "%s has %d pages", name, found)
	}
	for _, i := range []int{0, 8, 9, 299} { // 9 and 299 have the body of the page before them, perhaps of another file
		body := i
		if i%10 == 9 {
			body--
		}
		p := seen[urlOf(i)]
		assert.True(t, p.Title == fmt.Sprintf("Page %d", body) && p.Text == fmt.Sprintf("Wörds of %d", body) &&
			p.ID != "" && p.Time == start.Add(time.Duration(i)*time.Second).Format(time.RFC3339), "%+v", p)
	}
}

// until is a context that ends after so many questions whether it has.
type until struct {
	context.Context
	left int
}

func (u *until) Err() error {
	if u.left--; u.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestUnfinished: what does not end leaves nothing that looks whole, and an older package as it is. Later calls go on
// from there, whatever is behind what was on disk, and make what one call would have made.
func TestUnfinished(t *testing.T) {
	for _, compression := range []string{warc.FormatGzip, warc.FormatZstd} {
		dir, c := stored(t, compression, 300, true)
		o := Options{Path: filepath.Join(dir, "whole.wacz"), Software: "amble test", Now: start, every: 20_000}
		want, _ := mustWrite(t, c, o)
		whole := must.Get(os.ReadFile(o.Path))(t)
		o.Path = filepath.Join(dir, "all.wacz")
		must.Do(t, os.WriteFile(o.Path, []byte("older"), 0o640))
		calls, before := 0, 0
		for left := 150; ; calls, left = calls+1, left+50 {
			r, err := Write(&until{t.Context(), left}, c, o)
			if err == nil {
				before = r.Before
				r.Before, r.Path = 0, want.Path
				assert.Equal(t, r, want, "the report")
				break
			}
			must.True(t, errors.Is(err, context.Canceled) && calls < 50, "%v", err)
			text := must.Get(os.ReadFile(o.Path))(t)
			assert.Equal(t, string(text), "older", "the package before")
			for _, name := range []string{"package", "index.cdxj", "pages.jsonl", "taken.jsonl"} { // as kills leave it
				f := must.Get(os.OpenFile(filepath.Join(o.Path+partial, name), os.O_APPEND|os.O_WRONLY, 0))(t)
				must.Get(f.WriteString(`{"file":"torn`))(t)
				must.Do(t, f.Close())
			}
		}
		assert.True(t, calls > 1 && before > want.Files/2, "%d calls did not end, the last one goes on behind %d files",
			calls, before)
		assert.True(t, bytes.Equal(must.Get(os.ReadFile(o.Path))(t), whole), "%s: the package is another one",
			compression)
		_, err := os.Stat(o.Path + partial)
		assert.True(t, os.IsNotExist(err), "what waited is left: %v", err)
	}
}

// TestUnfinishedAndChanged: a WARC file that has changed meanwhile is packed again, and all behind it. What cannot be
// taken up is made again, and two calls at once do not disturb each other.
func TestUnfinishedAndChanged(t *testing.T) {
	dir, c := stored(t, warc.FormatGzip, 300, true)
	o := Options{Path: filepath.Join(dir, "all.wacz"), Software: "amble test", Now: start, every: 1}
	files, _, err := c.Complete()
	must.Do(t, err)
	begin := func() {
		_, err := Write(&until{t.Context(), 200}, c, o)
		must.True(t, errors.Is(err, context.Canceled), "%v", err)
	}
	end := func(what string, most int) {
		r, z := mustWrite(t, c, o)
		assert.True(t, r.Before <= most && r.Files == len(files), "%s: %+v", what, r)
		checkManifest(t, z)
		checkIndex(t, z, 300)
		checkPages(t, z)
	}
	begin()
	must.Do(t, os.Chtimes(filepath.Join(dir, files[2].Name), start, start))
	end("a file has changed", 2)
	begin()
	o.Software = "amble later"
	end("another version", 0)
	begin()
	must.Do(t, os.Truncate(filepath.Join(o.Path+partial, "package"), 100))
	end("the package is shorter", 0)
	begin()
	taken := filepath.Join(o.Path+partial, "taken.jsonl")
	text := must.Get(os.ReadFile(taken))(t)
	must.Do(t, os.WriteFile(taken, bytes.ReplaceAll(text, []byte(`"Extra":"`), []byte(`"Extra":"AAAA`)), 0o640))
	end("parts have other headers", 0)

	u := must.Get(openUnfinished(o.Path))(t)
	_, err = Write(t.Context(), c, o)
	assert.True(t, errors.Is(err, ErrBusy), "while another call packs: %v", err)
	must.Do(t, u.close())
	damaged := filepath.Join(dir, files[1].Name)
	must.Do(t, os.Truncate(damaged, files[1].Size/2))
	_, err = Write(t.Context(), c, o)
	assert.True(t, errors.Is(err, warc.ErrTorn), "a damaged file: %v", err)
	_, err = os.Stat(o.Path + partial)
	assert.True(t, os.IsNotExist(err), "what waited is left: %v", err)
}

// TestOpenFile: what is not committed for certain is left out.
func TestOpenFile(t *testing.T) {
	dir, c := stored(t, warc.FormatGzip, 100, false)
	r, _ := mustWrite(t, c, Options{Path: filepath.Join(dir, "all.wacz"), Now: start})
	assert.True(t, r.Open == 1 && r.Captures < 100 && r.Captures != 0, "%+v", r)
	dir, c = stored(t, warc.FormatGzip, 2, false)
	if _, err := Write(context.Background(), c, Options{Path: filepath.Join(dir, "all.wacz")}); !errors.Is(err,
		ErrEmpty) {
		t.Error(err)
	}
}
