package extract

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/amble-crawler/amble/internal/htmltree"
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
	text := fewAttributes(toUTF8(body, header.Get("Content-Type")))
	tree := parse(text, o)
	c := newCollector(base, tokens, o, len(text))
	c.read(tree, text, header)
	if c.lateBase { // rare enough to read it all again
		again := newCollector(c.base, tokens, o, len(text))
		again.hasBase = true
		again.read(tree, text, header)
		c = again
	}
	return c.page(), nil
}

const (
	// workPerByte and workFloor bound the work of a document's tree by its size. Of 6,800 pages of
	// documentation none took more than 4 a byte.
	workPerByte, workFloor = 8, 1 << 20
	// maxWork bounds it whatever the size.
	maxWork = 32 << 20
)

// parse builds the tree of a document; nil where that would be too large, too deep or too much
// work.
func parse(text []byte, o Options) *goquery.Document {
	work := min(workPerByte*len(text)+workFloor, maxWork)
	root, _, err := htmltree.Parse(text, htmltree.Cost{Nodes: o.MaxNodes, Work: work})
	if err != nil {
		return nil
	}
	return goquery.NewDocumentFromNode(root)
}

// read reads the document from its tree, or without one where tree is nil.
func (c *collector) read(tree *goquery.Document, text []byte, header http.Header) {
	c.p.Robots = HeaderDirectives(header, c.tokens)
	if tree == nil {
		c.p.Flat = true
		c.readFlat(text)
		return
	}
	for _, root := range tree.Nodes {
		c.walk(root)
	}
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
