package extract

import (
	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Rule says what is taken from some pages. The rules of modules are plugged in by Options.Rules.
type Rule interface {
	IsFor(page weburl.URL) bool // reports whether the rule applies to a page
	// Apply matches the rule against a document. speaks reports whether an element has links or other data for a
	// crawler.
	Apply(root *html.Node, speaks func(*html.Node) bool) Selection
}

// Selection is what a rule selects of a document. The zero value leaves out nothing and takes nothing.
type Selection struct {
	Muted   map[*html.Node]bool // elements whose links do not count
	Ignored map[*html.Node]bool // elements that are not read, with their content
	Fields  map[string]any      // see [Page]
	Cut     bool                // a bound left out matches or values
}

// ruleFor returns the first rule that applies to a page, and its number, counted from 1; nil and 0 if there is none.
func (o *Options) ruleFor(u weburl.URL) (Rule, int) {
	for i, r := range o.Rules {
		if r.IsFor(u) {
			return r, i + 1
		}
	}
	return nil, 0
}
