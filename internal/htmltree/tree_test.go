package htmltree

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// unlimited is a limit that nothing meets.
var unlimited = Cost{Nodes: math.MaxInt, Work: math.MaxInt}

// numbered repeats a format with a number in it.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// families are documents that take a parser long: each is one unit of markup repeated n times,
// mostly within a deep nest.
func families() map[string]func(n int) string {
	repeat := strings.Repeat
	deep := repeat("<span>", 400)
	within := func(nest, unit string) func(int) string {
		return func(n int) string { return nest + repeat(unit, n) }
	}
	return map[string]func(n int) string{
		"paragraphs":             within("", "<p>x</p>"),
		"end tags of paragraphs": within(deep, "</p>"),
		"end tags of nothing":    within(deep, "</x>"),
		"rules":                  within(deep, "<hr>"),
		"list items":             within("<ul>"+deep, "<li>"),
		"options":                within(deep, "<option>"),
		"forms":                  within(deep, "<form></form>"),
		"buttons":                within(deep, "<button></button>"),
		"end tags in SVG":        within("<svg>"+repeat("<g>", 400), "</x>"),
		"misnested links":        within(deep, "<a><div></a></div>"),
		"texts in a table":       within(deep+"<table>", "x<br>"),
		"objects in a table":     within("<table>", "<object><tr>"),
		"objects, then misnesting": func(n int) string {
			return "<table>" + repeat("<object><tr>", n) + "</table><div>" + repeat("<b><span><div></b></div>", n/2)
		},
		"attributes, then end tags": func(n int) string {
			return "<math><annotation-xml " + numbered(n, "a%d ") + ">" + repeat("</x>", n)
		},
		"attributes, then attributes": func(n int) string {
			return "<p " + numbered(n, "a%d ") + ">" + repeat("<p a>", n)
		},
		"attributes of the body": func(n int) string { return numbered(n, "<body a%d>") },
		"formatting elements":    func(n int) string { return numbered(n, "<b id=%d>") },
		"formatting elements in objects": func(n int) string {
			return numbered(n/8, "<object><b a%d><b b><b c><b d><b e><b f><b g></object>")
		},
		"reopened formatting elements": func(n int) string {
			return "<p>" + numbered(300, "<b id=%d>") + "</p>" + repeat("<p>x", n)
		},
		"templates":      within(repeat("<template>", 400), "<p>"),
		"a tag in a tag": func(n int) string { return repeat("<xxxx", n) },
		"quotes":         within("", `<a href="`),
		"comments":       within("", "<!-- -"),
		"texts":          within("", "x&amp;&y<"),
	}
}

// limitOf is a limit like that of package extract.
func limitOf(text string) Cost { return Cost{Nodes: len(text), Work: 8*len(text) + 10_000} }

// Twice the document is at most two and a half times the work, or too much of it.
func TestWorkIsLinear(t *testing.T) {
	for name, family := range families() {
		t.Run(name, func(t *testing.T) {
			once, twice := family(4000), family(8000)
			_, first, _ := Parse([]byte(once), limitOf(once))
			_, second, _ := Parse([]byte(twice), limitOf(twice))
			if float64(second.Work) > 2.5*float64(first.Work) {
				t.Errorf("%d steps for %d bytes, %d for %d", first.Work, len(once), second.Work, len(twice))
			}
			if most := limitOf(twice); second.Work > most.Work+len(twice) || second.Nodes > most.Nodes+len(twice) {
				t.Errorf("%+v, the limit is %+v", second, most)
			}
		})
	}
}

// A document beyond the limit is one that Parse stops at, not one that it refuses afterwards.
func TestStopsAtTheLimit(t *testing.T) {
	text := []byte(strings.Repeat("<span>", 400) + strings.Repeat("</p>", 10_000))
	_, whole, err := Parse(text, unlimited)
	if err != nil || whole.Work < 100*len(text) {
		t.Fatalf("%v, %+v: not as hard as it should be", err, whole)
	}
	root, spent, err := Parse(text, Cost{Nodes: whole.Nodes, Work: whole.Work / 10})
	if root != nil || !errors.Is(err, ErrLimit) || spent.Work > whole.Work/5 {
		t.Errorf("%v, %+v of %+v", err, spent, whole)
	}
	root, spent, err = Parse(text, Cost{Nodes: whole.Nodes / 10, Work: whole.Work})
	if root != nil || !errors.Is(err, ErrLimit) || spent.Nodes > whole.Nodes/5 {
		t.Errorf("%v, %+v of %+v", err, spent, whole)
	}
	if root, spent, err = Parse(text, whole); root == nil || err != nil || spent != whole {
		t.Errorf("%v, %+v: exactly at the limit", err, spent)
	}
	if _, _, err = Parse([]byte(strings.Repeat("<div>", 600)), unlimited); err == nil || errors.Is(err, ErrLimit) {
		t.Errorf("%v for a document that is too deep", err)
	}
}

// same fails unless the tree of a document is that of golang.org/x/net, and its nodes were counted.
func same(t *testing.T, text []byte) {
	t.Helper()
	root, spent, err := Parse(text, Cost{Nodes: 100_000, Work: 10_000_000})
	if errors.Is(err, ErrLimit) {
		return
	}
	want, upstream := html.ParseWithOptions(bytes.NewReader(text), html.ParseOptionEnableScripting(false))
	if (err == nil) != (upstream == nil) {
		t.Fatalf("%v, and of x/net %v", err, upstream)
	}
	if err != nil {
		return
	}
	nodes := 0
	for ours, theirs := root, want; ours != nil; ours, theirs = after(ours), after(theirs) {
		if ours.Type != theirs.Type || ours.DataAtom != theirs.DataAtom || ours.Data != theirs.Data ||
			ours.Namespace != theirs.Namespace ||
			!slices.Equal(ours.Attr, theirs.Attr) || (ours.FirstChild == nil) != (theirs.FirstChild == nil) ||
			(ours.NextSibling == nil) != (theirs.NextSibling == nil) {
			t.Fatalf("the tree has %+v, that of x/net %+v", ours, theirs)
		}
		nodes++
	}
	if nodes > 4*spent.Nodes+16 {
		t.Errorf("%d nodes, %d were counted", nodes, spent.Nodes)
	}
}

// after is the node that follows in document order.
func after(n *html.Node) *html.Node {
	if n.FirstChild != nil {
		return n.FirstChild
	}
	for ; n != nil; n = n.Parent {
		if n.NextSibling != nil {
			return n.NextSibling
		}
	}
	return nil
}

func TestTreeIsThatOfUpstream(t *testing.T) {
	for name, family := range families() {
		t.Run(name, func(t *testing.T) { same(t, []byte(family(40))) })
	}
	large := " title='" + strings.Repeat("x", 2*maxTag) + "' a b c"
	same(t,
		[]byte("<p"+large+"><title"+large+">a<b>c</title><svg><title"+large+"><b>x</title><![CDATA[y]]></svg>"+
			"<noscript"+large+"><i>z</noscript><textarea"+large+">"))
}

func FuzzTree(f *testing.F) {
	for _, family := range families() {
		f.Add([]byte(family(5)))
	}
	for _, text := range []string{
		"<p><b id=1><b id=2></p><p>x<p>y", "<table><td><a href='x'>y</a><!-- </a> --><tr><font></table><p>z",
		"<svg><b></svg><i><object></i></object><p>x<select><a>b</select>", "<b><div><div><div></b></div></b></div></b></div><p>x",
		"<frameset><frame></frameset><noframes>x", "<html a><body b><html c><body d>", "<math><mi><svg><desc><p></svg>",
		"<template><tr><td></template><table><caption><nobr>a<nobr>b", "<!DOCTYPE html PUBLIC '-//W3C//DTD HTML 4.01//EN'><a><a>",
		"<svg><![CDATA[x]]><foreignObject><div></svg><p>", "<head><noscript><link></noscript></head><textarea>\n<p></textarea>",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		same(t, text)
		same(t, bytes.Repeat(append(text, "<p>x"...), 20))
		most := Cost{Nodes: 1000, Work: 20_000}
		if _, spent, _ := Parse(bytes.Repeat(text, 20), most); spent.Work > most.Work+20*len(text)+1000 ||
			spent.Nodes > most.Nodes+20*len(text) {
			t.Errorf("%+v, the limit is %+v", spent, most)
		}
	})
}
