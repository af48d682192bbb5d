package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// walk hands the elements below root to the collector in document order. It
// needs no stack: the nodes know their parents.
func (c *collector) walk(root *html.Node) {
	depth := 0
	for n := root; n != nil; {
		if n.Type == html.ElementNode {
			c.visit(n)
		} else if n.Type == html.TextNode && c.prose != nil {
			c.prose.write(n.Data)
		}
		if n.FirstChild != nil && !inert(n) {
			if depth < c.o.MaxDepth {
				n, depth = n.FirstChild, depth+1
				continue
			}
			c.p.Truncated = true
		}
		c.leave(n)
		for n != root && n.NextSibling == nil {
			n, depth = n.Parent, depth-1
			c.leave(n)
		}
		if n == root {
			return
		}
		n = n.NextSibling
	}
}

// leave ends an element for those who follow the text.
func (c *collector) leave(n *html.Node) {
	if c.prose != nil && n.Type == html.ElementNode {
		c.prose.close(n.DataAtom, &c.p)
	}
}

func (c *collector) visit(n *html.Node) {
	c.latest = -1
	switch {
	case n.DataAtom == atom.Title && n.Namespace == "":
		c.setTitle(textOf(n))
	case c.wanted(n.DataAtom):
		c.element(n.DataAtom, n.Attr)
	}
	if c.prose != nil {
		c.begin(n.DataAtom, n.Attr)
	}
}

// inert reports whether the content of n is not part of the document: that of a
// template is not, unless it declares a shadow tree.
func inert(n *html.Node) bool {
	return n.DataAtom == atom.Template && n.Type == html.ElementNode && attribute(n.Attr, "shadowrootmode") == ""
}

// textOf joins the texts right below n.
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
