package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// media takes an element that shows a file: that file, and the one shown in its place.
func (c *collector) media(a atom.Atom, attrs []html.Attribute) {
	if a == atom.Input && !strings.EqualFold(attribute(attrs, "type"), "image") {
		return
	}
	for i := range attrs {
		if attrs[i].Namespace != "" {
			continue
		}
		switch key := attrs[i].Key; {
		case key == "src", key == "poster" && a == atom.Video, key == "data" && a == atom.Object:
			c.refer(attrs[i].Val, Media, false)
		case key == "srcset" && (a == atom.Img || a == atom.Source):
			EachCandidate(attrs[i].Val, func(u string) { c.refer(u, Media, false) })
		}
	}
}

// isMedia reports whether an element shows a file of its own.
func isMedia(a atom.Atom) bool {
	switch a {
	case atom.Img, atom.Source, atom.Video, atom.Audio, atom.Embed, atom.Object, atom.Input:
		return true
	}
	return false
}

// EachCandidate calls f for each image of a srcset (HTML, section 4.8.4.3.2, "parsing a srcset attribute").
func EachCandidate(s string, f func(reference string)) {
	for {
		s = strings.TrimLeft(s, space+",")
		if s == "" {
			return
		}
		end := strings.IndexAny(s, space)
		if end < 0 {
			end = len(s)
		}
		u := strings.TrimRight(s[:end], ",")
		f(u)
		if s = s[end:]; len(u) == end { // a descriptor may follow
			s = afterDescriptors(s)
		}
	}
}

// afterDescriptors returns s from the next comma outside of parentheses on.
func afterDescriptors(s string) string {
	for depth, i := 0, 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth = max(depth-1, 0)
		case ',':
			if depth == 0 {
				return s[i+1:]
			}
		}
	}
	return ""
}

// form takes a form with method GET: its action, without the fields.
func (c *collector) form(attrs []html.Attribute) {
	if method := attribute(attrs, "method"); method == "" || strings.EqualFold(strings.TrimSpace(method), "get") {
		c.refer(attribute(attrs, "action"), Form, false)
	}
}
