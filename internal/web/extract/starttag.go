package extract

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// startTag takes a start tag. selfClosing means that it is written as <x/>, which counts only in
// SVG and MathML.
func (b *builder) startTag(selfClosing bool) {
	b.tag = b.name()
	b.unread, b.attrs = true, nil
	id := nameID(b.tag)
	b.token = element{id: id}
	if b.sunk > 0 {
		b.sink()
		return
	}
	if b.top().is(atom.Colgroup) && !b.token.is(atom.Col) && !b.token.is(atom.Template) {
		b.pop()
	}
	if b.token.ns = b.namespaceOf(b.token.atom()); b.token.ns != inHTML {
		b.startForeign(selfClosing)
		return
	}
	if b.token.is(atom.Image) { // in SVG it is another element
		b.token.id = uint32(atom.Img)
	}
	b.token.traits = traitsOf(b.token.atom())
	if !b.belongs() {
		return
	}
	if b.token.is(atom.Noscript) { // amble runs no scripts
		b.NextIsNotRawText()
	}
	if !b.makeRoom() {
		return
	}
	if b.token.traits&content != 0 {
		b.noContent = false
	}
	b.insertAndOpen()
}

// sink takes a start tag in a template that was opened beyond the bound. It ignores the content of
// that template.
func (b *openElements) sink() {
	switch b.token.atom() {
	case atom.Template:
		b.sunk++
	case atom.Noscript:
		b.NextIsNotRawText()
	}
}

// insertAndOpen inserts the element of the current tag and, unless it is void, opens it.
func (b *openElements) insertAndOpen() {
	b.insert()
	if b.token.traits&void == 0 {
		b.push()
	}
}

// belongs moves the document to the part in which the current tag is. It reports whether the tag
// makes an element.
func (b *builder) belongs() bool {
	a := b.token.atom()
	if b.mode == framesetMode {
		switch a {
		case atom.Html:
			b.merge(b.document)
		case atom.Frameset, atom.Frame:
			return b.top().is(atom.Frameset)
		}
		return false
	}
	switch a {
	case atom.Html:
		if b.templates == 0 {
			b.merge(b.document)
		}
		return false
	case atom.Head:
		if b.mode == headMode {
			b.merge(b.head)
		}
		return false
	case atom.Body:
		if b.templates == 0 {
			b.merge(b.body.node)
			b.noContent = false
			b.openBody()
		}
		return false
	case atom.Frameset:
		return b.openFrameset()
	case atom.Frame:
		b.openBody()
		return false
	}
	if b.token.traits&inHead == 0 && (a != atom.Noscript || b.afterHead) {
		b.openBody()
	}
	return true
}

// openBody ends the head, unless it has ended or the document is in a template.
func (b *builder) openBody() {
	if b.mode != headMode || b.templates > 0 {
		return
	}
	b.popTo(1)
	b.mode = bodyMode
	b.document.AppendChild(b.body.node)
	b.open = append(b.open, b.body)
}

// openFrameset makes the document one of frames, if it has no visible content yet.
func (b *builder) openFrameset() bool {
	if !b.noContent || b.templates > 0 {
		return false
	}
	if b.mode == bodyMode {
		b.document.RemoveChild(b.body.node)
	}
	b.popTo(1)
	b.mode = framesetMode
	return true
}

// merge gives an element those attributes of the current tag that it lacks.
func (b *openElements) merge(n *html.Node) {
	for _, attr := range b.readAttributes() {
		has := slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == attr.Key })
		if !has && len(n.Attr) < maxKeys {
			n.Attr = append(n.Attr, attr)
		}
		b.steps += len(n.Attr)
	}
}

// makeRoom closes the elements that the current tag closes, and opens those that it implies. It
// reports whether the tag makes an element at this place.
func (b *builder) makeRoom() bool {
	a, t := b.token.atom(), b.token.traits
	switch {
	case a == atom.Form && b.templates == 0 && b.inForm:
		return false
	case t&block != 0:
		b.inForm = b.inForm || a == atom.Form && b.templates == 0
		b.closeParagraph()
		if t&heading != 0 && b.top().traits&heading != 0 {
			b.pop()
		}
		return true
	case t&formatting != 0:
		if a == atom.A || a == atom.Nobr {
			b.closeFormatting(b.token.id)
		}
		return true
	case t&tablePart != 0:
		return b.openTablePart(a)
	}
	switch a {
	case atom.Li:
		b.closeItem(atom.Li, atom.Li)
	case atom.Dd, atom.Dt:
		b.closeItem(atom.Dd, atom.Dt)
	case atom.Table:
		b.closeTable()
		b.closeParagraph()
	case atom.Hr, atom.Plaintext, atom.Xmp:
		b.closeParagraph()
	case atom.Button:
		b.close(b.token.id, scope)
	case atom.Select:
		return !b.close(b.token.id, scope)
	case atom.Input:
		b.noContent = b.noContent && strings.EqualFold(attribute(b.readAttributes(), "type"), "hidden")
		b.close(uint32(atom.Select), scope)
	case atom.Option, atom.Optgroup:
		keep := atom.Atom(0)
		if a == atom.Option {
			keep = atom.Optgroup
		}
		if !b.closeImplied(atom.Select, keep) && b.top().is(atom.Option) {
			b.pop()
		}
	case atom.Rb, atom.Rtc:
		b.closeImplied(atom.Ruby, 0)
	case atom.Rp, atom.Rt:
		b.closeImplied(atom.Ruby, atom.Rtc)
	case atom.Template:
		shadow := attribute(b.readAttributes(), "shadowrootmode")
		b.token.inert = !strings.EqualFold(shadow, "open") && !strings.EqualFold(shadow, "closed")
	}
	return true
}

// closeTable closes the innermost table, unless a cell or a caption of it is open: a table is in these only.
func (b *openElements) closeTable() {
	for i := len(b.open) - 1; i >= max(len(b.open)-maxSearch, 1); i-- {
		b.steps++
		switch e := &b.open[i]; {
		case e.is(atom.Table):
			b.popTo(i)
			return
		case e.is(atom.Template), e.is(atom.Td), e.is(atom.Th), e.is(atom.Caption):
			return
		}
	}
}

// closeParagraph closes an open p.
func (b *openElements) closeParagraph() {
	if b.paragraphs > 0 {
		b.close(uint32(atom.P), scope|noButton)
	}
}

// closeItem closes the open item of a list, and the paragraph in it, before another item.
func (b *openElements) closeItem(one, other atom.Atom) {
	for i := len(b.open) - 1; i >= max(len(b.open)-maxSearch, 1); i-- {
		b.steps++
		e := &b.open[i]
		if e.is(one) || e.is(other) {
			b.popTo(i)
			break
		}
		if e.traits&special != 0 && !e.is(atom.Address) && !e.is(atom.Div) && !e.is(atom.P) {
			break
		}
	}
	b.closeParagraph()
}

// closeImplied closes the elements whose end tags may be left out, down to one with a name. It
// reports whether they are in an element that has them.
func (b *openElements) closeImplied(within, keep atom.Atom) bool {
	if b.find(uint32(within), scope) < 0 {
		return false
	}
	n := len(b.open)
	for b.open[n-1].traits&implied != 0 && !b.open[n-1].is(keep) {
		n--
	}
	b.popTo(n)
	return true
}

// closeFormatting closes a formatting element with its content. If other than formatting elements
// are open in it, these stay open, with the elements between them (HTML, section 13.2.6.4.7,
// "adoption agency algorithm", without its copies).
func (b *openElements) closeFormatting(id uint32) {
	i := b.find(id, scope)
	if i < 0 {
		return
	}
	last := len(b.open) - 1
	for last > i && b.open[last].traits&special == 0 {
		b.steps++
		last--
	}
	if last == i {
		b.popTo(i)
		return
	}
	b.popTo(last + 1)
	b.remove(i)
}

// openTablePart closes the elements that a part of a table ends, and opens the implied parts around
// it. It reports whether there is a table.
func (b *builder) openTablePart(a atom.Atom) bool {
	table := b.find(uint32(atom.Table), tableEnd)
	if table < 0 {
		return b.templates > 0 && b.find(uint32(atom.Template), tableEnd) > 0
	}
	around := []atom.Atom{}
	switch a {
	case atom.Td, atom.Th:
		around = []atom.Atom{atom.Tr, atom.Tbody}
	case atom.Tr:
		around = []atom.Atom{atom.Tbody}
	case atom.Col:
		around = []atom.Atom{atom.Colgroup}
	}
	b.openAround(table, around)
	return true
}

// openAround closes the open elements down to the innermost one that may contain a part of a table,
// and opens the other parts around it.
func (b *builder) openAround(table int, around []atom.Atom) {
	if len(around) == 0 {
		b.popTo(table + 1)
		return
	}
	for i := len(b.open) - 1; i > table; i-- {
		b.steps++
		e := &b.open[i]
		if e.is(around[0]) || around[0] == atom.Tbody && (e.is(atom.Thead) || e.is(atom.Tfoot)) {
			b.popTo(i + 1)
			return
		}
	}
	b.openAround(table, around[1:])
	b.openImplied(around[0])
}

// openImplied opens an element that has no tag, before that of the current tag.
func (b *builder) openImplied(a atom.Atom) {
	token, unread, attrs := b.token, b.unread, b.attrs
	b.token, b.unread, b.attrs = element{id: uint32(a), traits: traitsOf(a)}, false, nil
	b.insertAndOpen()
	b.token, b.unread, b.attrs = token, unread, attrs
}
