package extract

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// A child of TestSoakWorkIsLinear reads a family, and how many units of it, from these.
const (
	workFamily = "AMBLE_WORK_FAMILY"
	workUnits  = "AMBLE_WORK_UNITS"
)

// TestWorkChild is the child. It does nothing when it runs as a test of its own.
func TestWorkChild(t *testing.T) {
	f, wanted := families()[os.Getenv(workFamily)]
	if !wanted {
		t.Skip("for TestSoakWorkIsLinear")
	}
	n := must.Get(strconv.Atoi(os.Getenv(workUnits)))(t)
	f.read(t, f.text(n))
}

// countedReads counts the reads of a tokenizer.
type countedReads struct {
	*textReader
	reads int
}

func (r *countedReads) Read(p []byte) (int, error) {
	r.reads++
	return r.textReader.Read(p)
}

// TestReadsAreFew holds that a token is not read in small pieces, whatever is in it: the tokenizer
// copies the token at each read.
func TestReadsAreFew(t *testing.T) {
	long := strings.Repeat(">"+strings.Repeat("x", 64), 20_000)
	for _, text := range []string{
		"<!--" + long + "-->", `<title a="` + long + `">`, "<script>" + long + "</script>", long,
		"<!--" + strings.Repeat(">"+strings.Repeat("x", 4095), 200) + "-->",
	} {
		z := newTextTokenizer([]byte(text), true)
		r := &countedReads{textReader: z.text}
		z.Tokenizer = html.NewTokenizer(r)
		for z.Next() != html.ErrorToken {
			continue
		}
		assert.AtMost(t, r.reads, len(text)/1000+10, text, len(text), "bytes took reads, more than")
	}
}
