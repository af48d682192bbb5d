//go:build real

package extract

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// documentation are Debian packages with HTML of as many generators: 42,000 files in Debian 12.
var documentation = []string{"apache2-doc", "erlang-doc", "ghc-doc", "git-doc", "libgtk-3-doc", "nodejs-doc",
	"python-django-doc", "qtbase5-doc-html", "rust-doc", "sqlite3-doc"}

// unpackDocumentation downloads the packages and returns the directory with their files. It
// installs nothing. AMBLE_DOCUMENTATION is a directory that has them already.
func unpackDocumentation(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("AMBLE_DOCUMENTATION"); dir != "" {
		return dir
	}
	dir := t.TempDir()
	run := func(name string, arguments ...string) {
		c := exec.CommandContext(t.Context(), name, arguments...)
		c.Dir = dir
		output, err := c.CombinedOutput()
		must.True(t, err == nil, "%v: %v; this test needs Debian or Ubuntu and its packages\n%s", c, err, output)
	}
	run("apt-get", append([]string{"download", "-q"}, documentation...)...)
	packages := must.Get(filepath.Glob(filepath.Join(dir, "*.deb")))(t)
	for _, p := range packages {
		run("dpkg", "-x", p, filepath.Join(dir, "files"))
	}
	return dir
}

// TestRealDocumentation extracts the HTML pages of Debian packages: those that are installed here,
// and ten more. It compares the links with those that goquery alone finds, and all data with the judge.
func TestRealDocumentation(t *testing.T) {
	pages, links := 0, 0
	o := DefaultOptions()
	o.Text, o.LinkText = true, true
	base := mustParse(t, "http://docs.test/dir/page.html")
	visit := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !strings.Contains(entry.Name(), ".html") ||
			strings.HasSuffix(path, ".gz") || strings.HasSuffix(path, ".js") {
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
		if want, ok := judged(t, text, o); ok && p.Cut == 0 && p.Text != want.Text {
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
		if p.Cut != 0 || bytes.Contains(bytes.ToLower(body), []byte("<base")) || !utf8.Valid(body) {
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
			assert.True(t, err != nil || href == "" || href[0] == '#' || have[u.String()] ||
				s.Closest("template").Length() != 0, "%s: the link %q is missing", path, href)
		})
		return nil
	}
	for _, dir := range []string{"/usr/share/doc", unpackDocumentation(t)} {
		must.Do(t, filepath.WalkDir(dir, visit))
	}
	t.Logf("%d pages, %d links", pages, links)
}
