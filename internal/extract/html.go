package extract

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/weburl"
)

// errNoBase is a call of HTML that could not resolve any reference.
var errNoBase = errors.New("the document has no URL to resolve its links against")

// HTML reads an HTML document. base is the URL it was fetched from, header that
// of its response, and tokens are the names under which robots directives
// address this crawler. Body is not kept
// and not changed. Markup, however broken, is never an error: an error means
// that the options are not valid or base is missing. HTML keeps no state and is
// safe for concurrent use.
func HTML(body []byte, header http.Header, base weburl.URL, tokens []string, o Options) (Page, error) {
	if err := o.Validate(); err != nil {
		return Page{}, err
	}
	if base.IsZero() {
		return Page{}, fmt.Errorf("extract: %w", errNoBase)
	}
	text := toUTF8(body, header.Get("Content-Type"))
	c := newCollector(base, tokens, o, len(text))
	c.p.Robots = HeaderDirectives(header, tokens)
	c.read(text)
	if c.lateBase { // rare enough to read it all again
		again := newCollector(c.base, tokens, o, len(text))
		again.hasBase = true
		again.p.Robots = HeaderDirectives(header, tokens)
		again.read(text)
		c = again
	}
	return c.page(), nil
}

// read has the document read from its tree, or without one.
func (c *collector) read(text []byte) {
	if !c.readTree(text) {
		c.readFlat(text)
	}
}

// readTree reads the document from its parsed tree. It reports false, with
// nothing read, where that tree would be too large or too deep.
func (c *collector) readTree(text []byte) bool {
	if treeCost(text, c.o.MaxNodes) > c.o.MaxNodes {
		return false
	}
	root, err := html.ParseWithOptions(bytes.NewReader(text), html.ParseOptionEnableScripting(false)) // <noscript> is for us
	if err != nil {
		return false
	}
	for _, root := range goquery.NewDocumentFromNode(root).Nodes {
		c.walk(root)
	}
	return true
}

// IsHTML reports whether a response is an HTML or XHTML document: by its
// Content-Type, or by its first bytes where that is missing or no media type.
func IsHTML(contentType string, body []byte) bool {
	media := mediaType(contentType)
	switch media {
	case "text/html", "application/xhtml+xml":
		return true
	case "", "unknown/unknown", "application/unknown", "*/*":
		return mediaType(http.DetectContentType(body)) == "text/html"
	}
	return !strings.Contains(media, "/") && mediaType(http.DetectContentType(body)) == "text/html"
}

// mediaType is the media type of a Content-Type without its parameters, in
// lower case, whatever state the parameters are in.
func mediaType(contentType string) string {
	if media, _, err := mime.ParseMediaType(contentType); err == nil {
		return media
	}
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}
