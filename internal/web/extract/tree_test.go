package extract

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// measured is the size and cost of a document.
func measured(text string, full bool) *builder {
	return buildTree(toUTF8([]byte(text), "text/html; charset=utf-8"), judgeOptions(), full)
}

// A document of twice the size takes at most two and a half times the steps, and no tag takes more
// than a few searches.
func TestStepsAreLinear(t *testing.T) {
	for name, f := range families() {
		if f.kind != NotAList {
			continue
		}
		for _, full := range []bool{false, true} {
			once, twice := f.text(1000), f.text(2000)
			first, second := measured(once, full), measured(twice, full)
			assert.AtMost(t, float64(second.steps), 2.5*float64(first.steps)+10_000, name, "full", full, first.steps,
				"steps for", len(once), "bytes", second.steps, len(twice))
			assert.AtMost(t, second.steps, 300*(strings.Count(twice, "<")+1), name, "full", full, "steps for tags")
		}
	}
}

// The size of a tree is the sum of its nodes and attributes, its depth is bounded, and each text is
// one node.
func TestTreesAreAsLargeAsTheySay(t *testing.T) {
	for name, f := range families() {
		if f.kind != NotAList {
			continue
		}
		b := measured(f.text(500), true)
		nodes, attributes, depth, deepest := 0, 0, 0, 0
		for n := b.root; n != nil; {
			if nodes++; n.Type == html.TextNode && n.NextSibling != nil && n.NextSibling.Type == html.TextNode {
				t.Fatalf("%s: a text of two nodes", name)
			}
			attributes += len(n.Attr)
			if n.FirstChild != nil {
				n, depth = n.FirstChild, depth+1
				deepest = max(deepest, depth)
				continue
			}
			for n != nil && n.NextSibling == nil {
				n, depth = n.Parent, depth-1
			}
			if n != nil {
				n = n.NextSibling
			}
		}
		assert.True(t, nodes <= b.size+3 && attributes <= (2*(b.size+maxKeys)),
			"%s: %d nodes and %d attributes are a size of %d", name, nodes, attributes, b.size)
		assert.AtMost(t, deepest, 512, name, "levels")
	}
}

// Bounds of the tree cut it off and mark the page; links continue where there is no room for text.
func TestTreeIsBounded(t *testing.T) {
	o := judgeOptions()
	o.MaxNodes, o.LinkText = 2000, true
	text := strings.Repeat("<p>x</p>", 1000) + "<a href=/found>x</a>"
	p, err := HTML([]byte(text), typed("text/html"), mustParse(t, "http://site.test/"), nil, o)
	assert.True(t, err == nil && len(p.Links) == 1 && p.Cut != 0 && !p.Flat, "%v, links %v, truncated %v, flat %v", err,
		p.Links, p.Cut, p.Flat)
	b := buildTree([]byte(count(10_000, "<a href=%d>")), o, false)
	assert.True(t, b.size <= o.MaxNodes+maxKeys && b.cut != 0, "a tree of %d, cut %v", b.size, b.cut)
	many := "<p " + count(1000, "a%d ") + " href=x><a " + count(1000, "a%d ") + "href=/last>"
	assert.AtMost(t, measured(many, true).size, 4*maxKeys, "2000 attributes are a tree of")
	for _, full := range []bool{false, true} {
		assert.Equal(t, links(measured(many, full).root), "/last", "full", full, "links")
	}
}

// Deeper than the bound, elements are siblings. Templates are inert there too, and titles and
// scripts keep their meaning.
func TestDeepElements(t *testing.T) {
	deep := strings.Repeat("<div>", 600)
	text := deep + "<template><a href=/no></a><template></template><a href=/no></a></template>" +
		"<script><a href=/no></script><title>T</title><a href=/yes></a>" + strings.Repeat("</div>", 600) +
		"<a href=/end></a>"
	o := judgeOptions()
	o.Text = true
	p, err := HTML([]byte(text+"end"), typed("text/html"), mustParse(t, "http://site.test/"), nil, o)
	got := fmt.Sprint(show(p))
	assert.True(t, err == nil && got == "[anchor /yes anchor /end]" && p.Title == "T" && p.Flat && p.Text == "end",
		"%v, links %v, title %q, text %q, flat %v", err, got, p.Title, p.Text, p.Flat)
}

// links returns the references of a tree, in order.
func links(root *html.Node) string {
	var all []string
	for _, n := range (speaking{&Options{}}).MatchAll(root) {
		all = append(all, attribute(n.Attr, "href"))
	}
	return strings.Join(all, " ")
}

// The intended differences from the tree of a browser (docs/EXTRACTION.md).
func TestJudgedDifferences(t *testing.T) {
	tests := []struct{ text, want string }{
		{"<table><tr><td>a</td></tr>b</table>", "<table><tbody><tr><td>a</td></tr>b</tbody></table>"},
		{"<p><b>a</p>b", "<p><b>a</b></p>b"},
		{"<b>a<div>b</b>c</div>d", "<b>a<div>bc</div></b>d"},
		{"<b><div><i>a</b>b</div>c", "<b><div><i>a</i>b</div></b>c"},
		{"<p>a<table></table>", "<p>a</p><table></table>"},
		{"<svg><foreignObject>x</svg>", "<svg><foreignobject>x</foreignobject></svg>"},
		{"a<!-- x -->b", "ab"},
	}
	for _, tt := range tests {
		var got bytes.Buffer
		b := measured(tt.text, true)
		for n := b.body.node.FirstChild; n != nil; n = n.NextSibling {
			must.Do(t, html.Render(&got, n))
		}
		assert.Equal(t, got.String(), tt.want, tt.text)
	}
}
