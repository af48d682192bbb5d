package extract

import (
	"bytes"
	"mime"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// What a page has at most whose content is made by its scripts: most have no link and a word such as "Loading".
// docs/OUTPUT.md names these bounds.
const (
	fewLinks    = 2   // to other pages
	fewText     = 250 // bytes of visible text, white space left out
	browserRead = 256 << 10
)

// needsBrowser reports whether a document has scripts, hardly a link and hardly text: scripts make its content. text is
// in UTF-8; its first 256 KiB count. Most documents have links, and cost nothing.
func needsBrowser(text []byte, links []Link) bool {
	n := 0
	for i := range links {
		if slices.Contains([]Kind{Anchor, Area, Frame, Iframe, Refresh}, links[i].Kind) {
			if n++; n > fewLinks {
				return false
			}
		}
	}
	tokens := html.NewTokenizer(bytes.NewReader(text[:min(len(text), browserRead)]))
	scripts, visible := 0, 0
	var inside atom.Atom // an element whose text nobody sees
	var runs bool        // it is a script that a browser runs
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return scripts > 0 && visible < fewText
		case html.StartTagToken:
			token := tokens.Token()
			switch token.DataAtom {
			case atom.Script:
				inside, runs = token.DataAtom, isScript(attribute(token.Attr, "type"))
				if runs && attribute(token.Attr, "src") != "" {
					scripts++
				}
			case atom.Style, atom.Title, atom.Noscript, atom.Template:
				inside = token.DataAtom
			}
		case html.EndTagToken:
			if name, _ := tokens.TagName(); atom.Lookup(name) == inside {
				inside = 0
			}
		case html.TextToken:
			size := len(bytes.Trim(tokens.Text(), space))
			switch {
			case inside == 0:
				visible += size
			case inside == atom.Script && runs && size > 0:
				scripts++
			}
			if visible >= fewText {
				return false
			}
		}
	}
}

// isScript reports whether a browser runs a script of a type: JavaScript, or a module (HTML, section 4.12.1).
func isScript(kind string) bool {
	media, _, err := mime.ParseMediaType(kind)
	return strings.TrimSpace(kind) == "" || strings.EqualFold(kind, "module") ||
		err == nil && strings.HasSuffix(media, "javascript") || err == nil && strings.HasSuffix(media, "ecmascript")
}
