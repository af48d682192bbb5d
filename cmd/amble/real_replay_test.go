//go:build real

package main_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"golang.org/x/net/html/charset"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/browser"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// nodeFont has a font in the formats of the web.
const nodeFont = "@fontsource/pacifico@5.2.7"

// TestRealReplay crawls the pages of testdata/replay with archive.requisites. A browser shows each as it is, as pywb
// serves it from the archive, and as a file of the mirror: nothing is missing, no request leaves, and the pictures are
// alike.
func TestRealReplay(t *testing.T) {
	t.Setenv("BROWSER_TESTS", "1")
	forgetSettings(t)
	if !has("chromium") {
		aptInstall(t, []string{"chromium"})
	}
	web := serveMade(t, fonts(t))
	binary, dir := build(t), t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	seeds := []string{web.Main + "/", web.H2 + "/", web.Other + "/"}
	must.Do(t, os.WriteFile(config, fmt.Appendf(nil, `
data_dir: ./data
crawl: {seeds: [%s], exit_when_done: true}
politeness: {delay: 10ms, ip_rate: 0}
fetch: {allow_private: true, tls_ca_file: %s}
output: {format: [warc], prefix: real}
archive: {requisites: true}
server: {listen: ""}
`, strings.Join(seeds, ", "), web.authority), 0o600))
	p := start(t, binary, "run", "-c", config)
	if err := p.wait(crawlTimeout); err != nil {
		t.Fatalf("amble run: %v\n%s", err, tail(p.output.String()))
	}
	amble := func(arguments ...string) {
		t.Helper()
		if output, err := command(t, time.Minute, binary, append(arguments, "-c", config)...); err != nil {
			t.Errorf("amble %q: %v\n%s", arguments, err, tail(output))
		}
	}
	amble("archive", "verify")
	mirror := filepath.Join(dir, "mirror")
	amble("archive", "mirror", mirror)

	live := make(map[string]image.Image)
	tab := browser.Open(t, "ignore-certificate-errors")
	for _, page := range web.pages {
		load(t, tab, page, web.Main+"/", web.Other+"/", web.H2+"/")
		live[page] = picture(t, tab)
	}
	t.Run("pywb", func(t *testing.T) {
		replay := filepath.Join(dir, "replay")
		amble("archive", "replay", replay)
		settings := filepath.Join(replay, "config.yaml")
		text := append(must.Get(os.ReadFile(settings))(t), "framed_replay: false\n"...) // nothing around the page
		must.Do(t, os.WriteFile(settings, text, 0o600))
		address := servePywb(t, python(t, pythonReplay), replay)
		tab := browser.Open(t)
		for _, page := range web.pages {
			load(t, tab, "http://"+address+"/real/"+page, "http://"+address+"/")
			if path.Base(page) != "module.html" { // pywb puts import where no module may have it
				alike(t, page, live[page], tab)
			}
		}
	})
	t.Run("mirror", func(t *testing.T) {
		tab := browser.Open(t)
		for page, file := range mirrored(t, mirror, web) {
			load(t, tab, file, "file://"+mirror+"/")
			if !slices.Contains(refused, path.Base(page)) {
				alike(t, page, live[page], tab)
			}
			for link := range strings.FieldsSeq(tab.Text(`[...document.links].map((l) => l.href).join(" ")`)) {
				u := must.Get(url.Parse(link))(t)
				assert.True(t, u.Scheme == "file" && isFile(u.Path), "the mirror of %s has the link %s", page, link)
			}
		}
	})
}

// fonts returns a directory with the fonts made.woff and made.woff2.
func fonts(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if output, err := command(t, 5*time.Minute, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund",
		"--silent", nodeFont); err != nil {
		t.Skipf("the npm package %s cannot be had: %v\n%s", nodeFont, err, tail(output))
	}
	for _, kind := range []string{"woff", "woff2"} {
		name := filepath.Join("node_modules", "@fontsource", "pacifico", "files", "pacifico-latin-400-normal."+kind)
		must.Do(t, os.Rename(filepath.Join(dir, name), filepath.Join(dir, "made."+kind)))
	}
	return dir
}

// madeWeb is the web of testdata/replay. Its templates refer to the hosts.
type madeWeb struct {
	Main, Other, H2, OtherHost string // URLs without a path; H2 speaks HTTP/2 only
	authority                  string // file of the authority of H2
	fonts                      string // directory
	pages                      []string
}

func serveMade(t *testing.T, fonts string) *madeWeb {
	t.Helper()
	a := must.Get(testweb.NewAuthority(time.Now()))(t)
	w := &madeWeb{authority: filepath.Join(t.TempDir(), "ca.pem"), fonts: fonts}
	must.Do(t, os.WriteFile(w.authority, a.PEM(), 0o600))
	for i, site := range []struct {
		folder string
		base   *string
	}{{"main", &w.Main}, {"other", &w.Other}, {"h2", &w.H2}} {
		l := must.Get(net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", 2+i)))(t)
		*site.base = "http://" + l.Addr().String()
		server := &http.Server{Protocols: new(http.Protocols)}
		server.Protocols.SetHTTP1(true)
		if site.folder == "h2" {
			server.Protocols.SetHTTP1(false)
			server.Protocols.SetHTTP2(true)
			*site.base = "https://" + l.Addr().String()
			config := a.Config()
			config.NextProtos = []string{"h2"}
			l = tls.NewListener(l, config)
		}
		root := filepath.Join("testdata", "replay", site.folder)
		server.Handler = http.HandlerFunc(
			func(out http.ResponseWriter, r *http.Request) { w.handle(t, root, out, r) })
		go server.Serve(l) // ends with the server
		t.Cleanup(func() { server.Close() })
		for _, name := range must.Get(filepath.Glob(filepath.Join(root, "*.html")))(t) {
			w.pages = append(w.pages, *site.base+"/"+filepath.Base(name))
		}
	}
	w.OtherHost = strings.TrimPrefix(w.Other, "http://")
	return w
}

// imageName is that of a picture of a size.
var imageName = regexp.MustCompile(`(?i)-(\d+)x(\d+)\.png`)

// handle serves a file of a site. /to/x redirects to x, /gzip/x is x with a content encoding, and a path with a size is
// a picture that no other URL has.
func (w *madeWeb) handle(t *testing.T, root string, out http.ResponseWriter, r *http.Request) {
	out.Header().Set("Access-Control-Allow-Origin", "*")
	name := r.URL.Path
	if rest, found := strings.CutPrefix(name, "/to"); found {
		http.Redirect(out, r, rest, http.StatusFound)
		return
	}
	if size := imageName.FindStringSubmatch(name); size != nil {
		width, _ := strconv.Atoi(size[1])
		height, _ := strconv.Atoi(size[2])
		out.Header().Set("Content-Type", "image/png")
		_ = png.Encode(out, made(r.URL.RequestURI(), width, height))
		return
	}
	unpacked, packed := strings.CutPrefix(name, "/gzip")
	switch {
	case name == "/":
		out.Header().Set("Content-Type", "text/html")
		for _, page := range w.pages {
			fmt.Fprintf(out, "<p><a href=\"%s\">%s</a></p>\n", page, path.Base(page))
		}
		return
	case name == "/sound.wav":
		header := "RIFF\x24\x10\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01" +
			"\x00\x08\x00data\x00\x10\x00\x00"
		sound := header + strings.Repeat("\x80", 4096)
		http.ServeContent(out, r, name, time.Time{}, strings.NewReader(sound))
		return
	case strings.HasPrefix(name, "/fonts/"):
		out.Header().Set("Content-Type", "font/"+strings.TrimPrefix(path.Ext(name), "."))
		http.ServeFile(out, r, filepath.Join(w.fonts, path.Base(name)))
		return
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path.Clean(unpacked))))
	if err != nil {
		http.NotFound(out, r)
		return
	}
	var body bytes.Buffer
	assert.NoError(t, template.Must(template.New(name).Parse(string(text))).Execute(&body, w))
	content := body.Bytes()
	contentType := map[string]string{".html": "text/html", ".css": "text/css", ".js": "text/javascript",
		".svg": "image/svg+xml", ".webmanifest": "application/manifest+json"}[path.Ext(name)]
	switch label, isPage := strings.CutPrefix(strings.TrimSuffix(path.Base(name), ".html"), "charset-"); {
	case isPage:
		content = encoded(label, content)
		if label == "windows-1251" { // only the header says it
			contentType += "; charset=" + label
		}
	case path.Base(name) == "charset.css":
		content = encoded("windows-1251", content)
	case path.Ext(name) == ".html":
		contentType += "; charset=utf-8"
	}
	out.Header().Set("Content-Type", contentType)
	if packed {
		out.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(out)
		defer z.Close()
		_, _ = z.Write(content)
		return
	}
	_, _ = out.Write(content)
}

// encoded returns a text in an encoding, UTF-16 with its mark.
func encoded(label string, text []byte) []byte {
	if label == "utf-16le" {
		text = append([]byte("\ufeff"), text...)
		e := make([]byte, 0, 2*len(text))
		for _, r := range string(text) {
			e = append(e, byte(r), byte(r>>8))
		}
		return e
	}
	e, _ := charset.Lookup(label)
	content, err := e.NewEncoder().Bytes(text)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", label, err))
	}
	return content
}

// made returns a picture with the colors of a name.
func made(name string, width, height int) image.Image {
	sum := sha256.Sum256([]byte(name))
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range 4 {
		c := color.NRGBA{sum[3*i], sum[3*i+1], sum[3*i+2], 255}
		part := image.Rect(i%2*width/2, i/2*height/2, width, height)
		draw.Draw(m, part, image.NewUniform(c), image.Point{}, draw.Src)
	}
	return m
}

// refused are pages with what a browser does not load from a disk, besides manifests: masks, modules and parts of SVG
// files (docs/ARCHIVE.md).
var refused = []string{"svg.html", "css-images.html", "module.html"}

// load shows a page until all of it is there. Each request goes to one of the places and, but from files, has a
// response that is no error. Browsers request /favicon.ico of pages that name none.
func load(t *testing.T, tab *browser.Tab, page string, places ...string) {
	t.Helper()
	tab.Forget()
	tab.Show(page, 1280, false, `document.readyState === "complete" && document.fonts.status === "loaded" &&
		[...document.images].every((i) => i.complete)`)
	for _, failure := range tab.Failures() {
		isRefused := strings.HasPrefix(page, "file:") && (strings.HasPrefix(failure, "Manifest: ") ||
			slices.Contains(refused, path.Base(page)) && (strings.HasSuffix(failure, "net::ERR_FAILED") ||
				failure == "Other: "))
		assert.True(t, isRefused || strings.Contains(failure, "/favicon.ico "), "%s: %s", page, failure)
	}
	for _, u := range tab.Requested() {
		begins := func(place string) bool { return strings.HasPrefix(u, place) }
		assert.True(t, slices.ContainsFunc(append(places, "data:", "about:"), begins), "%s: a request left for %s",
			page, u)
	}
	const hidden = `[...document.images].filter((i) => !i.naturalWidth && (i.src || i.srcset)).map((i) => i.outerHTML)
		.concat([...document.fonts].filter((f) => f.status === "error").map((f) => f.family)).join(" ")`
	broken := tab.Text(hidden)
	for deadline := time.Now().Add(time.Minute); broken != "" && time.Now().Before(deadline); {
		broken = tab.Text(hidden) // scripts may load more
	}
	assert.Equal(t, broken, "", page, "not shown")
}

func picture(t *testing.T, tab *browser.Tab) image.Image {
	t.Helper()
	return must.Get(png.Decode(bytes.NewReader(tab.Screenshot())))(t)
}

// alike checks that at least 98 of 100 pixels of the window are as before, as soon as it is painted.
func alike(t *testing.T, page string, before image.Image, tab *browser.Tab) {
	t.Helper()
	var after image.Image
	share := 0.0
	for deadline := time.Now().Add(time.Minute); share < 0.98 && time.Now().Before(deadline); {
		after = picture(t, tab)
		share = equalPixels(before, after)
	}
	if share < 0.98 {
		t.Errorf("%s: only %.1f %% of the picture are as before", page, 100*share)
	}
	t.Logf("%s: %.2f %%", page, 100*share)
	if dir := os.Getenv("PICTURES"); dir != "" {
		for name, m := range map[string]image.Image{"live": before, path.Base(t.Name()): after} {
			var text bytes.Buffer
			must.Do(t, png.Encode(&text, m))
			must.Do(t, os.WriteFile(filepath.Join(dir, path.Base(page)+"."+name+".png"), text.Bytes(), 0o600))
		}
	}
}

// equalPixels returns the share of pixels that are equal.
func equalPixels(a, b image.Image) float64 {
	if a.Bounds() != b.Bounds() {
		return 0
	}
	same, r := 0, a.Bounds()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if a.At(x, y) == b.At(x, y) {
				same++
			}
		}
	}
	return float64(same) / float64(r.Dx()*r.Dy())
}

// mirrored returns the file URL of each page.
func mirrored(t *testing.T, dir string, web *madeWeb) map[string]string {
	t.Helper()
	found := make(map[string]string)
	must.Do(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, page := range web.pages {
			u := must.Get(url.Parse(page))(t)
			host := filepath.Base(filepath.Dir(name))
			if filepath.Base(name) == path.Base(page) && strings.HasSuffix(host, u.Port()) {
				found[page] = "file://" + name
			}
		}
		return nil
	}))
	missing := slices.DeleteFunc(slices.Clone(web.pages), func(page string) bool { return found[page] != "" })
	assert.True(t, len(missing) <= 0, "the mirror has no file of %q", missing)
	return found
}
