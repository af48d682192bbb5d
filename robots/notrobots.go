package robots

// notRobots reports whether a response with status 200 is no robots.txt, but a page that says "not
// found" or some JSON: it has content outside of comments, and no line is a record of robots.txt.
func notRobots(body []byte) bool {
	text, _, _ := readable(body)
	l := newLines(text)
	says := false
	for {
		line, ok := l.next()
		if !ok {
			return says
		}
		word, _, _, isRecord := split(line)
		if k, _ := keyOf(word); isRecord && k != keyUnknown {
			return false
		}
		says = says || isContent(line)
	}
}

// isContent reports whether a line has anything outside of a comment.
func isContent(line []byte) bool {
	line = trim(line)
	return len(line) > 0 && line[0] != '#'
}
