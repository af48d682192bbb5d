//go:build real

package extract

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"
)

// TestRealDocumentation extracts the HTML pages of the documentation in this machine's Debian
// packages. It compares the links with those that goquery alone finds, and all data with the judge.
func TestRealDocumentation(t *testing.T) {
	const enough = 3000
	pages, links := 0, 0
	o := DefaultOptions()
	o.Text, o.LinkText = true, true
	base := mustParse(t, "http://docs.test/dir/page.html")
	err := filepath.WalkDir("/usr/share/doc", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || pages >= enough || !entry.Type().IsRegular() || !strings.HasSuffix(path, ".html") {
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		pages++
		text := toUTF8(body, "text/html")
		agree(t, path, text, !bytes.Contains(bytes.ToLower(text), []byte("<table")))
		p, err := HTML(body, typed("text/html"), base, nil, o)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		if want, ok := judged(t, text, o); ok && !p.Truncated && p.Text != want.Text {
			t.Errorf("%s: text %.200q\nwant %.200q", path, p.Text, want.Text)
		}
		if !utf8.ValidString(p.Text) || !utf8.ValidString(p.Title) || utf8.Valid(body) &&
			strings.Contains(p.Text, "\ufffd") && !bytes.Contains(body, []byte("\ufffd")) &&
			!bytes.Contains(body, []byte("&#")) && !bytes.ContainsRune(body, 0) {
			t.Errorf("%s: the text was not decoded right", path)
		}
		have := map[string]bool{}
		for _, l := range p.Links {
			have[l.URL.String()] = true
		}
		links += len(have)
		if p.Truncated || bytes.Contains(bytes.ToLower(body), []byte("<base")) || !utf8.Valid(body) {
			return nil
		}
		doc, err := goquery.NewDocumentFromReader(bytes.NewReader(body))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		doc.Find("a[href]").Each(func(_ int, s *goquery.Selection) {
			href := strings.Trim(s.AttrOr("href", ""), space)
			u, err := base.Resolve(href)
			if err == nil && href != "" && href[0] != '#' && !have[u.String()] && s.Closest("template").Length() == 0 {
				t.Errorf("%s: the link %q is missing", path, href)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages == 0 {
		t.Skip("no HTML documentation is installed")
	}
	t.Logf("%d pages, %d links", pages, links)
}
