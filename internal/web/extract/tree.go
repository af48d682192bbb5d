package extract

import (
	"bytes"
	"hash/fnv"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// maxOpen bounds the open elements, and the depth of the tree. Deeper elements become siblings.
	maxOpen = 510
	// maxSearch bounds how many open elements are searched for an end tag, or for a start tag that
	// implies one.
	maxSearch = 128
	// maxKeys bounds the attributes of an element in the tree; those with data for a crawler are
	// kept beyond it.
	maxKeys = 128
	// slabSize is the most nodes that are allocated at a time.
	slabSize = 512
)

// builder makes the tree of a document from its tokens. Each token costs a bounded number of steps.
// The tree of a well-formed document is that of a browser; docs/EXTRACTION.md has the differences.
type builder struct {
	openElements
	root      *html.Node
	document  *html.Node // the html element
	head      *html.Node
	body      element // not in the tree before it begins
	mode      mode
	afterHead bool // the head was closed
	noContent bool // a frameset may still come
	inForm    bool // a form began whose end tag has not come
}

// openElements are the elements that have begun and not ended, and how nodes are added to them.
type openElements struct {
	*Tokenizer
	o    Options
	full bool // all elements, attributes and texts; else those that links and directives need

	open       []element // the first is html
	paragraphs int       // open p
	templates  int       // open templates
	inert      int       // templates whose content is not part of the document
	sunk       int       // templates that were opened beyond maxOpen

	token  element          // the current tag
	tag    []byte           // its name
	attrs  []html.Attribute // its attributes, once they are read
	unread bool             // they are not read yet
	text   []byte           // to add to the open element

	nodes      []html.Node      // the rest of a slab
	attributes []html.Attribute // the rest of a slab
	keys       []html.Attribute // of the current tag, while they are read
	values     []byte           // of these, one after the other
	ends       []int            // of these values
	size       int              // of the tree, in nodes; two attributes count as one
	steps      int              // made among the open elements
	terms      []string         // documents of Really Simple Licensing within scripts
	cut        Bounds           // on size or depth, that left something out
	flat       bool             // elements became siblings
}

// mode is the part of the document that is being read.
type mode uint8

const (
	headMode mode = iota
	bodyMode
	framesetMode
)

// namespace is the namespace of an element.
type namespace uint8

const (
	inHTML namespace = iota
	inSVG
	inMath
)

// element is an open element.
type element struct {
	id     uint32 // of its name: the atom, or a hash if the name is no atom
	traits traits
	ns     namespace
	// htmlInside and textInside say that an element of SVG or MathML may contain HTML. With
	// textInside, mglyph and malignmark are MathML all the same.
	htmlInside, textInside bool
	inert                  bool // it is a template whose content is not part of the document
	// node is where its content goes: its own node, or the one around it if it is not in the tree.
	node  *html.Node
	depth int // of the node; more than the open elements if some of them have ended
}

func (e *element) is(a atom.Atom) bool { return e.id == uint32(a) && e.ns == inHTML }

// atom returns 0 for names that are no atoms.
func (e *element) atom() atom.Atom {
	if e.id&hashed != 0 {
		return 0
	}
	return atom.Atom(e.id)
}

// hashed marks the ids that are no atoms.
const hashed = 1 << 31

// nameID returns the id of a name. Two names can have the same id; that affects only a document
// that has both.
func nameID(name []byte) uint32 {
	if a := atom.Lookup(name); a != 0 {
		return uint32(a)
	}
	h := fnv.New32a()
	_, _ = h.Write(name)
	return h.Sum32() | hashed
}

// buildTree makes the tree of a document in UTF-8.
func buildTree(text []byte, o Options, full bool) *builder {
	b := &builder{openElements: openElements{Tokenizer: newTextTokenizer(text, !full), o: o, full: full},
		noContent: true}
	b.root = &html.Node{Type: html.DocumentNode}
	document, head := b.newElement(atom.Html), b.newElement(atom.Head)
	b.body = b.newElement(atom.Body)
	b.root.AppendChild(document.node)
	document.node.AppendChild(head.node)
	b.document, b.head = document.node, head.node
	b.open = append(make([]element, 0, 32), document, head)
	for b.size < o.MaxNodes {
		b.AllowCDATA(b.top().ns != inHTML)
		if ignores := b.ignoresText(); ignores || !b.wantsText() {
			b.skipText(!ignores)
		}
		switch b.Next() {
		case html.ErrorToken:
			b.finish()
			return b
		case html.TextToken:
			b.addText()
		case html.StartTagToken:
			b.startTag(false)
			b.takeTerms()
			b.skim()
		case html.SelfClosingTagToken:
			b.startTag(true)
			b.skim()
		case html.EndTagToken:
			b.endTag()
		}
		if b.full && b.size > o.MaxNodes/4*3 { // the links matter more than the text
			b.full = false
			b.cut |= DetailBound
		}
	}
	b.cut |= NodesBound
	b.finish()
	return b
}

// takeTerms keeps the text of the script that has just begun if it is a document of Really Simple Licensing.
func (b *builder) takeTerms() {
	if !b.token.is(atom.Script) {
		return
	}
	tag := b.Tokenizer.tag.text
	if tag == nil {
		tag = b.Raw()
	}
	if bytes.IndexByte(tag, '+') < 0 || !bytes.Contains(bytes.ToLower(tag), []byte("application/rsl+xml")) {
		return
	}
	text := b.rest()
	if end := endOfRawText(text, "script"); 0 < end && end <= maxTerms && len(b.terms) < maxLicenses {
		b.terms = append(b.terms, strings.ToValidUTF8(string(text[:end]), "\ufffd"))
	}
}

// skim leaves out the text of the script or style that has just begun, unless it is wanted.
func (b *builder) skim() {
	if !b.full && b.token.ns == inHTML {
		b.skimRawText(b.token.atom())
	}
}

func (b *builder) finish() {
	b.flush()
	b.templates = 0
	b.openBody()
}

func (b *openElements) top() *element { return &b.open[len(b.open)-1] }

// newElement makes html, head or body, without attributes. Its node is not in the tree.
func (b *openElements) newElement(a atom.Atom) element {
	n := b.newNode()
	n.Type, n.DataAtom, n.Data = html.ElementNode, a, a.String()
	return element{id: uint32(a), traits: traitsOf(a), node: n, depth: 2}
}

// insert puts the element of the current tag into the tree, below the open element, if it is needed
// there. It sets where the content of the element goes.
func (b *openElements) insert() {
	b.flush()
	parent := b.top().node
	b.token.node, b.token.depth = parent, b.top().depth
	a := b.token.atom()
	switch {
	case b.inert > 0 || !b.full && !b.needs(a):
		return
	case len(b.open) >= b.o.MaxDepth:
		b.cut |= DepthBound
		return
	}
	n := b.newNode()
	n.Type, n.DataAtom, n.Data, n.Attr = html.ElementNode, a, a.String(), b.readAttributes()
	if a == 0 {
		n.Data = string(b.tag)
	}
	switch b.token.ns {
	case inSVG:
		n.Namespace = "svg"
	case inMath:
		n.Namespace = "math"
	}
	parent.AppendChild(n)
	b.token.node = n
	b.token.depth++
}

// needs reports whether an element has data for a crawler.
func (b *openElements) needs(a atom.Atom) bool {
	return (b.token.ns == inHTML || a == atom.A) && isWanted(a, &b.o)
}

// newNode takes a node from the slab.
func (b *openElements) newNode() *html.Node {
	if len(b.nodes) == 0 {
		b.nodes = make([]html.Node, b.slab())
	}
	n := &b.nodes[0]
	b.nodes = b.nodes[1:]
	b.size++
	return n
}

// slab returns how many nodes or attributes are allocated together: more for a larger tree.
func (b *openElements) slab() int { return min(max(16, b.size/3), slabSize) }

// push opens the element of the current tag. Beyond the bound it is not opened, so its content is
// next to it; but an element of raw text is opened, because nothing can be nested in it.
func (b *openElements) push() {
	if max(len(b.open), b.token.depth) >= maxOpen && b.token.traits&rawText == 0 {
		b.flat = true
		if b.token.inert {
			b.sunk++
		}
		return
	}
	if b.token.is(atom.P) {
		b.paragraphs++
	}
	if b.token.is(atom.Template) {
		b.templates++
	}
	if b.token.inert {
		b.inert++
	}
	b.open = append(b.open, b.token)
}

// popTo closes the elements from index n on.
func (b *openElements) popTo(n int) {
	b.flush()
	for i := len(b.open) - 1; i >= n; i-- {
		b.forget(&b.open[i])
	}
	b.open = b.open[:n]
}

func (b *openElements) pop() { b.popTo(len(b.open) - 1) }

// remove closes an element and leaves those within it open.
func (b *openElements) remove(i int) {
	b.steps += len(b.open) - i
	b.forget(&b.open[i])
	b.open = slices.Delete(b.open, i, i+1)
}

// forget counts an element that is no longer open.
func (b *openElements) forget(e *element) {
	if e.is(atom.P) {
		b.paragraphs--
	}
	if e.is(atom.Template) {
		b.templates--
	}
	if e.inert {
		b.inert--
	}
}

// find returns the index of the innermost open element with a name, or -1. It does not search
// beyond an element with one of the traits.
func (b *openElements) find(id uint32, ends traits) int {
	for i := len(b.open) - 1; i >= max(len(b.open)-maxSearch, 0); i-- {
		b.steps++
		switch e := &b.open[i]; {
		case e.id == id && e.ns == inHTML:
			return i
		case e.traits&ends != 0:
			return -1
		}
	}
	return -1
}

// close closes the innermost open element with a name, and its content, if there is one.
func (b *openElements) close(id uint32, ends traits) bool {
	i := b.find(id, ends)
	if i > 0 {
		b.popTo(i)
	}
	return i > 0
}

// wantsText reports whether a text that comes now is part of the tree.
func (b *openElements) wantsText() bool { return b.full || b.top().is(atom.Title) }

// ignoresText reports whether a text that comes now is of no use, whatever it is.
func (b *builder) ignoresText() bool {
	return !b.wantsText() && !b.noContent && b.mode != headMode || b.mode == framesetMode || b.inert+b.sunk > 0
}

// addText takes a text token.
func (b *builder) addText() {
	if b.ignoresText() {
		return
	}
	text := b.Text()
	isRaw := b.top().traits&inHead != 0
	if (b.noContent || b.mode == headMode) && !isRaw && len(bytes.Trim(text, space+"\x00")) > 0 {
		b.noContent = false
		b.openBody()
	}
	if b.wantsText() {
		b.text = append(b.text, text...)
	}
}

// flush adds the pending text to the open element.
func (b *openElements) flush() {
	if len(b.text) == 0 {
		return
	}
	text := b.text
	if bytes.IndexByte(text, 0) >= 0 {
		text = bytes.ReplaceAll(text, []byte{0}, nil)
	}
	b.text = b.text[:0]
	parent := b.top().node
	if (parent.DataAtom == atom.Pre || parent.DataAtom == atom.Listing) && parent.FirstChild == nil {
		text = bytes.TrimPrefix(text, []byte{'\n'})
	}
	switch {
	case len(text) == 0:
	case len(b.open) >= b.o.MaxDepth:
		b.cut |= DepthBound
	default:
		n := b.newNode()
		n.Type, n.Data = html.TextNode, string(text)
		parent.AppendChild(n)
	}
}
