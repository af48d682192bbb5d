package htmltree

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the files that are copies of golang.org/x/net/html")

const generated = "// Code generated from golang.org/x/net %s by go test ./internal/htmltree -run TestCopies -update; DO NOT EDIT.\n\n"

// edit is one difference between a file here and that of upstream. The old text must be there
// exactly once.
type edit struct{ old, new string }

// copied is a file of golang.org/x/net/html that is here, and all that differs in it.
type copied struct {
	name, upstream string
	begin, end     string // of what is taken of the file, the end not included; empty: those of the file
	edits          []edit
}

// copyAttributes is a function of parse.go that meter.go has another of.
const copyAttributes = `// copyAttributes copies attributes of src not found on dst to dst.
func copyAttributes(dst *Node, src Token) {
	if len(src.Attr) == 0 {
		return
	}
	attr := map[string]string{}
	for _, t := range dst.Attr {
		attr[t.Key] = t.Val
	}
	for _, t := range src.Attr {
		if _, ok := attr[t.Key]; !ok {
			dst.Attr = append(dst.Attr, t)
			attr[t.Key] = t.Val
		}
	}
}

`

func copies() []copied {
	return []copied{
		{name: "special.go", upstream: "const.go", edits: []edit{{"package html\n", "package htmltree\n"}}},
		{name: "doctype.go", upstream: "doctype.go", edits: []edit{{"package html\n", "package htmltree\n"}}},
		{name: "foreign.go", upstream: "foreign.go", edits: []edit{{"package html\n", "package htmltree\n"}}},
		{name: "stack.go", upstream: "node.go", begin: "// nodeStack is a stack of nodes.\n", edits: []edit{
			{"// nodeStack is a stack of nodes.\n",
				"package htmltree\n\nimport \"golang.org/x/net/html/atom\"\n\n// nodeStack is a stack of nodes.\n"},
		}},
		{name: "parse.go", upstream: "parse.go", end: "// Parse returns the parse tree for the HTML", edits: []edit{
			{"package html\n", "package htmltree\n"},
			{"\t\"errors\"\n", ""},
			{"\ttokenizer *Tokenizer\n", "\ttokenizer *Tokenizer\n\tmeter\n"},
			// A token makes a node or two, and each look at it may go through the open elements.
			{"func (p *parser) parseCurrentToken() {\n",
				"func (p *parser) parseCurrentToken() {\n\tp.takeToken(&p.tok)\n"},
			{"\tfor !consumed {\n", "\tfor !consumed {\n\t\tp.spend(1 + len(p.oe))\n"},
			{"\tif mathMLTextIntegrationPoint(n) {\n\t\tif p.tok.Type == StartTagToken &&",
				"\tp.spend(len(n.Attr))\n\tif mathMLTextIntegrationPoint(n) {\n\t\tif p.tok.Type == StartTagToken &&"},
			{"\t\t\t\tif n.Namespace == \"\" || htmlIntegrationPoint(n)",
				"\t\t\t\tp.spend(len(n.Attr))\n\t\t\t\tif n.Namespace == \"\" || htmlIntegrationPoint(n)"},
			{"\t\t\tcopyAttributes(p.oe[0], p.tok)\n", "\t\t\tp.copyAttributes(p.oe[0], &p.tok)\n"},
			{"\t\t\t\t\tcopyAttributes(body, p.tok)\n", "\t\t\t\t\tp.copyAttributes(body, &p.tok)\n"},
			{copyAttributes, ""},
			// Formatting elements are opened again and again, and looked for among those that are
			// active.
			{"\t\tif !slices.Equal(n.Attr, attr) {\n",
				"\t\tp.spend(1 + len(attr))\n\t\tif !slices.Equal(n.Attr, attr) {\n"},
			{"\t\tif i == 0 {\n\t\t\ti = -1\n", "\t\tp.spend(len(p.oe))\n\t\tif i == 0 {\n\t\t\ti = -1\n"},
			{"\t\tclone := p.afe[i].clone()\n", "\t\tclone := p.clone(p.afe[i])\n"},
			{"\t\t\tfor i := len(p.afe) - 1; i >= 0 && p.afe[i].Type != scopeMarkerNode; i-- {\n",
				"\t\t\tp.spend(len(p.afe))\n\t\t\tfor i := len(p.afe) - 1; i >= 0 && p.afe[i].Type != scopeMarkerNode; i-- {\n"},
			{"\t// Steps 1-2\n", "\tp.spend(len(p.afe))\n\t// Steps 1-2\n"},
			{"\tfor i := 0; i < 8; i++ {\n", "\tfor i := 0; i < 8; i++ {\n\t\tp.spend(len(p.oe) + len(p.afe))\n"},
			{"\t\t\t// Step 14.2.\n\t\t\tj++\n",
				"\t\t\tp.spend(len(p.oe) + len(p.afe))\n\t\t\t// Step 14.2.\n\t\t\tj++\n"},
			{"\t\t\tclone := node.clone()\n", "\t\t\tclone := p.clone(node)\n"},
			{"\t\tclone := formattingElement.clone()\n\t\treparentChildren(clone, furthestBlock)\n",
				"\t\tclone := p.clone(formattingElement)\n\t\tp.reparentChildren(clone, furthestBlock)\n"},
		}},
	}
}

// TestCopies: what is copied of golang.org/x/net/html is what the version in go.mod has, but for
// the edits that count the work.
func TestCopies(t *testing.T) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", "golang.org/x/net").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, version, _ := strings.Cut(strings.TrimSpace(string(module)), " ")
	for _, c := range copies() {
		text := fmt.Sprintf(generated, version) + c.text(t, filepath.Join(dir, "html", c.upstream))
		if *update {
			if err := os.WriteFile(c.name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(c.name)
		if err != nil || string(have) != text {
			t.Errorf("%s is not the copy of golang.org/x/net %s (%v): go test ./internal/htmltree -run TestCopies -update", c.name, version, err)
		}
	}
}

// text is what the file here has to be, but for its first line.
func (c *copied) text(t *testing.T, upstream string) string {
	b, err := os.ReadFile(upstream)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	_, after, found := strings.Cut(text, c.begin)
	if !found {
		t.Fatalf("%s has no %q", c.upstream, c.begin)
	}
	text = c.begin + after
	if c.end != "" {
		text, _, found = strings.Cut(text, c.end)
		if !found {
			t.Fatalf("%s has no %q", c.upstream, c.end)
		}
	}
	for _, e := range c.edits {
		if n := strings.Count(text, e.old); n != 1 {
			t.Fatalf("%s has %q %d times, not once", c.upstream, e.old, n)
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	return strings.TrimRight(text, "\n") + "\n"
}
