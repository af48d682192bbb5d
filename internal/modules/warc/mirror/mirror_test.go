package mirror

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// capture is a stored response: 200 unless its head says otherwise.
type capture struct{ url, head, body string }

// stored writes captures, a second apart. Each of few captures has a file of its own.
func stored(t *testing.T, captures ...capture) *warcfiles.Collection {
	t.Helper()
	o := archive.DefaultOptions()
	o.Known, o.Dir, o.Formats = []archive.Format{warcfiles.Format()}, t.TempDir(), []string{warcfiles.Name}
	if len(captures) < 20 {
		o.MaxFileBytes = 1
	}
	w, err := archive.Open(o, nil)
	must.Do(t, err)
	defer w.Close()
	e, err := archive.NewEncoder(o, nil)
	must.Do(t, err)
	bodies := make(map[string]*archive.Original)
	for i, c := range captures {
		head := c.head
		if !strings.HasPrefix(head, "HTTP/") {
			head = "HTTP/1.1 200 OK\r\nContent-Type: " + head
		}
		at := start.Add(time.Duration(i) * time.Second)
		item := must.Get(e.Encode(&archive.Visit{Exchange: &archive.Exchange{URL: c.url, At: at,
			Request: spool.Of([]byte("GET / HTTP/1.1\r\n\r\n")), Original: bodies[c.body],
			Response: spool.Of([]byte(head + "\r\n\r\n" + c.body))}}))(t)
		if bodies[c.body] == nil {
			bodies[c.body] = &archive.Original{URL: c.url, At: at, Payload: digest.Of([]byte(c.body))}
		}
		must.Do(t, w.Append(item, at))
	}
	_, err = w.Sync()
	if err == nil {
		_, err = w.Finish()
	}
	err = errors.Join(err, w.Committed())
	must.True(t, err == nil, "%v", err)
	c, err := warcfiles.OpenCollection(o.Dir, o.Known)
	must.Do(t, err)
	return c
}

// mirrored writes a mirror, and returns the content of its files.
func mirrored(t *testing.T, captures ...capture) map[string]string {
	t.Helper()
	outside := t.TempDir()
	dir := filepath.Join(outside, "deep", "mirror")
	must.Do(t, os.Mkdir(filepath.Dir(dir), 0o750))
	r := must.Get(Write(context.Background(), stored(t, captures...), dir, func(url string, err error) {
		t.Errorf("%s: %v", url, err)
	}))(t)
	files := make(map[string]string)
	must.Do(t, fs.WalkDir(os.DirFS(outside), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, inside := strings.CutPrefix(name, "deep/mirror/")
		assert.True(t, inside, "%s is outside", name)
		text, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = strings.TrimPrefix(string(text), "\ufeff")
		return err
	}))
	assert.True(t, len(files) == r.Files+1, "%d files, and the report is %+v", len(files), r)
	return files
}

func TestMirror(t *testing.T) {
	const page = "text/html; charset=windows-1251"
	moved := "HTTP/1.1 301 Moved Permanently\r\nLocation: /docs/"
	files := mirrored(t,
		capture{"https://h.test/", page, "old"},
		capture{"https://h.test/docs/", page, "\xcf <a href='../a#x'>a</a> <a href=/gone>g</a> <a href=/moved>m</a>" +
			`<link rel=preconnect href=//h.test><img srcset="/i.png 1x, no.png 2x" src=/i.png ` +
			`style="background: url(/i.png)"><style>@import "/s.css";</style>` +
			`<link rel=stylesheet integrity=x href=/s.css><a href="#y">y</a>` +
			`<a href="javascript:f()">j</a><meta http-equiv=refresh content="3; url=/a">` +
			`<script>"<a href=/a>"</script>`},
		capture{"https://h.test/a", "text/html", "same body"},
		capture{"https://h.test/moved", moved, ""},
		capture{"https://h.test/i.png", "image/png", "png"},
		capture{"https://h.test/s.css", "text/css",
			`/* url(/i.png) */ @import url( '/t.css' ); a { b: url(/i.png); c: "/i.png" }`},
		capture{"https://h.test/gone", "HTTP/1.1 404 Not Found", ""},
		capture{"https://h.test/b?q=1", "text/html", "same body"},
		capture{"https://h.test/based/", "text/html", "<base href=/docs/><a href=../a>a</a>"},
		capture{"https://h.test/old", page, "<a href='mailto:a?\xff'></a><a href='/b?q=\xff#\xff'></a>" +
			"<a href='/b?q=\xfe'></a><i style='x: url(/b?q=\xff)'></i>"},
		capture{"https://h.test/b?q=%FF", "text/html", "of the old encoding"},
		capture{"https://h.test/framing", "text/html", `<iframe srcdoc="&lt;img src=/i.png>"></iframe>` +
			"<noscript><img data-original=/i.png></noscript>"},
		capture{"https://h.test/odd.css", "text/css",
			`@import url(\2f s.css) screen; a { b: image-set("i\.png" 1x, "/no\"\
.png" 2x); c: url(/i\.png`},
		capture{"https://h.test/", page, "new <a href=/b?q=1>"},
	)
	want := map[string]string{
		"h.test/index.html": `new <a href="b@` + sum("https://h.test/b?q=1") + `.htm">`,
		"h.test/docs/index.html": "\u041f " + `<a href="../a.htm#x">a</a> <a href="https://h.test/gone">g</a> ` +
			`<a href="index.html">m</a><img srcset="../i.png 1x, https://h.test/docs/no.png 2x" src="../i.png" ` +
			`style="background: url(&#34;../i.png&#34;)"><style>@import "../s.css";</style>` +
			`<link rel="stylesheet" href="../s.css"><a href="#y">y</a><a href="javascript:f()">j</a>` +
			`<meta http-equiv="refresh" content="3; url=../a.htm"><script>"<a href=/a>"</script>`,
		"h.test/a.htm": "same body", "h.test/b@" + sum("https://h.test/b?q=1") + ".htm": "same body",
		"h.test/i.png": "png", "h.test/b@" + sum("https://h.test/b?q=%FF") + ".htm": "of the old encoding",
		"h.test/old.htm": "<a href='mailto:a?я'></a>" + `<a href="b@` + sum("https://h.test/b?q=%FF") + `.htm#я"></a>` +
			`<a href="https://h.test/b?q=%FE"></a><i style="x: url(&#34;https://h.test/b?q=%D1%8F&#34;)"></i>`,
		"h.test/s.css": `/* url(/i.png) */ @import url("https://h.test/t.css"); ` +
			`a { b: url("i.png"); c: "/i.png" }`,
		"h.test/framing.htm": `<iframe srcdoc="&lt;img src=&#34;i.png&#34;&gt;"></iframe>` +
			`<noscript><img data-original="i.png"></noscript>`,
		"h.test/odd.css": `@import url("s.css") screen; ` +
			`a { b: image-set("i.png" 1x, "https://h.test/no%22.png" 2x); c: url("i.png")`,
		"h.test/based/index.html": `<base><a href="../a.htm">a</a>`,
	}
	for name, text := range want {
		assert.True(t, files[name] == text, "%s is\n%s\nwant\n%s", name, files[name], text)
	}
	if len(files) != len(want)+1 || !strings.Contains(files[IndexFile], `<a href="h.test/index.html">`) {
		t.Errorf("%q", slices.Collect(keysOf(files)))
	}
}

func keysOf(files map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range files {
			if !yield(name) {
				return
			}
		}
	}
}

// TestHostileURLs: nothing is written outside of the directory, and each URL has a file of its own.
func TestHostileURLs(t *testing.T) {
	var all []capture
	var texts []string
	for _, u := range []string{
		"../../x", "%2e%2e/%2e%2e/x", "..%2f..%2fx", "%2e%2e%5c%2e%2e%5cx", "..\\..\\x", "a%00b",
		"a/../../../../b", "//etc/passwd", "C:/x", "con", "CON", "con.html", "aux/x", "lpt1.txt", "a.", "a. ",
		"a", "A", "a.html", "a.html/b", "a.htm", "a.htm/", ".hidden", "...", "%ff", strings.Repeat("l", 900),
		strings.Repeat("d/", 700), "index.html", "", "?", "x:y", "x*y", "x|y", "@index.html", "@spool",
		"@index.html/x", "x?../../y", "x?a", "x?A", "%2F", "%2Fetc%2Fpasswd", "a;b", "a~1", "~root/",
	} {
		texts = append(texts, "http://h.test/"+u, "https://h.test/"+u, "https://127.0.0.1:81/"+u)
	}
	texts = append(texts, "http://[::1]:8080/", "http://../", "http://con/", "http://a%2f..%2f../", "http://h.test./")
	seen := make(map[string]bool)
	for i, text := range texts {
		u, err := weburl.Parse(text) // as a crawl stores it
		if err != nil || seen[u.String()] {
			continue
		}
		seen[u.String()] = true
		all = append(all, capture{u.String(), []string{"text/html", "image/png"}[i%2], text})
	}
	files := mirrored(t, all...)
	assert.True(t, len(files) == len(all)+1 && len(all) >= 80, "%d files of %d URLs", len(files), len(all))
	for name := range files {
		checkName(t, name)
	}
}

var safe = regexp.MustCompile(`^[a-z0-9_.@-]+$`)

func checkName(t interface{ Errorf(string, ...any) }, name string) {
	if len(name) > 240 {
		t.Errorf("%d bytes: %s", len(name), name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if !safe.MatchString(part) || reserved.MatchString(part) || strings.HasSuffix(part, ".") ||
			strings.HasPrefix(part, ".") || len(part) > 120 {
			t.Errorf("%q of %q", part, name)
		}
	}
}

// TestAnyURLs: the names of any two URLs differ, and none is a directory of the other.
func TestAnyURLs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mimes := rapid.SampledFrom([]string{"text/html", "image/png", "text/css", "", "x/y"})
		part := rapid.SampledFrom([]string{"a", "A", "a.html", "a.htm", "a.php", "a.html_", "a_", "index.html", "", ".",
			"..", "index", "a@b", "v1.2", "v1.2_", "a.php.htm", "?a", "?A", "%2e", "con", "_con", "a.", "a.png",
			"a.bin", "@", "_"})
		sites := rapid.SampledFrom([]string{"http://h.test/", "https://h.test/", "https://h.test:81/", "http://h/"})
		draw := func(label string) (url, name string) {
			url = sites.Draw(t, label) + strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, label), "/")
			return url, nameOf(url, mimes.Draw(t, label))
		}
		a, first := draw("first")
		b, second := draw("second")
		checkName(t, first)
		must.True(t, (a == b || first != second && !strings.HasPrefix(second, first+"/")) &&
			path.Clean(first) == first, "%q is %q, %q is %q", a, first, b, second)
	})
}

// TestNotFresh: what exists is not touched, whether it is a directory or a link to one; an interruption leaves nothing.
func TestNotFresh(t *testing.T) {
	c := stored(t, capture{"https://h.test/", "text/html", "x"})
	dir, elsewhere := t.TempDir(), t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	for _, at := range []string{dir, link} {
		_, err := Write(ctx, c, at, nil)
		assert.True(t, errors.Is(err, ErrExists), "%s: %v", at, err)
	}
	cancel()
	_, err := Write(ctx, c, filepath.Join(dir, "new"), nil)
	assert.True(t, errors.Is(err, context.Canceled), "%v", err)
	for at, want := range map[string]int{dir: 1, elsewhere: 0} {
		files, err := os.ReadDir(at)
		assert.True(t, err == nil && len(files) == want, "%s: %v, %v", at, files, err)
	}
}

// TestMissingOriginal: a body that is not there costs its page.
func TestMissingOriginal(t *testing.T) {
	o, lost := stored(t), 0
	_, err := Write(context.Background(), o, filepath.Join(t.TempDir(), "m"), nil)
	assert.True(t, errors.Is(err, ErrEmpty), "%v", err)
	body := strings.Repeat("long body ", 600)
	c := stored(t, capture{"https://h.test/a", "text/html", body}, capture{"https://h.test/b", "text/html", body})
	files, _, err := c.Complete()
	must.True(t, err == nil && len(files) >= 2, "%v %v", files, err)
	f := must.Get(c.OpenFile(files[0]))(t)
	f.Close()
	index := strings.TrimSuffix(f.Name(), ".warc.gz") + ".cdxj"
	must.Do(t, errors.Join(os.Remove(f.Name()), os.Remove(index)))
	_, err = Write(context.Background(), c, filepath.Join(t.TempDir(), "m"), func(string, error) { lost++ })
	assert.True(t, errors.Is(err, ErrEmpty) && lost == 1, "%d, %v", lost, err)
}
