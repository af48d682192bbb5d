// Package htmltree builds the tree of an HTML document as golang.org/x/net/html does, which reads a
// document as browsers do, and counts what that takes while it is done.
//
// That parser goes through its open elements for many tags, through its active formatting elements
// for some, and copies those again and again: a document of a megabyte can keep it busy for minutes
// or make it a tree of gigabytes. Here each such step is counted when it is made, so that the
// parser stops at a bound (meter.go).
//
// parse.go, stack.go, special.go, foreign.go and doctype.go are copies. The test of the package
// writes them, lists all that differs in them, and fails when go.mod names another version of
// golang.org/x/net. The tokenizer is that of golang.org/x/net, made linear (tokenizer.go).
package htmltree

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/net/html"
)

// ErrLimit is returned for a document whose tree takes more than the limit.
var ErrLimit = errors.New("htmltree: the tree takes more than its limit")

// Parse builds the tree of a document in UTF-8, for a reader that runs no scripts, and returns what
// it took. It stops with ErrLimit as soon as that exceeds the limit; any other error is of a
// document that is nested more than 512 elements deep. Text is not kept. Parse is safe for
// concurrent use.
func Parse(text []byte, limit Cost) (root *html.Node, spent Cost, err error) {
	p := &parser{
		tokenizer:  NewTokenizer(bytes.NewReader(text)),
		doc:        &Node{Type: DocumentNode},
		framesetOK: true,
		im:         initialIM,
		meter:      meter{limit: limit, spent: Cost{Work: len(text)}},
	}
	err = p.parse()
	switch {
	case err == nil:
		return p.doc, p.spent, nil
	case p.exceeded():
		return nil, p.spent, ErrLimit
	}
	return nil, p.spent, fmt.Errorf("htmltree: %w", err)
}

// What the copied files call by these names.
type (
	Node      = html.Node      // of x/net
	Attribute = html.Attribute // of x/net
	Token     = html.Token     // of x/net
	TokenType = html.TokenType // of x/net
)

// The numbers of x/net.
const (
	TextNode     = html.TextNode
	DocumentNode = html.DocumentNode
	ElementNode  = html.ElementNode
	CommentNode  = html.CommentNode
	DoctypeNode  = html.DoctypeNode

	ErrorToken          = html.ErrorToken
	TextToken           = html.TextToken
	StartTagToken       = html.StartTagToken
	EndTagToken         = html.EndTagToken
	SelfClosingTagToken = html.SelfClosingTagToken
	CommentToken        = html.CommentToken
	DoctypeToken        = html.DoctypeToken
)

// scopeMarkerNode is the type of a marker among the active formatting elements (HTML, section
// 13.2.4.3).
const scopeMarkerNode = html.RawNode + 1

var scopeMarker = Node{Type: scopeMarkerNode}
