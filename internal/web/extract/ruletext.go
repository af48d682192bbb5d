//go:build !core

package extract

import (
	"fmt"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// RuleText is a rule as people write it.
type RuleText struct {
	// Hosts are names in canonical form; *.example.com stands for all hosts below example.com.
	// None: every host.
	Hosts   []string
	Pattern string // regular expression of path and query; empty: any
	// Links are CSS selectors. Only links that they select, or that are in a selected element,
	// count. None: all links count.
	Links, Ignore []string
	// Fields are selectors by the name of the field, with "@name" for the value of an attribute and
	// "*" at the end for a list of all matches.
	Fields map[string]string
}

// RuleError is the error of one text of a rule.
type RuleError struct {
	Key  string // pattern, links, ignore, or fields.NAME
	Text string
	Err  error
}

// Error names the key and the text.
func (e *RuleError) Error() string { return fmt.Sprintf("%s: %q: %v", e.Key, e.Text, e.Err) }

// Unwrap returns Err.
func (e *RuleError) Unwrap() error { return e.Err }

// RuleErrors are all errors of a rule.
type RuleErrors []*RuleError

// Error returns a line for each error.
func (e RuleErrors) Error() string {
	lines := make([]string, len(e))
	for i, bad := range e {
		lines[i] = bad.Error()
	}
	return strings.Join(lines, "\n")
}

// Add adds an error.
func (e *RuleErrors) Add(key, text string, err error) {
	*e = append(*e, &RuleError{Key: key, Text: text, Err: err})
}

// Value returns the value of an attribute of an element or, if key is empty, the text in it without the elements that
// are ignored: at most most bytes, white space collapsed. nodes is the number of nodes that may still be visited for
// texts. cut: a bound left something out.
func Value(n *html.Node, key string, ignored map[*html.Node]bool, most int, nodes *int) (value string, cut bool) {
	if key == "" {
		return textIn(n, ignored, most, nodes)
	}
	value = collapse(attribute(n.Attr, key), most+1)
	return clip(value, most), len(value) > most
}

// textIn returns the text in an element, without scripts and styles, unless the element is one of them.
func textIn(root *html.Node, ignored map[*html.Node]bool, most int, nodes *int) (text string, cut bool) {
	w := words{max: max(most, 1), cut: most == 0}
	for n := root; !w.cut; n = n.NextSibling {
		for n != nil {
			if *nodes--; *nodes < 0 {
				w.cut = true
				break
			}
			w.enter(n)
			if n != root && (ignored[n] || n.DataAtom == atom.Script || n.DataAtom == atom.Style) ||
				n.FirstChild == nil {
				break
			}
			n = n.FirstChild
		}
		for n != root && n.NextSibling == nil {
			n = n.Parent
			w.enter(n)
		}
		if n == root {
			break
		}
	}
	return string(w.b), w.cut
}

// enter writes a text, or the separation around an element.
func (w *words) enter(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		w.write(n.Data, false)
	case html.ElementNode:
		w.gap = max(w.gap, min(gapAround(n.DataAtom), wordGap))
	}
}
