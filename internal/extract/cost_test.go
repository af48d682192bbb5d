package extract

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// countNodes counts nodes and attributes as treeCost weighs them.
func countNodes(root *html.Node) int {
	n := 0
	for d := range root.Descendants() {
		n += 1 + len(d.Attr)/2
	}
	return n
}

// fullCost is the cost of text, counted to the end whatever its size.
func fullCost(text []byte) int {
	return scanCost(text, bytes.Count(text, []byte("<")), math.MaxInt-1)
}

func TestTreeCostBoundsTheTree(t *testing.T) {
	var open strings.Builder
	for i := range 300 {
		fmt.Fprintf(&open, "<b id=%d>", i)
	}
	reopened := strings.Repeat("<p>x", 500)
	tests := []struct{ name, text string }{
		{"reopened in every block", "<p>" + open.String() + "</p>" + reopened},
		{"end tags in a script", "<p>" + open.String() + "<script>" + strings.Repeat("</b>", 300) + "</script></p>" + reopened},
		{"end tags in a comment", "<p>" + open.String() + "<!-- " + strings.Repeat("</b>", 300) + "--></p>" + reopened},
		{"end tags in an attribute", "<p>" + open.String() + "<i title='" + strings.Repeat("</b>", 300) + "'></p>" + reopened},
		{"end tags behind a marker", "<p>" + open.String() + "<object>" + strings.Repeat("</b>", 300) + "</object></p>" + reopened},
		{"end tags in CDATA", "<p>" + open.String() + "<svg><![CDATA[ > " + strings.Repeat("</b>", 300) + "]]></svg></p>" + reopened},
		{"end tags out of scope", "<p>" + open.String() + "<table>" + strings.Repeat("</b>", 300) + "</table></p>" + reopened},
		{"start tags in raw text that is none", "<p><svg><style>" + open.String() + "</style></svg></p>" + reopened},
		{"many attributes", "<p>" + strings.Repeat("<b"+strings.Repeat(" a", 40)+">", 3) + "</p>" + reopened},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cost := fullCost([]byte(tt.text))
			root, err := html.Parse(strings.NewReader(tt.text))
			if err != nil {
				t.Skip("the parser refuses it") // deeper than 512
			}
			if n := countNodes(root); cost < n {
				t.Errorf("cost %d, but the tree has %d nodes", cost, n)
			}
		})
	}
}

func TestTreeCostOfOrdinaryPages(t *testing.T) {
	item := `<li class="x"><a href="/a?b=c" title="it's > that"><span>text</span><img src='/i.png' alt="a"></a> and <strong><em>more</em></strong>, <a href=/b>b</a><br></li>` + "\n"
	page := []byte("<!DOCTYPE html><html lang=en><body><ul>" + strings.Repeat(item, 3000) + "</ul></body></html>")
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	if cost, n := fullCost(page), countNodes(root); cost > 3*n {
		t.Errorf("cost %d for a tree of %d nodes: ordinary pages would be read without a tree", cost, n)
	}
}

func TestTreeCostRefusesRepeatedRoots(t *testing.T) {
	page := strings.Repeat("<body a b c>", 10_000)
	if cost := treeCost([]byte(page), 500_000); cost != math.MaxInt {
		t.Errorf("cost %d, want the greatest", cost)
	}
}

func TestScanAttributesAgreesWithTheTokenizer(t *testing.T) {
	for _, tag := range []string{
		`>`, ` >`, ` a>`, ` a=b>`, ` a="b>c">`, ` a='b"c' d>`, ` a = "x" b>`, `/>`, ` a/>`, ` a=/>`, ` ==">">`, ` "a">`,
		` a=b"c>`, ` a="b"c="d">`, ` a=>`, ` a / b>`, ` ='>'>`,
	} {
		length, attributes, closed := scanAttributes([]byte(tag + "rest"))
		z := html.NewTokenizer(strings.NewReader("<b" + tag + "rest"))
		z.Next()
		if raw := string(z.Raw()); !closed || raw != "<b"+tag[:min(length, len(tag))] {
			t.Errorf("%q: length %d closed %v, the tokenizer says %q", tag, length, closed, raw)
		}
		if token := z.Token(); attributes < len(token.Attr) {
			t.Errorf("%q: %d attributes, the tokenizer says %d", tag, attributes, len(token.Attr))
		}
	}
}

func FuzzTreeCost(f *testing.F) {
	f.Add("<p><b id=1><b id=2></p><p>x<p>y")
	f.Add("<table><td><a href='x'>y</a><!-- </a> --><tr><font></table><p>z")
	f.Add("<svg><b></svg><i><object></i></object><p>x<select><a>b</select>")
	f.Add("<b><div><div><div></b></div></b></div></b></div><p>x")
	pad := strings.Repeat("<p>x</p>", 50)
	f.Fuzz(func(t *testing.T, s string) {
		text := pad + strings.Repeat(s+"<p>x", 20)
		root, err := html.Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		cost, n := fullCost([]byte(text)), countNodes(root)
		if n > cost {
			t.Errorf("cost %d, but the tree has %d nodes", cost, n)
		}
	})
}
