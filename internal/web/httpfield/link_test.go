package httpfield

import (
	"slices"
	"strings"
	"testing"
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
		if got := Links(tt.lines, "up", 8); !slices.Equal(got, tt.want) {
			t.Errorf("%.60q: %q, want %q", tt.lines, got, tt.want)
		}
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
			if !strings.Contains(line, "<"+target+">") {
				t.Errorf("%q is no target in %q", target, line)
			}
		}
		if more := Links([]string{"<z>; rel=up, " + line}, "up", 1001); !slices.Equal(more,
			append([]string{"z"}, targets...)) {
			t.Errorf("%q: %q, and behind another link %q", line, targets, more)
		}
		if len(targets) > 0 && !strings.Contains(strings.ToLower(line), "up") {
			t.Errorf("%q has %q", line, targets)
		}
	})
}
