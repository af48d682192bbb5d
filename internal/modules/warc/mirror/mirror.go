//go:build !core

package mirror

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// partial is the end of the name of a mirror that is not complete.
const partial = ".partial"

// IndexFile is the file of a mirror with a link to the first page of each site. No site has a file of that name.
const IndexFile = "@index.html"

// maxRedirects is how many stored redirects are followed from a link to a page.
const maxRedirects = 5

// maxCached bounds the links whose targets are remembered.
const maxCached = 1 << 14

// maxSheet bounds a style sheet whose references are rewritten.
const maxSheet = 8 << 20

// ErrExists means that something is where the mirror is to be.
var ErrExists = errors.New("it exists")

// ErrEmpty means that nothing is stored that a mirror would have.
var ErrEmpty = errors.New("no complete WARC file has a page")

// Report counts what a mirror holds.
type Report struct {
	Dir   string `json:"dir"`
	Files int    `json:"files"`
	Pages int    `json:"pages"` // those of the files that are HTML
	Bytes int64  `json:"bytes"`
	// Unreadable is what could not be written, such as a body whose original is not there.
	Unreadable int `json:"unreadable"`
}

// Write writes the newest stored response of each URL to a fresh directory, which has its name when it is complete.
// failed is told what cannot be read.
func Write(ctx context.Context, c *warcfiles.Collection, dir string, failed func(url string, err error)) (r Report,
	err error) {
	dir = filepath.Clean(dir)
	for _, name := range []string{dir, dir + partial} {
		if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
			return r, errors.Join(fmt.Errorf("mirror: %s: %w", name, ErrExists), err)
		}
	}
	if err := os.Mkdir(dir+partial, 0o750); err != nil {
		return r, fmt.Errorf("mirror: %w", err)
	}
	if err = write(ctx, c, dir+partial, &r, failed); err == nil {
		err = os.Rename(dir+partial, dir)
	}
	if err != nil {
		return r, errors.Join(fmt.Errorf("mirror: %w", err), os.RemoveAll(dir+partial))
	}
	r.Dir = dir
	if err := system.SyncDir(filepath.Dir(dir)); err != nil {
		return r, fmt.Errorf("mirror: %w", err)
	}
	return r, nil
}

func write(ctx context.Context, c *warcfiles.Collection, dir string, r *Report, failed func(string, error)) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	waits := filepath.Join(dir, "@spool")
	pool, err := spool.Open(spool.Options{Dir: waits, Above: 1 << 20, Budget: 64 << 20})
	if err != nil {
		return err
	}
	newest, err := c.Newest(ctx, pool)
	if err != nil {
		return err
	}
	defer newest.Close()
	m := &mirror{ctx: ctx, c: c, newest: newest, root: root, r: r, cache: make(map[string]string)}
	err = newest.Each(func(e warc.Entry) error {
		if err := ctx.Err(); err != nil || e.Status != http.StatusOK {
			return err
		}
		err := m.page(e)
		if unreadable := (*unreadableError)(nil); errors.As(err, &unreadable) {
			r.Unreadable++
			failed(e.URL, unreadable.error)
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if r.Files == 0 {
		return ErrEmpty
	}
	return errors.Join(m.writeIndex(), os.Remove(waits))
}

// unreadableError is that of a stored response. It costs that response.
type unreadableError struct{ error }

// mirror writes one mirror.
type mirror struct {
	ctx    context.Context
	c      *warcfiles.Collection
	newest *warcfiles.Newest
	root   *os.Root
	r      *Report
	cache  map[string]string // files of URLs; empty: not stored
	sites  []string          // the first page of each site
}

// page writes the file of a capture.
func (m *mirror) page(e warc.Entry) error {
	s, err := m.c.Open(m.ctx, e)
	if err != nil {
		return &unreadableError{err}
	}
	defer s.Close()
	body, release, err := s.Plain()
	if err != nil {
		return &unreadableError{err}
	}
	defer release()
	contentType := warc.HTTPField(s.BodyHead, "Content-Type")
	mime := mimeOf(contentType)
	name := nameOf(e.URL, mime)
	if err := m.root.MkdirAll(path.Dir(name), 0o750); err != nil {
		return err
	}
	f, err := m.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	w := &counting{w: bufio.NewWriterSize(f, 64<<10)}
	if err = m.content(w, body, e.URL, name, mime, contentType); errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the end of what is stored
	}
	if err = errors.Join(err, w.w.Flush(), f.Close()); err != nil {
		if w.failed {
			return err
		}
		return errors.Join(&unreadableError{err}, m.root.Remove(name))
	}
	m.r.Files++
	m.r.Bytes += w.n
	if isHTML(mime) {
		m.r.Pages++
		if len(m.sites) == 0 || siteOf(m.sites[len(m.sites)-1]) != siteOf(name) {
			m.sites = append(m.sites, name)
		}
	}
	return nil
}

// counting counts what is written, and remembers that it failed.
type counting struct {
	w      *bufio.Writer
	n      int64
	failed bool
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n, c.failed = c.n+int64(n), c.failed || err != nil
	return n, err
}

func siteOf(name string) string { site, _, _ := strings.Cut(name, "/"); return site }

func mimeOf(contentType string) string {
	if end := strings.IndexAny(contentType, "; \t"); end >= 0 {
		contentType = contentType[:end]
	}
	return strings.ToLower(contentType)
}

// content writes a body. Texts with references become UTF-8, and begin with its mark: a file has no header that would
// say so.
func (m *mirror) content(w io.Writer, body io.Reader, url, name, mime, contentType string) error {
	resolve := func(ref, base string, c extract.Charset) string { return m.reference(ref, base, url, name, c) }
	switch {
	case isHTML(mime):
		text, charset := extract.NewReader(body, contentType)
		if _, err := io.WriteString(w, "\ufeff"); err != nil {
			return err
		}
		return (&document{resolve: resolve, charset: charset}).rewrite(w, &markless{r: text})
	case mime == "text/css":
		sheet, err := io.ReadAll(io.LimitReader(body, maxSheet))
		if len(sheet) < maxSheet {
			sheet = styles(sheet, func(ref string) string { return resolve(ref, "", "") })
		}
		if _, err := w.Write(sheet); err != nil {
			return err
		}
		if err != nil {
			return err
		}
	}
	_, err := io.Copy(w, body)
	return err
}

// markless leaves out the mark of UTF-8 at the start.
type markless struct {
	r    io.Reader
	head *bytes.Reader
}

func (m *markless) Read(p []byte) (int, error) {
	if m.head == nil {
		var start [3]byte
		n, err := io.ReadFull(m.r, start[:])
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return 0, err
		}
		m.head = bytes.NewReader(bytes.TrimPrefix(start[:n], []byte("\ufeff")))
	}
	if m.head.Len() > 0 {
		return m.head.Read(p)
	}
	return m.r.Read(p)
}

// reference returns a reference as the file of a page has it: to the file of a stored page, else absolute. What is no
// reference to another page of the web stays as it is.
func (m *mirror) reference(ref, base, page, name string, charset extract.Charset) string {
	trimmed := strings.Trim(ref, " \t\r\n\f")
	if trimmed == "" || trimmed[0] == '#' {
		return ref
	}
	from, err := weburl.Parse(page)
	if err != nil {
		return ref
	}
	if base != "" {
		if changed, err := from.Resolve(base); err == nil {
			from = changed
		}
	}
	target, err := from.Resolve(charset.Reference(trimmed))
	if err != nil {
		return ref
	}
	_, fragment, hasFragment := strings.Cut(trimmed, "#")
	if hasFragment {
		fragment = "#" + fragment
	}
	file := m.fileOf(target.String())
	if file == "" {
		return target.String() + fragment
	}
	return relative(name, file) + fragment
}

// fileOf returns the file of a URL; empty: it is not stored, or what its index says cannot be read.
func (m *mirror) fileOf(url string) string {
	if file, known := m.cache[url]; known {
		return file
	}
	if len(m.cache) >= maxCached {
		clear(m.cache)
	}
	file := m.find(url)
	m.cache[url] = file
	return file
}

func (m *mirror) find(url string) string {
	for range maxRedirects + 1 {
		e, found, err := m.newest.Find(url)
		if err != nil || !found {
			return ""
		}
		if e.Status == http.StatusOK && e.Mime != warc.MimeRevisit {
			return nameOf(url, mimeOf(e.Mime))
		}
		s, err := m.c.Open(m.ctx, e)
		if err != nil {
			return ""
		}
		head := s.BodyHead
		s.Close()
		if e.Status == http.StatusOK {
			return nameOf(url, mimeOf(warc.HTTPField(head, "Content-Type")))
		}
		from, err := weburl.Parse(url)
		if err != nil {
			return ""
		}
		to, err := from.Resolve(warc.HTTPField(head, "Location"))
		if err != nil {
			return ""
		}
		url = to.String()
	}
	return ""
}

// relative returns the reference from one file to another.
func relative(from, to string) string {
	a, b := strings.Split(from, "/"), strings.Split(to, "/")
	same := 0
	for same < len(a)-1 && same < len(b)-1 && a[same] == b[same] {
		same++
	}
	return strings.Repeat("../", len(a)-1-same) + strings.Join(b[same:], "/")
}

// writeIndex writes the list of sites.
func (m *mirror) writeIndex() error {
	var text strings.Builder
	text.WriteString("<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Mirror</title>\n<ul>\n")
	for _, page := range m.sites {
		fmt.Fprintf(&text, "<li><a href=\"%s\">%s</a>\n", html.EscapeString(page), html.EscapeString(siteOf(page)))
	}
	return m.root.WriteFile(IndexFile, []byte(text.String()+"</ul>\n"), 0o640)
}
