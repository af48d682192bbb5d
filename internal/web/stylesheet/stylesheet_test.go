//go:build !core

package stylesheet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestEach has the references of style sheets with their kinds and the numbers of their rules.
func TestEach(t *testing.T) {
	for text, want := range map[string]string{
		`@import "a"; @import url( b ) layer(x) url(c); d { e: URL('f') }`: "import a 1, import b 2, " +
			"other c 2, other f 2",
		`@font-face { src: url(a), url(b) } @font-face { src: url(c) }`: "font a 1, font b 1, font c 2",
		`@namespace "a"; @charset "b"; p { content: "c" } /* url(d) */`: "",
		`p { x: image-set("a" 1x, url(b) 2x); y: src("c"); z: "d" }`:    "other a 0, other b 0, other c 0",
		`p { x: url(\61 b\)\2f); y: url("\22 c\
d`: `other ab)/ 0, other "cd 0`,
	} {
		var got []string
		Each([]byte(text), func(r Reference) {
			got = append(got, fmt.Sprintf("%s %s %d", []string{"other", "import", "font"}[r.Kind], r.Text, r.Rule))
		})
		assert.Equal(t, strings.Join(got, ", "), want, text)
	}
}

// FuzzRewrite: what is no reference stays as it is, and what was written is read as the same references.
func FuzzRewrite(f *testing.F) {
	for _, seed := range []string{`@import "a"; p { x: url(b); y: image-set("\63 ") } /* url(d) */`, `url("\"`,
		"url(\x00", `@import url(\`, "'\\\n", "\xff\xfeurl(\xff)", `url(a b)`,
		`@font-face{src:url('`, "url(\"\\\x00\\0\")"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var before, after, again []string
		var rest strings.Builder
		scan([]byte(text), func(raw []byte, r *Reference) { rest.Write(raw) })
		must.True(t, rest.String() == text, "the parts of %q are %q", text, rest.String())
		out := Rewrite([]byte(text), func(r Reference) string {
			before = append(before, r.Text)
			return "x\\\"\n" + r.Text
		})
		Each(out, func(r Reference) { after = append(after, r.Text) })
		for _, s := range before {
			again = append(again, "x\\\"\n"+s)
		}
		must.True(t, strings.Join(after, "\x00") == strings.Join(again, "\x00") ||
			strings.ContainsAny(text, "\x00\r\f"), "%q was written as %q: %q, want %q", text, out, after, again)
	})
}
