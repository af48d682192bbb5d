package robots

// Content is what stands under the name of a robots.txt.
type Content uint8

// The kinds of content.
const (
	ContentEmpty Content = iota // nothing, or nothing but comments
	ContentFile                 // a robots.txt: it has a record
	ContentOther                // something else: a page that says "not found", JSON
)

// ContentOf returns what a body is. In a document of a markup language, whose scripts have lines such
// as "host: name", only a line counts that such a script does not have.
func ContentOf(body []byte) Content {
	text, _, _ := readable(body)
	l := newLines(text)
	kind, document := ContentEmpty, false
	for {
		line, ok := l.next()
		if !ok {
			return kind
		}
		if !isContent(line) {
			continue
		}
		if kind == ContentEmpty {
			kind, document = ContentOther, trim(line)[0] == '<'
		}
		if isRecord(line, document) {
			return ContentFile
		}
	}
}

// isRecord reports whether a line is a record of robots.txt.
func isRecord(line []byte, inDocument bool) bool {
	word, value, colon, ok := split(line)
	if !ok {
		return false
	}
	k, proper := keyOf(word)
	if !inDocument {
		return k != keyUnknown
	}
	switch k {
	case keyUserAgent:
		return proper && colon
	case keyAllow, keyDisallow:
		return len(value) > 0 && (value[0] == '/' || value[0] == '*')
	}
	return false
}

// isContent reports whether a line has anything outside of a comment.
func isContent(line []byte) bool {
	line = trim(line)
	return len(line) > 0 && line[0] != '#'
}
