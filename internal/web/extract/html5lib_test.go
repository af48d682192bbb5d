package extract

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// movedLinks are inputs with a link before a frameset. Browsers, and golang.org/x/net, open the
// formatting element again behind it, at a space. docs/EXTRACTION.md judges that.
var movedLinks = []string{"tests18#21", "tests19#40", "tests6#46"}

// TestTreeConstructionInputs reads the inputs of the tree-construction tests of html5lib: as they
// are, and with elements behind each tag that show where the parser is at that point.
func TestTreeConstructionInputs(t *testing.T) {
	f := must.Get(os.Open("testdata/html5lib/inputs.jsonl"))(t)
	defer f.Close()
	inputs := 0
	for lines := bufio.NewScanner(f); lines.Scan(); inputs++ {
		var input [2]string
		must.Do(t, json.Unmarshal(lines.Bytes(), &input))
		name, text := input[0], input[1]
		agree(t, name+" "+text, []byte(text), false)
		agree(t, name+" and more "+text,
			[]byte(text+"<a href=/z>z</a><link rel=next href=/next><title>z</title>"), false)
		for _, probe := range []string{
			"<img src=i%d>", "<iframe src=i%d></iframe>", "<title>t%d</title><base href=b%[1]d/><html lang=l%[1]d>",
			"<meta name=robots content=d%d>", "<p>x<a href=p%d></a>", "</p><link rel=next href=n%d>",
			"<tr><td><a href=c%d>x</a>",
		} {
			probed := probedAfterTags(text, probe)
			agree(t, name+" "+probed, []byte(probed), false)
		}
		if !slices.Contains(movedLinks, name) {
			probed := probedAfterTags(text, "<a href=a%d>")
			agree(t, name+" "+probed, []byte(probed), false)
		}
	}
	assert.AtLeast(t, inputs, 1500, "inputs")
}

var tagEnd = regexp.MustCompile(`>`)

// probedAfterTags returns a document with a numbered probe behind each tag.
func probedAfterTags(text, probe string) string {
	n := 0
	return tagEnd.ReplaceAllStringFunc(text, func(string) string {
		n++
		return ">" + fmt.Sprintf(probe, n)
	})
}
