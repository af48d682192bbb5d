package testweb

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
)

// The sites in this file respond in unusual ways.

// moved has only redirects. Its robots.txt responds with 403, which allows everything.
func (d *demo) moved() {
	s := d.site("moved.amble.test", "Moved", Status(http.StatusForbidden))
	s.page("/", "We have moved", to("/paper", "To the paper"), to("/chain/1", "A chain"), to("/loop/a", "A loop"),
		to("/self", "Here"), to("/relative/old", "Next door"), to("/deep/0", "A deep chain"), to("/away", "Far away"),
		to("/nowhere", "Nowhere"))
	for _, r := range []struct {
		path   string
		status int
		target string
	}{
		{"/paper", 301, "//news.amble.test/"},
		{"/chain/1", 302, "/chain/2"}, {"/chain/2", 307, "/chain/3"}, {"/chain/3", 308, "/chain/end"},
		{"/loop/a", 302, "/loop/b"}, {"/loop/b", 302, "/loop/a"},
		{"/self", 301, "/self"},
		{"/relative/old", 303, "new"},
		{"/away", 301, "//outside.test/"},
		{"/nowhere", 302, ""}, // a redirect without a target
	} {
		s.must(r.path, r.status, Redirect(r.status, d.text(r.target)))
	}
	s.page("/chain/end", "The end of the chain")
	s.page("/relative/new", "Next door")
	// Longer than any crawler follows. Crawlers count differently where five redirects end.
	for i := range 5 {
		s.must(fmt.Sprintf("/deep/%d", i), 302, Redirect(302, fmt.Sprintf("/deep/%d", i+1)))
	}
	for i := 5; i < 12; i++ {
		s.may(fmt.Sprintf("/deep/%d", i), Redirect(302, fmt.Sprintf("/deep/%d", i+1)))
	}
}

// old is a host with a redirect at its root and nothing else.
func (d *demo) old() {
	s := d.site("old.amble.test", "Old", Status(http.StatusGone))
	s.must("/", http.StatusMovedPermanently, Redirect(http.StatusMovedPermanently, d.text("//www.amble.test/")))
}

// errors has missing pages, and some pages that recover.
func (d *demo) errors() {
	s := d.site("errors.amble.test", "Errors", Robots("User-agent: *\nAllow: /\n"))
	home := []link{to("/busy", "Busy"), to("/flaky", "Flaky"), to("/fine", "Fine")}
	s.page("/fine", "A page without fault")
	for _, status := range []int{400, 401, 403, 404, 410, 418} {
		path := fmt.Sprintf("/status/%d", status)
		home = append(home, to(path, fmt.Sprint(status)))
		s.must(path, status, Status(status))
	}
	s.recovers("/flaky", 2, 200, Flaky(1, Status(500), s.render("/flaky", "Well again", "", nil)))
	s.recovers("/busy", 2, 200, Flaky(1, RetryAfter(503, "1"), s.render("/busy", "No longer busy", "", nil)))
	s.page("/", "Errors", home...)
}

// broken has a page that always ends in the middle, and one whose connection is always reset.
func (d *demo) broken() {
	s := d.site("broken.amble.test", "Broken", nil)
	s.must("/cut", 0, Cut("text/html", []byte("<!DOCTYPE html><title>Cut short</title><p>This page ends in the mid")))
	s.must("/reset", 0, Reset())
	s.page("/", "Broken", to("/cut", "Cut short"), to("/reset", "Reset"))
}

// world has pages in several encodings, links that are hard to read, a big page, and files that are
// not HTML.
func (d *demo) world() {
	s := d.site("world.amble.test", "World", Robots("User-agent: *\nDisallow: /nothing-here\n"))
	home := []link{to("/links", "Links"), to("/big", "Big"), to("/gzip", "Compressed")}
	for _, e := range []struct {
		name, inHeader, inMeta string
		encoding               encoding.Encoding
		target                 string
	}{
		{"latin1", "; charset=iso-8859-1", "", charmap.Windows1252, "/café"},
		{"cyrillic", "", "windows-1251", charmap.Windows1251, "/новости"},
		{"japanese", "; charset=Shift_JIS", "", japanese.ShiftJIS, "/港"},
		{"utf8", "", "utf-8", unicode.UTF8, "/straße"},
		{"utf16", "", "", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "/žluť"},
	} {
		home = append(home, to("/"+e.name, e.name))
		s.must("/"+e.name, 200, encodedPage(e.target, e.inHeader, e.inMeta, e.encoding))
		s.page(escapePath(e.target), "Reached from "+e.name)
	}
	for _, f := range []struct{ path, contentType, body string }{
		{"/files/map.pdf", "application/pdf", "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n<a href=\"/not-a-link\">\n%%EOF\n"},
		{"/files/tides.csv", "text/csv", "day,high,low\n1,4.2,0.9\n"},
		{"/files/note.txt", "text/plain", "<a href=\"/not-a-link\">plain text</a>\n"},
		{"/files/data.json", "application/json", "{\"link\": \"/not-a-link\"}\n"},
		{"/files/empty", "text/html", ""},
	} {
		home = append(home, to(f.path, f.path))
		s.must(f.path, 200, Content(f.contentType, []byte(f.body)))
	}
	s.never("/not-a-link")
	s.page("/", "World", home...)
	s.hardLinks()
	s.must("/big", 200, bigPage())
	s.page("/big/end", "The end of the big page")
	s.must("/gzip", 200, compressed("<!DOCTYPE html><title>Compressed</title><p><a "+
		"href=\"/gzip/inside\">Inside</a></p>"))
	s.page("/gzip/inside", "Inside")
}

// hardLinks adds a page with links in all forms that browsers understand.
func (s *demoSite) hardLinks() {
	s.must("/links", 200, Content("text/html; charset=utf-8", []byte(`<!doctype html><title>Links</title>
<a href=" /trimmed
">spaces around</a> <a href="/a/./b/../flat">dots</a> <A HREF=/unquoted>no quotes</A>
<a href="/query?x=1&amp;y=2">entities</a> <a href="/query?x=1&amp;y=2#part">fragment</a> <a href="?page=2">query alone</a>
<a href="\back\slash">backslashes</a> <a href="/with space">a space</a> <a name="anchor">no link</a>
<a href="tel:123">call</a> <a href="data:text/html,x">data</a> <a href="http://">no host</a> <a href="http://[bad/">bad host</a>
<map><area href="/area" alt=""></map> <iframe src="/iframe"></iframe> <img src="/picture.png" alt=""> <script src="/code.js"></script>
<!-- <a href="/not-a-link">in a comment</a> --> <script>"<a href='/not-a-link'>"</script>
<p>open <a href="/unclosed">tags <b>everywhere`)))
	for _, path := range []string{"/trimmed", "/a/flat", "/unquoted", "/query?x=1&y=2", "/links?page=2", "/back/slash",
		"/with%20space", "/area", "/iframe", "/unclosed"} {
		s.page(path, "Reached by "+path)
	}
}

func escapePath(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if c < 0x80 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// encodedPage links to target, whose path is not ASCII, in an encoding that is named in the header,
// in the document or only by a byte order mark.
func encodedPage(target, inHeader, inMeta string, e encoding.Encoding) http.Handler {
	meta := ""
	if inMeta != "" {
		meta = "<meta charset=\"" + inMeta + "\">"
	}
	body, err := e.NewEncoder().String("<!DOCTYPE html>\n<html><head>" + meta + "<title>" + target[1:] +
		"</title></head>\n" +
		"<body><p><a href=\"" + target + "\">" + target[1:] + "</a></p></body></html>\n")
	if err != nil {
		panic("testweb: the demo's page of " + target + ": " + err.Error())
	}
	return Content("text/html"+inHeader, []byte(body))
}

// bigPage is more than a megabyte long and has its only link at the end.
func bigPage() http.Handler {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html><head><title>The big page</title></head><body>\n")
	for text := proseOf("big"); b.Len() < 1<<20; {
		fmt.Fprintf(&b, "<p>%s</p>\n", text.paragraph())
	}
	b.WriteString("<p><a href=\"/big/end\">The end</a></p>\n</body></html>\n")
	return Content("text/html; charset=utf-8", []byte(b.String()))
}

// compressed serves a page with gzip to clients that accept it.
func compressed(page string) http.Handler {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(page))
	_ = z.Close()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := []byte(page)
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			body = b.Bytes()
		}
		Content("text/html; charset=utf-8", body).ServeHTTP(w, r)
	})
}
