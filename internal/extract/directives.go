package extract

import (
	"slices"
	"strings"
)

// directives are the robots directives of a page that a crawler obeys. Several
// sources add up to the strictest.
type directives struct{ noIndex, noFollow bool }

// add takes one directive; others than these (noarchive, max-snippet ...) do
// not concern a crawler.
func (d *directives) add(word string) {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "noindex":
		d.noIndex = true
	case "nofollow":
		d.noFollow = true
	case "none":
		d.noIndex, d.noFollow = true, true
	}
}

// addMeta takes a <meta> of that name: "robots", or one of our tokens.
func (d *directives) addMeta(name, content string, tokens []string) {
	if !strings.EqualFold(name, "robots") && !isToken(name, tokens) {
		return
	}
	for word := range strings.FieldsFuncSeq(content, isSeparator) {
		d.add(word)
	}
}

func isSeparator(r rune) bool {
	return r == ',' || r == ';' || r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == '\f'
}

// addTags takes the values of X-Robots-Tag. A value may begin with the name of
// the crawler it is for; within a value, such a name holds for what follows it.
func (d *directives) addTags(values []string, tokens []string) {
	for _, value := range values {
		ours := true
		for part := range strings.SplitSeq(value, ",") {
			if name, rest, ok := strings.Cut(part, ":"); ok && !isDirective(name) {
				ours = isToken(name, tokens)
				part = rest
			}
			if ours {
				d.add(part)
			}
		}
	}
}

// isDirective reports whether name is a directive that has a value, so that it
// is not taken for the name of a crawler.
func isDirective(name string) bool {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "unavailable_after", "max-snippet", "max-image-preview", "max-video-preview":
		return true
	}
	return false
}

func isToken(name string, tokens []string) bool {
	name = strings.TrimSpace(name)
	return slices.ContainsFunc(tokens, func(t string) bool { return strings.EqualFold(t, name) })
}
