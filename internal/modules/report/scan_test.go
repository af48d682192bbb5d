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
)

// link is a line of the format links.
func link(from, to, text string) string {
	return fmt.Sprintf(`{"version":1,"from":%q,"to":%q,"text":%q}`+"\n", from, to, text)
}

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
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
	f, err := Scan(t.Context(), []string{dir, filepath.Join(dir, "missing")}, w)
	if err != nil {
		t.Fatal(err)
	}
	var from []string
	for _, r := range f.URLs[gone].List {
		from = append(from, r.URL+" "+r.Text)
	}
	// The page /2 has no such link any more; of a page with two links the first counts.
	want := []string{"http://a.test/ first", "http://b.test/ b", "http://c.test/ c"}
	if got := f.URLs[gone]; got.Count != 4 || !slices.Equal(from, want) {
		t.Errorf("%d pages: %q, want %q", got.Count, from, want)
	}
	if got := f.URLs[moved]; got.Count != 1 || len(got.List) != 1 || got.List[0].Text != "mended" {
		t.Errorf("%+v", got)
	}
	if f.URLs["http://a.test/none"] != nil || f.Targets[moved] != "http://a.test/new" || !f.Links || f.Cut ||
		f.Files != 5 || len(f.Damaged) != 1 || !strings.HasPrefix(f.Damaged[0], "links-000005") {
		t.Errorf("%+v", f)
	}
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
	f, err := scan(t.Context(), []string{dir}, Wanted{URLs: []string{"http://a.test/gone"}, Referrers: 2}, kept)
	if err != nil {
		t.Fatal(err)
	}
	got := f.URLs["http://a.test/gone"]
	if got.Count != pages || !f.Cut || len(got.List) != 2 || got.List[0].URL != "http://a.test/0000000" {
		t.Errorf("%d of %d, %v, %+v", got.Count, pages, f.Cut, got.List)
	}
}

func BenchmarkScan(b *testing.B) {
	dir := b.TempDir()
	var text bytes.Buffer
	for i := range 100_000 {
		text.WriteString(link(fmt.Sprintf("http://host%d.test/some/page/%d", i/1000, i/50),
			fmt.Sprintf("http://host%d.test/another/page/%d", i/1000, i), "A link"))
	}
	if err := os.WriteFile(filepath.Join(dir, "links-000001.jsonl"), text.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	var w Wanted
	for i := range 1000 {
		w.URLs = append(w.URLs, fmt.Sprintf("http://host%d.test/another/page/%d", i/10, i*100))
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := Scan(b.Context(), []string{dir}, w); err != nil {
			b.Fatal(err)
		}
	}
}
