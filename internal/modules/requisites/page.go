//go:build !core

package requisites

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// attributes are those of an element that count, by name.
type attributes map[string]string

// read reads the attributes of the current tag. Of equal names the first counts.
func (a attributes) read(z *extract.Tokenizer) {
	clear(a)
	for more := true; more; {
		var key, value []byte
		if key, value, more = z.TagAttr(); !counts(string(key)) {
			continue
		}
		if _, twice := a[string(key)]; !twice {
			a[string(key)] = string(value)
		}
	}
}

// counts reports whether an attribute may have a reference, or says what one is.
func counts(name string) bool {
	switch name {
	case "href", "xlink:href", "src", "srcset", "imagesrcset", "rel", "as", "type", "poster", "data",
		"background", "style", "srcdoc", "data-src", "data-srcset", "data-original", "data-lazy-src":
		return true
	}
	return false
}

// page takes what an HTML document in UTF-8 refers to.
func (f *finder) page(text []byte) {
	z, a, hasBase, inStyle := extract.NewTokenizer(bytes.NewReader(text)), make(attributes), false, false
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			if inStyle {
				f.sheet(bytes.Clone(z.Text()))
			}
			inStyle = false
		case html.StartTagToken, html.SelfClosingTagToken:
			tag, _ := z.TagName()
			name := string(tag)
			a.read(z)
			if inStyle = name == "style"; name == "base" && a["href"] != "" && !hasBase {
				hasBase = true
				if u, err := f.base.Resolve(f.charset.Reference(strings.TrimSpace(a["href"]))); err == nil {
					f.setBase(u)
				}
				continue
			}
			if name == "noscript" { // what browsers without scripts show: the images of lazy ones
				z.NextIsNotRawText()
			}
			f.element(name, a)
		default:
			inStyle = false
		}
	}
}

// setBase sets the base of the references to come.
func (f *finder) setBase(u weburl.URL) {
	if u != f.base {
		f.base = u
		clear(f.texts)
	}
}

// element takes what an element refers to.
func (f *finder) element(name string, a attributes) {
	switch name {
	case "link":
		f.link(a)
	case "script", "embed", "track":
		f.add(a["src"], false)
	case "img", "source", "video", "audio":
		f.add(a["src"], false)
		f.add(a["poster"], false)
		extract.EachCandidate(a["srcset"], f.addImage)
		f.add(a["data-src"], false)
		extract.EachCandidate(a["data-srcset"], f.addImage)
		f.add(a["data-original"], false)
		f.add(a["data-lazy-src"], false)
	case "input":
		if strings.EqualFold(a["type"], "image") {
			f.add(a["src"], false)
		}
	case "image", "use": // of SVG
		f.add(a["href"], false)
		f.add(a["xlink:href"], false)
	case "object":
		f.add(a["data"], false)
	case "iframe":
		if text := a["srcdoc"]; text != "" && !f.framed {
			base, charset := f.base, f.charset
			f.framed, f.charset = true, "" // the text of an attribute has no encoding
			f.page([]byte(text))
			f.framed, f.charset = false, charset
			f.setBase(base)
		}
	}
	f.add(a["background"], false)
	if a["style"] != "" {
		f.sheet([]byte(a["style"]))
	}
}

// link takes a link to something that a browser loads with the page.
func (f *finder) link(a attributes) {
	for word := range strings.FieldsSeq(strings.ToLower(a["rel"])) {
		switch word {
		case "stylesheet", "manifest":
			f.add(a["href"], true)
		case "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "modulepreload":
			f.add(a["href"], false)
		case "preload":
			if as := strings.ToLower(strings.TrimSpace(a["as"])); as != "document" {
				f.add(a["href"], as == "style")
				extract.EachCandidate(a["imagesrcset"], f.addImage)
			}
		}
	}
}
