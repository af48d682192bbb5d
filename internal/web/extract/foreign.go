package extract

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// namespaceOf returns the namespace of the element of the current start tag (HTML, section 13.2.6).
// It closes the SVG or MathML that the tag cannot be in.
func (b *builder) namespaceOf(a atom.Atom) namespace {
	top := b.top()
	switch {
	case b.mode == framesetMode:
		return inHTML
	case top.ns == inHTML, top.htmlInside, top.textInside && a != atom.Mglyph && a != atom.Malignmark,
		a == atom.Svg && top.ns == inMath && top.atom() == atom.AnnotationXml:
		switch a {
		case atom.Svg:
			return inSVG
		case atom.Math:
			return inMath
		}
		return inHTML
	case !isBreakout(a) && !(a == atom.Font && b.hasFontAttribute()):
		return top.ns
	}
	b.leaveForeign()
	return inHTML
}

// leaveForeign closes elements down to the innermost one that may contain HTML.
func (b *builder) leaveForeign() {
	n := len(b.open)
	for e := &b.open[n-1]; e.ns != inHTML && !e.htmlInside && !e.textInside; e = &b.open[n-1] {
		n--
	}
	b.popTo(n)
}

func (b *builder) hasFontAttribute() bool {
	return slices.ContainsFunc(b.readAttributes(), func(a html.Attribute) bool {
		return a.Key == "color" || a.Key == "face" || a.Key == "size"
	})
}

// startForeign opens an element of SVG or MathML.
func (b *builder) startForeign(selfClosing bool) {
	b.openBody()
	b.describeForeign(b.token.atom())
	b.NextIsNotRawText()
	b.insert()
	if !selfClosing {
		b.push()
	}
}

// describeForeign determines what an element of SVG or MathML may contain.
func (b *builder) describeForeign(a atom.Atom) {
	e := &b.token
	switch {
	case e.ns == inSVG && (a == atom.Desc || a == atom.Title || string(b.tag) == "foreignobject"):
		e.htmlInside = true
	case e.ns == inMath && a == atom.AnnotationXml:
		encoding := attribute(b.readAttributes(), "encoding")
		e.htmlInside = strings.EqualFold(encoding, "text/html") || strings.EqualFold(encoding, "application/xhtml+xml")
		e.traits = special | scope
	case e.ns == inMath && (a == atom.Mi || a == atom.Mo || a == atom.Mn || a == atom.Ms || a == atom.Mtext):
		e.textInside = true
	}
	if e.htmlInside || e.textInside {
		e.traits = special | scope
	}
}

// endForeign closes an element of SVG or MathML, and reports whether the current end tag is one of
// SVG or MathML.
func (b *builder) endForeign(id uint32) bool {
	if a := b.token.atom(); a == atom.P || a == atom.Br {
		b.leaveForeign()
		return false
	}
	for i := len(b.open) - 1; i >= max(len(b.open)-maxSearch, 1); i-- {
		b.steps++
		if b.open[i].id == id {
			b.popTo(i)
			return true
		}
		if b.open[i-1].ns == inHTML {
			return false
		}
	}
	return false
}
