package htmltree

import "slices"

// Cost is what a document takes.
type Cost struct {
	// Nodes are those that tokens and copies of formatting elements make, 100 to 150 bytes each.
	// Two attributes count as one more.
	Nodes int
	// Work are the bytes of the document, the elements that were looked at for its tags, and the
	// attributes that were copied or compared.
	Work int
}

// meter counts what the parser does, and stops it.
type meter struct{ limit, spent Cost }

// spend counts steps before they are made.
func (m *meter) spend(steps int) {
	if m.spent.Work += steps; m.spent.Work > m.limit.Work {
		panic(ErrLimit) // parse makes an error of it
	}
}

// takeToken counts what a token makes.
func (m *meter) takeToken(t *Token) { m.make(len(t.Attr)) }

// clone copies a formatting element.
func (m *meter) clone(n *Node) *Node {
	m.make(len(n.Attr))
	c := &Node{Type: n.Type, DataAtom: n.DataAtom, Data: n.Data, Attr: make([]Attribute, len(n.Attr))}
	copy(c.Attr, n.Attr)
	return c
}

// make counts a node with so many attributes.
func (m *meter) make(attributes int) {
	m.spend(1 + attributes)
	if m.spent.Nodes += 1 + attributes/2; m.spent.Nodes > m.limit.Nodes {
		panic(ErrLimit)
	}
}

// copyAttributes adds those attributes of a tag to a node that it has not.
func (m *meter) copyAttributes(dst *Node, src *Token) {
	for _, a := range src.Attr {
		m.spend(len(dst.Attr))
		if !slices.ContainsFunc(dst.Attr, func(has Attribute) bool { return has.Key == a.Key }) {
			dst.Attr = append(dst.Attr, a)
		}
	}
}

// reparentChildren moves all children of src to dst.
func (m *meter) reparentChildren(dst, src *Node) {
	for child := src.FirstChild; child != nil; child = src.FirstChild {
		m.spend(1)
		src.RemoveChild(child)
		dst.AppendChild(child)
	}
}

func (m *meter) exceeded() bool {
	return m.spent.Work > m.limit.Work || m.spent.Nodes > m.limit.Nodes
}
