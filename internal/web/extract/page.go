package extract

import (
	"fmt"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Kind says where a link was found. The numbers are stored: a kind is added at the end and never
// renumbered.
type Kind uint8

// The kinds of link.
const (
	Anchor    Kind = 0 // <a href>
	Area      Kind = 1 // <area href>
	Frame     Kind = 2 // <frame src>
	Iframe    Kind = 3 // <iframe src>
	Relation  Kind = 4 // <link rel=next|prev|alternate href>
	Canonical Kind = 5 // <link rel=canonical href>
	Refresh   Kind = 6 // <meta http-equiv=refresh>
	Sitemap   Kind = 7 // <link rel=sitemap href>
	Form      Kind = 8 // <form action> with method GET; only with Options.Forms
	Media     Kind = 9 // images, video, sound and embedded objects; only with Options.Media
)

// String returns the name of the kind, such as "anchor".
func (k Kind) String() string {
	names := [...]string{"anchor", "area", "frame", "iframe", "link", "canonical", "refresh", "sitemap",
		"form", "media"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind_%d", uint8(k))
}

// Link is one reference to another resource.
type Link struct {
	URL weburl.URL
	// Kind is where the URL was found first.
	Kind Kind
	// NoFollow means that every reference to the URL has rel=nofollow, ugc or sponsored.
	NoFollow bool
	// Text is the visible text of the link, at most 256 bytes: the text of an <a> with its white
	// space collapsed and images replaced by their alternative text. Rel is the rel attribute of
	// the first reference, in lower case and at most 256 bytes. Both are set only with
	// Options.LinkText.
	Text, Rel string
}

// Requisite is a URL that a document is made of.
type Requisite struct {
	URL   weburl.URL
	Leads bool // it may be made of more itself: a style sheet, a manifest
}

// Page is the extracted content of a document.
type Page struct {
	// Title is the text of the first <title>, white space collapsed, at most 1 KiB.
	Title string
	// Generator is the content of the first <meta name=generator>, at most 256 bytes.
	Generator string
	// Language is the lang attribute of <html>, empty if there is none.
	Language string
	// Base is the base of references: the document's <base href>, or its URL.
	Base weburl.URL
	// Links are in document order, each URL once. References within the document itself (#fragment)
	// are left out.
	Links []Link
	// Canonical is the target of the first usable <link rel=canonical>. It is
	// among Links too.
	Canonical weburl.URL
	// Robots are the directives of the document and its header for crawlers.
	Robots Directives
	// Text is the visible text, only with Options.Text: that of <main> if the document has one,
	// else everything except navigation, banners, side bars and footers. White space is collapsed,
	// and blocks are separated by a newline. It has at most Options.MaxText bytes.
	Text string
	// Cut are the bounds that left something out; 0: none did.
	Cut Bounds
	// Flat means that elements are nested too deep. Elements beyond the bound were read as
	// siblings.
	Flat bool
	// Fields are the values that the rule for the page takes, by name: a string, or a []string if
	// the field is a list. Fields without a value are left out.
	Fields map[string]any
	// Rule is the number of the item of Options.Rules that applies to the page, counted from 1; 0:
	// none does. Whole means that the tree had all elements and texts, and not only those that
	// links and directives need: the options or the rule need them.
	Rule  int
	Whole bool
	// NeedsBrowser means that the document has scripts, hardly a link and hardly text: scripts make
	// its content, and nothing here runs them.
	NeedsBrowser bool
	// Refused counts the references that are no http or https URL.
	Refused int
}

// Options bound the cost of one document. Start from [DefaultOptions].
type Options struct {
	// MaxLinks bounds Page.Links.
	MaxLinks int
	// MaxNodes bounds the nodes of the tree, 100 to 150 bytes each. Nothing behind them is read.
	// From three quarters of them on, only elements that links and directives need become nodes.
	MaxNodes int
	// MaxDepth is the depth below which elements are ignored.
	MaxDepth int
	// Forms includes links to the actions of forms, Media links to images, video, sound and
	// embedded objects.
	Forms, Media bool
	// Text includes Page.Text, LinkText includes Link.Text and Link.Rel.
	Text, LinkText bool
	// MaxText bounds Page.Text, in bytes.
	MaxText int
	// Rules say what is taken from some pages. The first that applies to a page counts.
	Rules []Rule
}

// DefaultOptions returns bounds that ordinary documents do not reach: 10,000 links, 500,000 nodes,
// 512 levels, 256 KiB of text. Forms, media and text are not included.
func DefaultOptions() Options {
	return Options{MaxLinks: 10_000, MaxNodes: 500_000, MaxDepth: 512, MaxText: 256 << 10}
}

// Validate reports a bound that is needed and not positive, by its name.
func (o Options) Validate() error {
	for _, v := range []struct {
		name  string
		value int
	}{{"MaxLinks", o.MaxLinks}, {"MaxNodes", o.MaxNodes}, {"MaxDepth", o.MaxDepth}, {"MaxText", o.MaxText}} {
		if v.value <= 0 && (v.name != "MaxText" || o.Text) {
			return fmt.Errorf("extract: %s %d: must be more than 0", v.name, v.value)
		}
	}
	return nil
}
