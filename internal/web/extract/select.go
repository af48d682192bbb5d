package extract

import (
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// selectors select the elements that have links or data for a crawler: the conditions for an
// element, by its name. A title has no condition.
var selectors = map[atom.Atom]cascadia.Selector{
	atom.A:      cascadia.MustCompile("a[href]"),
	atom.Area:   cascadia.MustCompile("area[href]"),
	atom.Frame:  cascadia.MustCompile("frame[src]"),
	atom.Iframe: cascadia.MustCompile("iframe[src]"),
	atom.Link:   cascadia.MustCompile("link[href][rel]"),
	atom.Meta:   cascadia.MustCompile("meta[content]"),
	atom.Base:   cascadia.MustCompile("base[href]"),
	atom.Html:   cascadia.MustCompile("html[lang]"),
	atom.Title:  cascadia.MustCompile("title"),
	atom.Form:   cascadia.MustCompile("form[action]"),
	atom.Img:    cascadia.MustCompile("img[src], img[srcset]"),
	atom.Source: cascadia.MustCompile("source[src], source[srcset]"),
	atom.Video:  cascadia.MustCompile("video[src], video[poster]"),
	atom.Audio:  cascadia.MustCompile("audio[src]"),
	atom.Embed:  cascadia.MustCompile("embed[src]"),
	atom.Object: cascadia.MustCompile("object[data]"),
	atom.Input:  cascadia.MustCompile("input[src][type]"),
}

// isWanted reports whether an element can have data that the options include.
func isWanted(a atom.Atom, o *Options) bool {
	switch a {
	case atom.A, atom.Area, atom.Frame, atom.Iframe, atom.Link, atom.Meta, atom.Base, atom.Html, atom.Title:
		return true
	case atom.Form:
		return o.Forms
	}
	return o.Media && isMedia(a)
}

// speaking is the goquery.Matcher of all elements that have data that the options include.
type speaking struct{ o *Options }

// Match reports whether an element is one of them. In SVG, only links are.
func (m speaking) Match(n *html.Node) bool {
	if n.Type != html.ElementNode || !isWanted(n.DataAtom, m.o) || n.Namespace != "" && n.DataAtom != atom.A {
		return false
	}
	return selectors[n.DataAtom].Match(n)
}

// MatchAll returns the matching elements in a tree, in document order.
func (m speaking) MatchAll(root *html.Node) (found []*html.Node) {
	for n := root; n != nil; n = next(n, root) {
		if m.Match(n) {
			found = append(found, n)
		}
	}
	return found
}

// Filter returns the matching elements among nodes.
func (m speaking) Filter(nodes []*html.Node) (found []*html.Node) {
	for _, n := range nodes {
		if m.Match(n) {
			found = append(found, n)
		}
	}
	return found
}

// next returns the node that follows n in document order below root.
func next(n, root *html.Node) *html.Node {
	if n.FirstChild != nil {
		return n.FirstChild
	}
	for ; n != root; n = n.Parent {
		if n.NextSibling != nil {
			return n.NextSibling
		}
	}
	return nil
}

// reference is an element and the link that it made.
type reference struct {
	node *html.Node
	link int // index in Page.Links
}

// take takes the data of a document, except for its text. If Options.LinkText is set, it returns
// the elements that are links.
func (c *collector) take(document *goquery.Document) (references []reference) {
	found := document.FindMatcher(speaking{&c.o})
	most := min(found.Length(), c.o.MaxLinks)
	c.at, c.p.Links = make(map[string]int32, most), make([]Link, 0, most)
	c.takeWhole(found)
	c.p.Base = c.base
	for _, n := range found.Nodes {
		c.latest, c.isMuted = -1, c.selected.Muted[n]
		c.element(n.DataAtom, n.Attr)
		if c.latest >= 0 && c.o.LinkText {
			c.describe(n)
			references = append(references, reference{n, c.latest})
		}
	}
	return references
}

// takeWhole takes the data that count for the whole document, wherever they are: base, title,
// language.
func (c *collector) takeWhole(found *goquery.Selection) {
	var hasBase, hasTitle bool
	for _, n := range found.Nodes {
		switch n.DataAtom {
		case atom.Base:
			if href := attribute(n.Attr, "href"); href != "" && !hasBase {
				hasBase = true
				c.setBase(href)
			}
		case atom.Title:
			if !hasTitle {
				hasTitle, c.p.Title = true, collapse(textOf(n), maxTitleBytes)
			}
		case atom.Html:
			if lang := strings.TrimSpace(attribute(n.Attr, "lang")); len(lang) <= maxLanguageBytes {
				c.p.Language = lang
			}
		}
	}
}

// describe sets the relation of the current link, and the text of an area.
func (c *collector) describe(n *html.Node) {
	l := &c.p.Links[c.latest]
	if l.Rel == "" {
		l.Rel = clip(strings.ToLower(collapse(attribute(n.Attr, "rel"), maxLinkText)), maxLinkText)
	}
	if n.DataAtom == atom.Area && l.Text == "" {
		l.Text = collapse(attribute(n.Attr, "alt"), maxLinkText)
	}
}

// textOf joins the texts directly below n.
func textOf(n *html.Node) string {
	first := n.FirstChild
	if first != nil && first.NextSibling == nil && first.Type == html.TextNode {
		return first.Data
	}
	var b strings.Builder
	for child := first; child != nil; child = child.NextSibling {
		if child.Type == html.TextNode {
			b.WriteString(child.Data)
		}
	}
	return b.String()
}
