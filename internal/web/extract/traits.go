package extract

import "golang.org/x/net/html/atom"

// traits are the properties of an element that the tree construction needs, by its name (HTML,
// sections 13.2.4.2 and 13.2.6.4).
type traits uint32

const (
	special    traits = 1 << iota // an end tag of another name does not reach past it
	scope                         // ends the scope of all elements but those of tables
	noButton                      // ends the scope of p
	noList                        // ends the scope of li
	tableEnd                      // ends the scope of the parts of tables
	void                          // has no content and no end tag
	block                         // its start tag closes a p, its end tag all elements open in it
	heading                       // h1 to h6: one closes another
	implied                       // its end tag may be left out
	formatting                    // its end tag closes it from within other elements
	inHead                        // stays in the head
	content                       // a document that has it has no frameset
	tablePart                     // is in a table only
	rawText                       // has only text, up to its end tag
)

// traitsOf returns the traits of an HTML element.
func traitsOf(a atom.Atom) traits {
	switch a {
	case atom.Div, atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Center, atom.Details,
		atom.Dir, atom.Dl,
		atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.Header, atom.Hgroup, atom.Main,
		atom.Menu, atom.Nav, atom.Section, atom.Summary:
		return special | block
	case atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small, atom.Strike,
		atom.Strong, atom.Tt, atom.U:
		return formatting
	case atom.P:
		return special | block | implied
	case atom.Li, atom.Dd, atom.Dt:
		return special | implied | content
	case atom.Ul, atom.Ol:
		return special | block | noList
	case atom.Dialog, atom.Search:
		return block
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return special | block | heading
	case atom.Pre, atom.Listing:
		return special | block | content
	case atom.Br, atom.Img, atom.Area, atom.Embed, atom.Hr, atom.Keygen, atom.Wbr:
		return special | void | content
	case atom.Input, atom.Param, atom.Source, atom.Track:
		return special | void
	case atom.Base, atom.Basefont, atom.Bgsound, atom.Link, atom.Meta:
		return special | void | inHead
	case atom.Noframes, atom.Script, atom.Style, atom.Title:
		return special | inHead | rawText
	case atom.Template:
		return special | scope | tableEnd | inHead | content
	case atom.Td, atom.Th, atom.Caption:
		return special | scope | tablePart
	case atom.Tr, atom.Tbody, atom.Thead, atom.Tfoot, atom.Colgroup:
		return special | tablePart
	case atom.Col:
		return special | void | tablePart
	case atom.Table:
		return special | scope | tableEnd | content
	case atom.Html:
		return special | scope | tableEnd
	case atom.Applet, atom.Marquee, atom.Object, atom.Select:
		return special | scope | content
	case atom.Button:
		return special | noButton | content
	case atom.Textarea, atom.Iframe, atom.Xmp:
		return special | content | rawText
	case atom.Noembed:
		return special | rawText
	case atom.Head, atom.Body, atom.Frameset, atom.Noscript, atom.Plaintext:
		return special
	case atom.Frame:
		return special | void
	case atom.Option, atom.Optgroup, atom.Rb, atom.Rp, atom.Rt, atom.Rtc:
		return implied
	}
	return 0
}

// isBreakout reports whether an element is never one of SVG or MathML (HTML, section 13.2.6.5).
func isBreakout(a atom.Atom) bool {
	switch a {
	case atom.B, atom.Big, atom.Blockquote, atom.Body, atom.Br, atom.Center, atom.Code, atom.Dd, atom.Div, atom.Dl,
		atom.Dt, atom.Em, atom.Embed, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Head, atom.Hr, atom.I,
		atom.Img, atom.Li, atom.Listing, atom.Menu, atom.Meta, atom.Nobr, atom.Ol, atom.P, atom.Pre, atom.Ruby, atom.S,
		atom.Small, atom.Span, atom.Strong, atom.Strike, atom.Sub, atom.Sup, atom.Table, atom.Tt, atom.U, atom.Ul,
		atom.Var:
		return true
	}
	return false
}
