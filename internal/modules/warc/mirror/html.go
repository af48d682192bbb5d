//go:build !core

package mirror

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/web/extract"
)

// maxToken bounds a tag or a text that is held in memory. What follows a longer one is copied as it is.
const maxToken = 8 << 20

// document rewrites the references of an HTML document in UTF-8.
type document struct {
	resolve func(ref, base string, c extract.Charset) string
	charset extract.Charset // of queries
	base    string          // of <base>: it is taken out
	style   bool            // the text of a style element follows
	framed  bool            // it is in a frame whose text a page has
}

// rewrite copies a document.
func (d *document) rewrite(w io.Writer, r io.Reader) error {
	z := html.NewTokenizer(r)
	z.SetMaxBuf(maxToken)
	for {
		kind := z.Next()
		raw := slices.Clone(z.Raw())
		if kind == html.ErrorToken {
			if _, err := w.Write(raw); err != nil {
				return err
			}
			if z.Err() == html.ErrBufferExceeded {
				_, err := io.Copy(w, r)
				return err
			}
			return nil // at the end of what is stored, wherever that is
		}
		switch {
		case kind == html.TextToken && d.style:
			raw = styles(raw, d.inSheet)
		case kind == html.StartTagToken || kind == html.SelfClosingTagToken:
			raw = d.tag(z, raw)
		}
		if kind != html.TextToken {
			d.style = kind == html.StartTagToken && bytes.EqualFold(raw[:min(6, len(raw))], []byte("<style"))
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
	}
}

func (d *document) reference(ref string) string { return d.resolve(ref, d.base, d.charset) }

// inSheet is the same for a style sheet, whose queries are in UTF-8.
func (d *document) inSheet(ref string) string { return d.resolve(ref, d.base, "") }

// tag returns a tag with its references rewritten; raw, if it has none.
func (d *document) tag(z *html.Tokenizer, raw []byte) []byte {
	t := z.Token()
	if t.Data == "noscript" {
		z.NextIsNotRawText()
	}
	before := slices.Clone(t.Attr)
	has := func(key, part string) bool {
		i := slices.IndexFunc(before, func(a html.Attribute) bool { return a.Key == key })
		return i >= 0 && strings.Contains(strings.ToLower(before[i].Val), part)
	}
	switch {
	case t.Data == "link" && (has("rel", "preconnect") || has("rel", "dns-prefetch")),
		t.Data == "meta" && has("http-equiv", "content-security-policy"):
		return nil // it would reach the network, or keep the files from each other
	}
	t.Attr = t.Attr[:0:0]
	for _, a := range before {
		switch {
		case a.Key == "integrity" || a.Key == "crossorigin" && t.Data != "a":
			continue // the content is another one, and files have no origin
		case t.Data == "base" && a.Key == "href":
			if d.base == "" {
				d.base = d.charset.Reference(a.Val)
			}
			continue
		}
		a.Val = d.value(t.Data, a.Key, a.Val, has)
		t.Attr = append(t.Attr, a)
	}
	if slices.Equal(before, t.Attr) {
		return raw
	}
	return []byte(t.String())
}

// value returns the value of an attribute.
func (d *document) value(tag, key, value string, has func(key, part string) bool) string {
	switch key {
	case "href", "src", "poster", "background", "data-src", "data-original", "data-lazy-src", "xlink:href",
		"action", "formaction":
		return d.reference(value)
	case "data":
		if tag == "object" {
			return d.reference(value)
		}
	case "srcset", "imagesrcset", "data-srcset":
		return d.candidates(value)
	case "srcdoc":
		if tag == "iframe" && !d.framed {
			var b strings.Builder
			frame := document{resolve: d.resolve, base: d.base, framed: true}
			_ = frame.rewrite(&b, strings.NewReader(value)) // neither fails
			return b.String()
		}
	case "style":
		return string(styles([]byte(value), d.inSheet))
	case "content":
		if tag == "meta" && has("http-equiv", "refresh") {
			return d.refresh(value)
		}
	}
	return value
}

// candidates rewrites the URLs of a srcset.
func (d *document) candidates(value string) string {
	var parts []string
	for rest := value; ; {
		rest = strings.TrimLeft(rest, " \t\r\n\f,")
		if rest == "" {
			return strings.Join(parts, ", ")
		}
		end := strings.IndexAny(rest, " \t\r\n\f")
		if end < 0 {
			end = len(rest)
		}
		ref, descriptor := rest[:end], ""
		if trimmed := strings.TrimRight(ref, ","); trimmed != ref {
			ref, rest = trimmed, rest[end:]
		} else if descriptor, rest, _ = strings.Cut(rest[end:], ","); descriptor != "" {
			descriptor = " " + strings.TrimSpace(descriptor)
		}
		parts = append(parts, strings.TrimRight(d.reference(ref)+descriptor, " "))
	}
}

// refresh rewrites the URL of a refresh.
func (d *document) refresh(value string) string {
	at := strings.Index(strings.ToLower(value), "url=")
	if at < 0 {
		return value
	}
	return value[:at+4] + d.reference(strings.Trim(strings.TrimSpace(value[at+4:]), `"'`))
}
