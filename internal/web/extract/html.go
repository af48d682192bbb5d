package extract

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/PuerkitoBio/goquery"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// MaxDocument is how many bytes of a document callers read: so the memory of a parser has a bound
// that does not depend on fetch.max_body. HTML itself does not cut a document.
const MaxDocument = 8 << 20

// errNoBase is the error of a call of HTML that could not resolve any reference.
var errNoBase = errors.New("the document has no URL to resolve its links against")

// HTML reads an HTML document. base is the URL from which it was fetched, header is that of its
// response, and tokens are the names under which robots directives address this crawler. Body is
// neither kept nor changed. Broken markup is never an error: an error means that the options are
// not valid or base is missing. HTML keeps no state and is safe for concurrent use.
func HTML(body []byte, header http.Header, base weburl.URL, tokens []string, o Options) (Page, error) {
	if err := o.Validate(); err != nil {
		return Page{}, err
	}
	if base.IsZero() {
		return Page{}, fmt.Errorf("extract: %w", errNoBase)
	}
	text, charset := Text(body, header.Get("Content-Type"))
	c := newCollector(base, tokens, o, len(text))
	c.charset = charset
	c.p.Robots = HeaderDirectives(header, tokens)
	rule, number := o.ruleFor(base)
	prose := newProse(o)
	c.p.Rule, c.p.Whole = number, rule != nil || prose != nil
	tree := buildTree(text, o, c.p.Whole)
	if rule != nil {
		c.selected = rule.Apply(tree.root, speaking{&c.o}.Match)
		c.p.Fields = c.selected.Fields
	}
	c.p.Robots.Terms = tree.terms
	references := c.take(goquery.NewDocumentFromNode(tree.root))
	if prose != nil {
		prose.walk(tree.root, references, c)
		prose.finish(&c.p)
	}
	c.p.Flat = tree.flat
	c.p.Cut |= tree.cut
	c.p.Cut.addIf(c.selected.Cut, FieldsBound)
	c.p.NeedsBrowser = needsBrowser(text, c.p.Links)
	return c.p, nil
}

// Text returns a document in UTF-8, with a bounded number of attributes in a tag, and the encoding for its queries. The
// text may be the body itself.
func Text(body []byte, contentType string) ([]byte, Charset) {
	text, charset := decoded(body, contentType)
	return fewAttributes(text), charset
}

// IsHTML reports whether a response is an HTML or XHTML document, by its Content-Type, or by its
// first bytes if that is missing or no media type.
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

// mediaType returns the media type of a Content-Type without its parameters, in lower case, even if
// the parameters are invalid.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}
