//go:build !core

package requisites

import (
	"strings"

	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/stylesheet"
)

// sheet takes what a style sheet in UTF-8 refers to. Of a font that is there in several formats, a browser loads one.
func (f *finder) sheet(text []byte) {
	defer func(c extract.Charset) { f.charset = c }(f.charset)
	f.charset = ""
	var fonts []string // of a rule
	var rule int
	stylesheet.Each(text, func(r stylesheet.Reference) {
		if r.Rule != rule || r.Kind != stylesheet.Font {
			f.fonts(fonts)
			fonts, rule = fonts[:0], r.Rule
		}
		switch {
		case r.Kind != stylesheet.Font:
			f.add(r.Text, r.Kind == stylesheet.Import)
		case len(fonts) < f.most:
			fonts = append(fonts, r.Text)
		}
	})
	f.fonts(fonts)
}

// fonts takes the formats of a font that browsers of today prefer: WOFF 2, else WOFF, else all.
func (f *finder) fonts(all []string) {
	for _, extension := range []string{".woff2", ".woff", ""} {
		found := false
		for _, reference := range all {
			name, _, _ := strings.Cut(reference, "#")
			name, _, _ = strings.Cut(name, "?")
			if strings.HasSuffix(strings.ToLower(name), extension) {
				f.add(reference, false)
				found = true
			}
		}
		if found {
			return
		}
	}
}
