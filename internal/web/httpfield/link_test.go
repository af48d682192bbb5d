package httpfield

import (
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

func TestLinks(t *testing.T) {
	for _, tt := range []struct {
		lines []string
		want  []string
	}{
		{[]string{`<https://a.test/>; rel="up"`}, []string{"https://a.test/"}},
		{[]string{`<a>;rel=up`, `<b>; REL=UP , <c>;rel="next up"`}, []string{"a", "b", "c"}},
		{[]string{`<a>; rel=next, <b,c>; title="<"; rel="x Up"`}, []string{"b,c"}},
		{[]string{`<a>; title="; rel=up"`, `<a>; title="x, <b>; rel=up"`, `<a>; title="\"; rel=up"`}, nil},
		{[]string{`<a>; title="\""; rel=up, <b>; rel=up`}, []string{"a", "b"}},
		{[]string{`<a>; rel=next; rel=up`, `<a>; rel="up-to"`, `<a>; x-rel=up`, `<a>; rel`, `<a>`}, nil},
		{[]string{"<", "", ">", "<<<>>>; rel", "rel=up", `<a>; rel="up`}, []string{"a"}},
		{[]string{`x<a>; rel = "up"`}, []string{"a"}},
		{[]string{strings.Repeat("<a>;rel=up,", 10_000), "<b>;rel=up"}, slices.Repeat([]string{"a"}, 8)},
	} {
		assert.Slice(t, Links(tt.lines, "up", 8), tt.want, tt.lines)
	}
}

// FuzzLinks: every target stands in its line between angle brackets. A link before the line changes
// nothing about the others, and no link has a relation that is not in the line.
func FuzzLinks(f *testing.F) {
	f.Add(`<https://a.test/>; rel="up", <b,c>; title="\"<"; rel=next`)
	f.Add(`<<>>;rel="up;,`)
	f.Fuzz(func(t *testing.T, line string) {
		targets := Links([]string{line}, "up", 1000)
		for _, target := range targets {
			assert.Contains(t, line, "<"+target+">", target, "is no target in")
		}
		assert.Slice(t, Links([]string{"<z>; rel=up, " + line}, "up", 1001), append([]string{"z"}, targets...), line,
			targets, "and behind another link")
		assert.True(t, len(targets) == 0 || strings.Contains(strings.ToLower(line), "up"), "%q has %q", line, targets)
	})
}
