package extract

import (
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestMediaAndForms(t *testing.T) {
	const text = `<img src=/i srcset="/i1 1x, /i2 2x,/i3"><picture><source srcset="/p1 100w,
		/p2 (x, y) 200w, data:image/png;base64,AA== 3x"></picture><video src=/v poster=/vp><source src=/vs><track src=/no></video><audio src=/a></audio><embed src=/e>
		<object data=/o></object><input type=image src=/in><input src=/no><script src=/no></script>
		<form action=/search method=GET></form><form action=/post method=post></form><form action=/plain></form><form></form>`
	want := []string{"/i", "/i1", "/i2", "/i3", "/p1", "/p2", "/v", "/vp", "/vs", "/a", "/e", "/o", "/in", "/search",
		"/plain"}
	o := DefaultOptions()
	o.Media, o.Forms = true, true
	for name, text := range map[string]string{"tree": text, "flat": text + strings.Repeat("<div>", 600)} {
		p := must.Get(HTML([]byte(text), typed("text/html"), mustParse(t, "http://site.test/"), nil, o))(t)
		var got []string
		for _, l := range p.Links {
			got = append(got, strings.TrimPrefix(l.URL.String(), "http://site.test"))
			form := strings.Contains("/search /plain", got[len(got)-1])
			assert.True(t, (l.Kind == Media || form) && (!form || l.Kind == Form), "%s: %v is a %v", name, l.URL,
				l.Kind)
		}
		assert.Slice(t, got, want, name, "links")
	}
	assert.AtMost(t, len(read(t, text).Links), 0, "links without Options.Media")
}

func TestSrcset(t *testing.T) {
	for srcset, want := range map[string]string{
		"": "", ",, ,": "", "/a": "/a", "/a,": "/a", "/a,/b": "/a,/b", "/a, /b": "/a /b", " /a  1x ,\n/b": "/a /b",
		"/a 1x,/b 2x": "/a /b", "/a (1,2) 3x, /b": "/a /b", "/a (1, /b": "/a",
		"/a,, /b": "/a /b",
	} {
		o := DefaultOptions()
		o.Media = true
		p := must.Get(HTML([]byte(`<img srcset="`+srcset+`">`), typed("text/html"),
			mustParse(t, "http://site.test/"), nil, o))(t)
		var got []string
		for _, l := range p.Links {
			got = append(got, strings.TrimPrefix(l.URL.String(), "http://site.test"))
		}
		assert.Equal(t, strings.Join(got, " "), want, srcset, got)
	}
}

// amble runs no scripts, so the content of noscript counts.
func TestNoscript(t *testing.T) {
	const text = `<head><noscript><link rel=canonical href=/c></noscript></head><noscript><a href=/a>x</a><meta http-equiv=refresh content="0;/r"></noscript><a href=/b>`
	want := []string{"canonical /c", "anchor /a", "refresh /r", "anchor /b"}
	for _, text := range []string{text, text + strings.Repeat("<div>", 600)} {
		assert.Slice(t, show(read(t, text)), want, "links")
	}
}
