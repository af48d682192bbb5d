package report

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// link is a line of the format links.
func link(from, to, text string) string {
	return fmt.Sprintf(`{"version":1,"from":%q,"to":%q,"text":%q}`+"\n", from, to, text)
}

// plain is the Same of a crawl with default settings.
func plain() Same { return NewSame(weburl.Rules{MaxLength: 2048}, []string{"sid"}) }

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	must.Get(w.Write([]byte(text)))(t)
	must.Do(t, w.Close())
	return b.Bytes()
}

// TestScan reads output of all kinds: complete, compressed, being written, damaged, set aside.
func TestScan(t *testing.T) {
	const gone, moved = "http://a.test/gone", "http://a.test/moved"
	dir := t.TempDir()
	write(t, dir, "links-000001.jsonl", []byte(
		link("http://a.test/", gone, "first")+link("http://a.test/", gone, "again")+
			link("http://a.test/", "http://b.test/", "")+
			link("http://a.test/2", gone, `"to":"http://a.test/moved"`)+link("http://a.test/2", moved, "x")))
	write(t, dir, "links-000002.jsonl.gz", packed(t, link("http://a.test/2", moved, "mended")+
		link("http://b.test/", gone, "b")))
	long := link("http://long.test/", gone, strings.Repeat("x", maxLine))
	open := link("http://c.test/", gone, "c") + long + link("http://d.test/", gone, "d")
	write(t, dir, "links-000003.jsonl.open", []byte(open+`{"version":1,"from":"http://e.test/","to":"http://a.te`))
	write(t, dir, "links-000004.jsonl.unmarked", []byte(link("http://aside.test/", gone, "")))
	write(t, dir, "links-000005.jsonl.gz", []byte("no gzip"))
	write(t, dir, "text-000001.jsonl", []byte(link("http://text.test/", gone, "")))
	write(t, dir, "pages-000001.jsonl",
		[]byte(`{"version":1,"url":"`+moved+`","status":301,"redirect":"http://a.test/new"}`+"\n"))
	w := Wanted{URLs: []string{gone, moved, "http://a.test/none"}, Redirects: []string{moved}, Referrers: 3}
	f := must.Get(Scan(t.Context(), []string{dir, filepath.Join(dir, "missing")}, w, plain()))(t)
	var from []string
	for _, r := range f.URLs[gone].List {
		from = append(from, r.URL+" "+r.Text)
	}
	// The page /2 has no such link any more; of a page with two links the first counts.
	want := []string{"http://a.test/ first", "http://b.test/ b", "http://c.test/ c"}
	got := f.URLs[gone]
	assert.True(t, got.Count == 4 && slices.Equal(from, want), "%d pages: %q, want %q", got.Count, from, want)
	if got := f.URLs[moved]; got.Count != 1 || len(got.List) != 1 || got.List[0].Text != "mended" {
		t.Errorf("%+v", got)
	}
	assert.True(t, f.URLs["http://a.test/none"] == nil && f.Targets[moved] == "http://a.test/new" && f.Links &&
		!f.Cut && f.Files == 5 && len(f.Damaged) == 1 && strings.HasPrefix(f.Damaged[0], "links-000005"), "%+v", f)
}

// TestSame: a link counts for the URL that the crawl takes it for.
func TestSame(t *testing.T) {
	same := NewSame(weburl.Rules{StripParameters: []string{"utm_*"}, CollapseSlashes: true}, []string{"sid"})
	for _, c := range []struct{ a, b string }{
		{"http://a.test/x?utm_source=n", "http://a.test/x"},
		{"http://a.test//x", "http://a.test/x"},
		{"http://a.test/x;sid=1?b=2", "http://a.test/x;sid=9?b=2"},
	} {
		assert.True(t, same(c.a) == same(c.b) && (plain()(c.a) == plain()(c.b)) == strings.Contains(c.a, "sid"),
			"%s is %s, %s is %s", c.a, same(c.a), c.b, same(c.b))
	}
	dir := t.TempDir()
	write(t, dir, "links-000001.jsonl", []byte(link("http://a.test/", "http://a.test/x;sid=2", "one")+
		link("http://b.test/", "http://a.test/x;sid=3", "two")))
	f, err := Scan(t.Context(), []string{dir}, Wanted{URLs: []string{"http://a.test/x;sid=1"}, Referrers: 9}, same)
	assert.True(t, err == nil && f.URLs["http://a.test/x;sid=1"].Count == 2, "%v: %+v", err, f)
}

// TestScanOfMany: many pages with the same link are counted, and listed as far as they may be.
func TestScanOfMany(t *testing.T) {
	const kept, pages = 1000, 1500
	dir := t.TempDir()
	var b bytes.Buffer
	for i := range pages {
		fmt.Fprintf(&b, `{"version":1,"from":"http://a.test/%07d","to":"http://a.test/gone"}`+"\n", i)
	}
	write(t, dir, "links-000001.jsonl", b.Bytes())
	w := Wanted{URLs: []string{"http://a.test/gone"}, Referrers: 2}
	f := must.Get(scan(t.Context(), []string{dir}, w, plain(), kept))(t)
	got := f.URLs["http://a.test/gone"]
	assert.True(t, got.Count == pages && f.Cut && len(got.List) == 2 && got.List[0].URL == "http://a.test/0000000",
		"%d of %d, %v, %+v", got.Count, pages, f.Cut, got.List)
}

func BenchmarkScan(b *testing.B) {
	dir := b.TempDir()
	var text bytes.Buffer
	for i := range 100_000 {
		text.WriteString(link(fmt.Sprintf("http://host%d.test/some/page/%d", i/1000, i/50),
			fmt.Sprintf("http://host%d.test/another/page/%d", i/1000, i), "A link"))
	}
	must.Do(b, os.WriteFile(filepath.Join(dir, "links-000001.jsonl"), text.Bytes(), 0o600))
	var w Wanted
	for i := range 1000 {
		w.URLs = append(w.URLs, fmt.Sprintf("http://host%d.test/another/page/%d", i/10, i*100))
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		must.Get(Scan(b.Context(), []string{dir}, w, plain()))(b)
	}
}
