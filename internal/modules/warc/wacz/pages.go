//go:build !core

package wacz

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// page is a line of a list of pages.
type page struct {
	ID    string `json:"id"`
	URL   string `json:"url"`
	Time  string `json:"ts"`
	Title string `json:"title,omitzero"`
	Text  string `json:"text,omitzero"`
}

// mayBePage reports whether a capture may be a page that people look at. The media type of a revisit record is that of
// its original, which is looked at later.
func mayBePage(e *warc.Entry) bool {
	return e.Status == http.StatusOK && (e.Mime == warc.MimeRevisit || isHTML(e.Mime))
}

func isHTML(mime string) bool {
	mime = strings.ToLower(mime)
	return mime == "text/html" || mime == "application/xhtml+xml"
}

// page takes a record into the lists: a page waits for its metadata record, which says whether it is a seed, or no page
// at all.
func (r *recordReader) page(ctx context.Context, rec *warc.Record, e *warc.Entry, isPage bool,
	head, body []byte) error {
	if r.waiting != nil && rec.Type() == warc.TypeMetadata && rec.Header.Get(warc.FieldConcurrentTo) == r.answer {
		fields := append([]byte("\r\n"), head...)
		if bytes.Contains(fields, []byte("\r\nkind: requisite\r\n")) {
			r.waiting = nil // a frame, which is shown with its page
			return nil
		}
		return r.put(bytes.Contains(fields, []byte("\r\nseed: true\r\n")))
	}
	if rec.Type() != warc.TypeResponse && rec.Type() != warc.TypeRevisit {
		return nil
	}
	if err := r.flush(); err != nil || !isPage {
		return err
	}
	if e.Mime == warc.MimeRevisit {
		var err error
		if head, body, err = r.original(ctx, *e); err != nil || !isHTML(mediaType(head)) {
			return err
		}
	}
	id := strings.TrimSuffix(strings.TrimPrefix(rec.Header.Get(warc.FieldRecordID), "<urn:uuid:"), ">")
	r.waiting = &page{ID: id, URL: e.URL, Time: e.Time.UTC().Format(time.RFC3339)}
	r.answer = rec.Header.Get(warc.FieldRecordID)
	r.waiting.read(head, body)
	return nil
}

func mediaType(head []byte) string {
	mime, _, _ := strings.Cut(warc.HTTPField(head, "Content-Type"), ";")
	return strings.TrimSpace(mime)
}

// original reads the response that a revisit record refers to. One that is not there has no text.
func (r *recordReader) original(ctx context.Context, e warc.Entry) (head, body []byte, err error) {
	s, err := r.p.c.Open(ctx, e)
	if err != nil {
		return nil, nil, ctx.Err()
	}
	defer s.Close()
	body, _ = io.ReadAll(io.LimitReader(s.Body, extract.MaxDocument)) // what cannot be read has no text
	return s.BodyHead, body, nil
}

// read fills in title and text. A page that cannot be read has none.
func (p *page) read(head, body []byte) {
	defer func() { _ = recover() }() // the content is hostile: it costs its own text
	base, err := weburl.Parse(p.URL)
	if err != nil {
		return
	}
	response := io.MultiReader(bytes.NewReader(head), bytes.NewReader(body))
	resp, err := http.ReadResponse(bufio.NewReader(response), nil)
	if err != nil {
		return
	}
	plain, release, err := fetch.Decode(resp.Header, resp.Body)
	if err != nil {
		return
	}
	defer release()
	text, _ := io.ReadAll(io.LimitReader(plain, extract.MaxDocument)) // of a body that broke off: its start
	o := extract.DefaultOptions()
	o.Text = true
	read, err := extract.HTML(text, resp.Header, base, nil, o)
	if err != nil {
		return
	}
	p.Title, p.Text = read.Title, read.Text
}

// flush adds the page that waits: it has no metadata record.
func (r *recordReader) flush() error {
	if r.waiting == nil {
		return nil
	}
	return r.put(false)
}

// put adds the page that waits to its list.
func (r *recordReader) put(seed bool) error {
	p := r.p
	list := p.unfinished.waiting[2]
	if seed {
		list = p.unfinished.waiting[1]
		if p.r.Seeds++; p.r.Seeds == 1 {
			p.home = *r.waiting
		}
	}
	if p.home.URL == "" {
		p.home = *r.waiting
	}
	p.r.Pages++
	err := list.add(r.waiting)
	r.waiting = nil
	return err
}

// add adds a value as a line.
func (w *waiting) add(value any) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	return lines.Encode(value)
}

// writeList adds a list of pages.
func (p *packer) writeList(name string, list *waiting) error {
	if err := list.Flush(); err != nil {
		return err
	}
	return p.part(name, zip.Deflate, func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(list.f, 0, list.n))
		return err
	})
}
