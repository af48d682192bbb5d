package extract

import "strings"

// Bounds are the bounds that left something of a document out.
type Bounds uint8

// The bounds.
const (
	// DocumentBound: the document has more bytes than MaxDocument. HTML does not set it, because
	// its callers cut the document.
	DocumentBound Bounds = 1 << iota
	// NodesBound: the tree has Options.MaxNodes nodes; nothing behind them was read.
	NodesBound
	// DetailBound: the tree has three quarters of Options.MaxNodes; only links and directives were
	// read behind them.
	DetailBound
	// DepthBound: elements deeper than Options.MaxDepth were not read.
	DepthBound
	// LinksBound: the page has Options.MaxLinks links, or four times as many refused references.
	LinksBound
	// ReferencesBound: the references have too many bytes together.
	ReferencesBound
	// TextBound: the text is longer than Options.MaxText.
	TextBound
	// FieldsBound: selectors or values of fields reached one of the bounds of rules.
	FieldsBound
)

// String returns the names of the bounds, such as "nodes, links".
func (b Bounds) String() string { return strings.Join(b.Names(), ", ") }

// Names returns the names of the bounds.
func (b Bounds) Names() (names []string) {
	for i, name := range [...]string{
		"document", "nodes", "detail", "depth", "links", "references", "text", "fields",
	} {
		if b&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// addIf adds a bound if it left something out.
func (b *Bounds) addIf(reached bool, bound Bounds) {
	if reached {
		*b |= bound
	}
}
