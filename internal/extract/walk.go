package extract

import "golang.org/x/net/html"

// walk gives the nodes below root to the gatherer of text, in document order. It needs no stack: the
// nodes know their parents. references are the links among them, in the same order. What a rule ignores
// is left out.
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
		if n.FirstChild != nil && !c.ruled.ignores(n) {
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
