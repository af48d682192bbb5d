package extract

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxLinkText bounds Link.Text and Link.Rel, in bytes.
const maxLinkText = 256

// prose gathers the visible text of a document, and the text of its links.
type prose struct {
	main  words // of the document, without the parts that repeat on every page of a site
	link  words // of the open link
	links bool

	at     int    // index of the open link in Page.Links; less than 0: none
	anchor region // the open <a>

	unseen    region // invisible: scripts, hidden parts, the inside of controls
	landmark  region // navigation, banner, side bar, footer
	principal region // <main>
	verbatim  region // <pre>, which keeps its line breaks
	section   int    // open sectioning elements, in which header and footer belong to the section
}

// newProse returns a gatherer of the text that the options include; nil for none.
func newProse(o Options) *prose {
	if !o.Text && !o.LinkText {
		return nil
	}
	p := &prose{links: o.LinkText, at: -1}
	if o.Text {
		p.main.max = o.MaxText
	}
	return p
}

// region is a part of a document, from the start to the end of an element.
type region struct {
	element atom.Atom
	nested  int // open elements with that name within; 0: not in the region
}

func (r *region) open(a atom.Atom, begins bool) {
	if r.nested > 0 && a == r.element {
		r.nested++
	} else if r.nested == 0 && begins {
		r.element, r.nested = a, 1
	}
}

// close reports whether the region ends with this end of an element.
func (r *region) close(a atom.Atom) bool {
	if r.nested == 0 || a != r.element {
		return false
	}
	r.nested--
	return r.nested == 0
}

// open takes the start of an element. link is the index of its link; less than 0: none.
func (p *prose) open(a atom.Atom, attrs []html.Attribute, link int, page *Page) {
	if p.links && link >= 0 && a == atom.A {
		p.endLink(page) // it was not closed
		p.at, p.link = link, words{b: p.link.b[:0], max: maxLinkText}
		p.anchor = region{element: a, nested: 1}
	} else {
		p.anchor.open(a, false)
	}
	role := attribute(attrs, "role")
	p.unseen.open(a, isUnseen(a, attrs))
	p.landmark.open(a, isLandmark(a, role, p.section > 0))
	p.verbatim.open(a, isVerbatim(a))
	if a == atom.Main || role == "main" {
		if p.principal.nested == 0 && !p.main.only {
			p.main = words{b: p.main.b[:0], max: p.main.max, only: true} // the text before it is not the document's own
		}
		p.principal.open(a, true)
	} else {
		p.principal.open(a, false)
	}
	if isSection(a) {
		p.section++
	}
	p.boundary(a)
	if a == atom.Img {
		p.alternative(attrs)
	}
}

// close takes the end of an element.
func (p *prose) close(a atom.Atom, page *Page) {
	p.boundary(a)
	if p.anchor.close(a) {
		p.endLink(page)
	}
	p.unseen.close(a)
	p.landmark.close(a)
	p.verbatim.close(a)
	p.principal.close(a)
	if isSection(a) && p.section > 0 {
		p.section--
	}
}

// endLink sets the text of the open link. The first reference to a URL that has a text counts.
func (p *prose) endLink(page *Page) {
	if p.at >= 0 && page.Links[p.at].Text == "" {
		page.Links[p.at].Text = string(p.link.b)
	}
	p.at = -1
}

// finish gives the page its text.
func (p *prose) finish(page *Page) {
	p.endLink(page)
	page.Text = string(p.main.b)
	page.Cut.addIf(p.main.cut, TextBound)
}

// write takes text.
func (p *prose) write(text string) {
	if p.unseen.nested > 0 {
		return
	}
	if p.at >= 0 {
		p.link.write(text, false)
	}
	if p.landmark.nested == 0 && (!p.main.only || p.principal.nested > 0) {
		p.main.write(text, p.verbatim.nested > 0)
	}
}

// alternative takes the text of an image.
func (p *prose) alternative(attrs []html.Attribute) {
	if p.at < 0 || p.unseen.nested > 0 {
		return
	}
	if alt := attribute(attrs, "alt"); alt != "" {
		p.link.gap = max(p.link.gap, wordGap)
		p.link.write(alt, false)
		p.link.gap = wordGap
	}
}

// boundary separates the text around the start or the end of an element.
func (p *prose) boundary(a atom.Atom) {
	g := gapAround(a)
	p.main.gap = max(p.main.gap, g)
	p.link.gap = max(p.link.gap, min(g, wordGap)) // one line
}

// gap is the separation of two words.
type gap uint8

const (
	noGap gap = iota
	wordGap
	lineGap
)

// words joins text with its white space collapsed, up to a bound.
type words struct {
	b     []byte
	max   int // 0: no text is taken
	gap   gap // before the next word
	lines int // line breaks of a verbatim text before the next word
	cut   bool
	only  bool // the text is that of <main>
}

// write takes text. It keeps the line breaks of verbatim text.
func (w *words) write(text string, verbatim bool) {
	for text != "" && w.max > 0 && !w.cut {
		rest := strings.TrimLeft(text, space)
		if between := text[:len(text)-len(rest)]; between != "" {
			w.gap = max(w.gap, wordGap)
			if verbatim {
				w.lines += strings.Count(between, "\n")
			}
		}
		end := strings.IndexAny(rest, space)
		if end < 0 {
			end = len(rest)
		}
		w.word(rest[:end])
		text = rest[end:]
	}
}

func (w *words) word(word string) {
	if word == "" {
		return
	}
	if w.separate(); w.cut {
		return
	}
	room := max(w.max-len(w.b), 0)
	w.b, w.cut = append(w.b, clip(word, room)...), len(word) > room
}

// separate writes the separation between the last word and the next; there must be room for both.
func (w *words) separate() {
	lines := w.lines
	if w.gap == lineGap {
		lines = max(lines, 1)
	}
	spaced := w.gap == wordGap && lines == 0
	w.gap, w.lines = noGap, 0
	switch {
	case len(w.b) == 0 || lines == 0 && !spaced:
	case len(w.b)+max(lines, 1) >= w.max:
		w.cut = true
	case spaced:
		w.b = append(w.b, ' ')
	default:
		w.b = append(w.b, bytes.Repeat([]byte{'\n'}, lines)...)
	}
}

// gapAround returns the separation of the text around the tags of an element.
func gapAround(a atom.Atom) gap {
	switch a {
	case 0, atom.A, atom.Abbr, atom.Acronym, atom.B, atom.Bdi, atom.Bdo, atom.Big, atom.Cite, atom.Code, atom.Data,
		atom.Del, atom.Dfn, atom.Em, atom.Font, atom.I, atom.Ins, atom.Kbd, atom.Label, atom.Mark, atom.Nobr, atom.Q,
		atom.Rb, atom.Rp, atom.Rt, atom.Rtc, atom.Ruby, atom.S, atom.Samp, atom.Small, atom.Span, atom.Strike,
		atom.Strong, atom.Sub, atom.Sup, atom.Time, atom.Tt, atom.U, atom.Var, atom.Wbr, atom.Script, atom.Style,
		atom.Noscript, atom.Template, atom.Meta, atom.Link:
		return noGap
	case atom.Td, atom.Th, atom.Img, atom.Svg, atom.Button, atom.Input, atom.Select, atom.Iframe:
		return wordGap
	}
	return lineGap
}

// isUnseen reports whether the text in an element is invisible.
func isUnseen(a atom.Atom, attrs []html.Attribute) bool {
	switch a {
	case atom.Script, atom.Style, atom.Noscript, atom.Noframes, atom.Noembed, atom.Title, atom.Template, atom.Iframe,
		atom.Svg, atom.Math, atom.Canvas, atom.Audio, atom.Video, atom.Object, atom.Select, atom.Datalist,
		atom.Textarea,
		atom.Button:
		return true
	}
	for i := range attrs {
		switch value := attrs[i].Val; attrs[i].Key {
		case "hidden":
			return true
		case "aria-hidden":
			return value == "true"
		case "style":
			style := strings.ToLower(strings.Join(strings.Fields(value[:min(len(value), maxLinkText)]), ""))
			return strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
		}
	}
	return false
}

// isLandmark reports whether an element contains text around the main text: by its role, or by its
// name if it has no role. A header or footer belongs to the page only outside of sections
// (HTML-AAM, section 3.5).
func isLandmark(a atom.Atom, role string, inSection bool) bool {
	switch role {
	case "navigation", "banner", "contentinfo", "complementary", "search":
		return true
	case "":
		return a == atom.Nav || a == atom.Aside || !inSection && (a == atom.Header || a == atom.Footer)
	}
	return false
}

// isVerbatim reports whether the text in an element is shown with its line breaks.
func isVerbatim(a atom.Atom) bool {
	return a == atom.Pre || a == atom.Listing || a == atom.Xmp || a == atom.Plaintext
}

func isSection(a atom.Atom) bool { return a == atom.Article || a == atom.Section || a == atom.Main }

// walk passes the nodes below root to the gatherer of text, in document order. It needs no stack:
// the nodes know their parents. references are the links among them, in the same order. Nodes that
// a rule ignores are left out.
func (p *prose) walk(root *html.Node, references []reference, c *collector) {
	page := &c.p
	for n := root; n != nil; {
		switch n.Type {
		case html.ElementNode:
			link := -1
			if len(references) > 0 && references[0].node == n {
				link, references = references[0].link, references[1:]
			}
			p.open(n.DataAtom, n.Attr, link, page)
		case html.TextNode:
			p.write(n.Data)
		}
		if n.FirstChild != nil && !c.selected.Ignored[n] {
			n = n.FirstChild
			continue
		}
		p.leave(n, page)
		for n != root && n.NextSibling == nil {
			n = n.Parent
			p.leave(n, page)
		}
		if n == root {
			return
		}
		n = n.NextSibling
	}
}

// leave takes the end of a node.
func (p *prose) leave(n *html.Node, page *Page) {
	if n.Type == html.ElementNode {
		p.close(n.DataAtom, page)
	}
}
