package extract

import (
	"golang.org/x/net/html/atom"
)

// endTag takes an end tag.
func (b *builder) endTag() {
	b.tag = b.name()
	b.unread, b.attrs = false, nil
	id := nameID(b.tag)
	b.token = element{id: id}
	a := b.token.atom()
	b.inForm = b.inForm && (a != atom.Form || b.templates > 0)
	switch {
	case b.sunk > 0:
		if a == atom.Template {
			b.sunk--
		}
	case b.mode == framesetMode:
		if a == atom.Frameset && b.top().is(a) {
			b.pop()
		}
	case b.top().ns != inHTML && b.endForeign(id):
	case a == atom.Html || a == atom.Body:
		if !b.top().is(atom.Noscript) {
			b.openBody()
		}
	case a == atom.Head:
		b.afterHead = true
	case b.mode == headMode && b.endInHead(a):
	case b.top().id == id && b.top().ns == inHTML:
		b.pop()
	default:
		b.end(id, a, traitsOf(a))
	}
}

// endInHead reports whether an end tag in the head ends nothing.
func (b *builder) endInHead(a atom.Atom) bool {
	if a == atom.Br {
		b.openBody()
		return false
	}
	return b.templates == 0 && !b.top().is(a)
}

// end closes an element that is not the innermost one.
func (b *builder) end(id uint32, a atom.Atom, t traits) {
	switch {
	case a == atom.P:
		if b.paragraphs == 0 || !b.close(id, scope|noButton) {
			b.token.traits = t
			b.insert()
		}
	case a == atom.Form:
		if i := b.find(id, scope); i > 0 {
			b.remove(i)
		}
	case a == atom.Li:
		b.close(id, scope|noList)
	case t&heading != 0:
		b.endHeading()
	case t&block != 0, a == atom.Dd, a == atom.Dt, a == atom.Button, a == atom.Select,
		t&scope != 0 && t&(tablePart|tableEnd) == 0:
		b.close(id, scope)
	case t&formatting != 0:
		b.closeFormatting(id)
	case a == atom.Template:
		b.endTemplate()
	case t&tablePart != 0, a == atom.Table:
		b.close(id, tableEnd)
	case a == atom.Br:
		b.token.traits, b.noContent = t, false
		b.insertAndOpen()
	default:
		b.close(id, special)
	}
}

// endHeading closes the innermost heading of any level.
func (b *openElements) endHeading() {
	for i := len(b.open) - 1; i >= max(len(b.open)-maxSearch, 1); i-- {
		b.steps++
		if e := &b.open[i]; e.traits&heading != 0 {
			b.popTo(i)
			return
		} else if e.traits&scope != 0 {
			return
		}
	}
}

// endTemplate closes the innermost template with its content.
func (b *openElements) endTemplate() {
	if b.templates == 0 {
		return
	}
	i := len(b.open) - 1
	for !b.open[i].is(atom.Template) {
		i--
	}
	b.steps += len(b.open) - i
	b.popTo(i)
}
