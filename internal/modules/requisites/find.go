//go:build !core

package requisites

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

const (
	// maxReferences bounds the different references of a document that are resolved.
	maxReferences = 20_000
	// maxManifest is how many bytes of a manifest are read.
	maxManifest = 1 << 20
)

// Find returns what a document is made of, each URL once and at most so many, and how many are left out. Those that
// lead to more come first, then the others in the order of the document. base is the URL that it was fetched from.
func Find(text []byte, contentType string, base weburl.URL, most int) (all []extract.Requisite, left int) {
	f := finder{self: base, base: base, most: most, seen: make(map[weburl.URL]bool), texts: make(map[reference]bool)}
	switch kindOf(text, contentType, base) {
	case page:
		text, f.charset = extract.Text(text, contentType)
		f.page(text)
	case sheet:
		text, _ = extract.Text(text, contentType)
		f.sheet(text)
	case manifest:
		f.manifest(text)
	}
	all = append(f.leading, f.others...)
	return all[:min(len(all), most)], f.left + max(len(all)-most, 0)
}

// kind is a kind of document.
type kind uint8

const (
	other kind = iota
	page
	sheet
	manifest
)

// kindOf returns the kind of a document, by its type and, if that says little, by its name.
func kindOf(text []byte, contentType string, u weburl.URL) kind {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	name, _, _ := strings.Cut(u.RequestURI(), "?")
	vague := media == "" || media == "text/plain" || media == "application/octet-stream"
	switch {
	case media == "text/css", vague && path.Ext(name) == ".css":
		return sheet
	case media == "application/manifest+json", vague && path.Ext(name) == ".webmanifest",
		media == "application/json" && (path.Ext(name) == ".webmanifest" || path.Base(name) == "manifest.json"):
		return manifest
	case extract.IsHTML(contentType, text):
		return page
	}
	return other
}

// finder gathers what one document is made of.
type finder struct {
	self, base      weburl.URL
	charset         extract.Charset // of queries in the page; style sheets and manifests have them in UTF-8
	most            int
	framed          bool // in a frame whose text the page has
	left            int  // beyond most, of a kind, or beyond maxReferences
	seen            map[weburl.URL]bool
	texts           map[reference]bool // of references, from the base in force
	references      int                // different ones that were resolved
	leading, others []extract.Requisite
}

// reference is one as it stands.
type reference struct {
	text    string
	charset extract.Charset
}

// add takes a reference.
func (f *finder) add(text string, leads bool) {
	text = strings.Trim(text, " \t\n\f\r")
	into := &f.others
	if leads {
		into = &f.leading
	}
	r := reference{text, f.charset}
	if text == "" || text[0] == '#' || f.texts[r] {
		return
	}
	if f.references >= maxReferences {
		f.left++
		return
	}
	f.references++
	f.texts[r] = true
	u, err := f.base.Resolve(f.charset.Reference(text))
	if err != nil || u == f.self || f.seen[u] {
		return
	}
	f.seen[u] = true
	if len(*into) >= f.most {
		f.left++
		return
	}
	*into = append(*into, extract.Requisite{URL: u, Leads: leads})
}

// addImage takes the reference to an image.
func (f *finder) addImage(reference string) { f.add(reference, false) }

// manifest takes the icons of a web app manifest.
func (f *finder) manifest(text []byte) {
	var m struct {
		Icons []struct {
			Src string `json:"src"`
		} `json:"icons"`
	}
	text = bytes.TrimPrefix(text[:min(len(text), maxManifest)], []byte("\xef\xbb\xbf"))
	if json.Unmarshal(text, &m) != nil {
		return
	}
	for _, icon := range m.Icons {
		f.add(icon.Src, false)
	}
}
