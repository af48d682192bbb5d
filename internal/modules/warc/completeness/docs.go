//go:build !core

package completeness

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// The bounds of what a Scan keeps in memory.
const (
	maxDocs  = 200_000
	maxTexts = 1_000_000
)

// Docs are what stored documents name. The zero value is empty. It is plain data, which nodes of a cluster send.
type Docs struct {
	Texts []string `json:"texts"` // URLs; each has its index here as its number
	List  []Doc    `json:"list"`
	Cut   bool     `json:"cut,omitempty"` // there were more than are kept

	numbers map[string]int32
	known   map[int32]int // index in List by URL
}

// Doc is what one document names, by the newest capture that says it.
type Doc struct {
	URL       int32   `json:"url"`
	At        int64   `json:"at"` // of the capture, in Unix seconds
	Page      bool    `json:"page,omitempty"`
	Parts     []int32 `json:"parts,omitempty"` // its requisites; of a redirect, its target
	Redirects bool    `json:"to,omitempty"`    // Parts is where it leads
	LeftOut   int     `json:"left,omitempty"`  // beyond archive.requisites_per_page
	Bare      bool    `json:"bare,omitempty"`  // it is of a kind that is made of nothing
	repeats   bool    // only captures were seen that are unchanged, and name nothing themselves
}

// mayName reports whether a capture may be one of a document that is made of others, or of a redirect.
func mayName(e *warc.Entry) bool {
	kind, rest, _ := strings.Cut(e.Mime, "/")
	switch {
	case e.Status/100 == 3:
		return true
	case e.Status != http.StatusOK:
		return false
	case kind == "text", kind == "application", kind == "", e.Mime == warc.MimeRevisit:
		return !strings.HasPrefix(rest, "javascript") && !strings.HasPrefix(rest, "font")
	}
	return false
}

// number returns the number of a URL; false: there are too many.
func (d *Docs) number(url string) (int32, bool) {
	if d.numbers == nil {
		d.index()
	}
	n, known := d.numbers[url]
	switch {
	case known:
		return n, true
	case len(d.Texts) >= maxTexts:
		d.Cut = true
		return 0, false
	}
	n = int32(len(d.Texts))
	d.Texts = append(d.Texts, url)
	d.numbers[url] = n
	return n, true
}

// index makes the maps of what a node has sent.
func (d *Docs) index() {
	d.numbers, d.known = make(map[string]int32, len(d.Texts)), make(map[int32]int, len(d.List))
	for i, text := range d.Texts {
		d.numbers[text] = int32(i)
	}
	for i := range d.List {
		d.known[d.List[i].URL] = i
	}
}

// doc returns what the document of a URL names; nil: it is not known.
func (d *Docs) doc(url int32) *Doc {
	if i, known := d.known[url]; known {
		return &d.List[i]
	}
	return nil
}

// put takes what a document names, unless a newer capture has said it.
func (d *Docs) put(url string, doc Doc, parts []string) {
	n, ok := d.number(url)
	if !ok {
		return
	}
	doc.URL = n
	for _, p := range parts {
		if number, ok := d.number(p); ok {
			doc.Parts = append(doc.Parts, number)
		}
	}
	switch before := d.doc(n); {
	case before == nil && len(d.List) >= maxDocs:
		d.Cut = true
	case before == nil:
		d.known[n] = len(d.List)
		d.List = append(d.List, doc)
	case doc.At >= before.At && !doc.repeats || before.repeats:
		doc.Page = doc.Page || before.Page && doc.repeats
		*before = doc
	}
}

// take takes a capture. said is false if it is unchanged since one that says what it names.
func (d *Docs) take(t *warcfiles.Told) (said bool) {
	doc := Doc{At: t.Entry.Time.Unix(), Page: isHTML(t.Entry.Mime)}
	var parts []string
	isSame, isPart := t.Entry.Mime == warc.MimeRevisit, false
	for _, f := range t.Fields {
		switch f.Name {
		case "kind", "robots-of", "captured-with":
			doc.Page, isPart = false, true
		case "changed":
			isSame = isSame || f.Value == "false"
		case "requisite":
			parts = append(parts, f.Value)
		case "requisites-left-out":
			doc.LeftOut, _ = strconv.Atoi(f.Value)
		}
	}
	if t.Entry.Mime == warc.MimeRevisit && len(parts) > 0 && !isPart {
		doc.Page = true // equal to a page of another URL
	}
	if t.Entry.Status/100 == 3 && t.Entry.Status != http.StatusNotModified {
		doc.Page, doc.Redirects, parts = false, true, nil
		if u, err := weburl.Parse(t.Entry.URL); err == nil {
			if target, err := u.Resolve(warc.HTTPField(t.Head, "Location")); err == nil {
				parts = []string{target.String()}
			}
		}
		isSame = false
	}
	doc.repeats = isSame && len(parts) == 0 && doc.LeftOut == 0
	d.put(t.Entry.URL, doc, parts)
	return !doc.repeats
}

func isHTML(mime string) bool {
	mime = strings.ToLower(mime)
	return mime == "text/html" || mime == "application/xhtml+xml"
}

// Add adds what another node has.
func (d *Docs) Add(more *Docs) {
	for i := range more.List {
		doc := more.List[i]
		parts := make([]string, 0, len(doc.Parts))
		for _, p := range doc.Parts {
			parts = append(parts, more.Texts[p])
		}
		doc.Parts = nil
		d.put(more.Texts[doc.URL], doc, parts)
	}
	d.Cut = d.Cut || more.Cut
}

// isSound reports whether what a node has sent refers to texts that are there.
func (d *Docs) isSound() bool {
	ok := func(n int32) bool { return n >= 0 && int(n) < len(d.Texts) }
	for i := range d.List {
		if !ok(d.List[i].URL) {
			return false
		}
		for _, p := range d.List[i].Parts {
			if !ok(p) {
				return false
			}
		}
	}
	return true
}

// Scan reads what all documents of an archive name, also those that a running crawl writes.
func (d *Docs) Scan(ctx context.Context, c *warcfiles.Collection) error {
	files, err := c.Files()
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Format != warcfiles.Name {
			continue
		}
		if err := c.Tell(ctx, f, mayName, func(t *warcfiles.Told) error { d.take(t); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// WantedDoc is a document that is looked for: its newest capture until a time says what it names.
type WantedDoc struct {
	URL string    `json:"url"`
	At  time.Time `json:"at"`
}

// Find reads what some documents of an archive name. One of a kind that is made of nothing names nothing.
func (d *Docs) Find(ctx context.Context, c *warcfiles.Collection, wanted []WantedDoc) error {
	for _, w := range wanted {
		err := c.TellOf(ctx, w.URL, w.At, func(t *warcfiles.Told) (more bool) {
			if isOne := mayName(&t.Entry); isOne || t.Entry.Status != http.StatusOK {
				return !isOne || !d.take(t)
			}
			d.put(t.Entry.URL, Doc{At: t.Entry.Time.Unix(), Bare: true}, nil)
			return false
		})
		if err != nil {
			return err
		}
	}
	return nil
}
