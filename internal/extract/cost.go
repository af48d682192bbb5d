package extract

import (
	"bytes"
	"math"
)

// A document can make its tree far larger than itself: a formatting element
// (<b>, <a>, <font> ...) that is left open is opened again, attributes and all,
// in every block that follows (HTML, section 13.2.4.3, "reconstruct the active
// formatting elements"). A few kilobytes of unclosed <b id=n> and a megabyte of
// <p>x would cost gigabytes. And the attributes of a repeated <html> or <body>
// are merged into those of the first, in quadratic time.
//
// treeCost estimates from above, without building it, how many nodes the tree
// of text can have; past enough it stops counting. It only reads tags, and
// takes a formatting element for closed only where nothing can be mistaken: in
// a stretch of well-nested ordinary tags. A stretch cannot hide an element that
// the parser sees: whatever starts text that is no markup (a comment, a script,
// an attribute with a "<" in it) ends the stretch, and start tags count wherever
// they stand.
func treeCost(text []byte, enough int) int {
	tags := bytes.Count(text, []byte("<"))
	if tags*len(text) <= 8*enough {
		return 2 * tags // too small for harm: half the tags, with all the bytes, reopened by the other half
	}
	return scanCost(text, tags, enough)
}

func scanCost(text []byte, tags, enough int) int {
	cost := 2*tags + 8 // a node for each tag and each text, and those always there
	var s stretch
	for cost <= enough {
		i := bytes.IndexByte(text, '<')
		if i < 0 {
			return cost
		}
		text = text[i+1:]
		if !s.add(text) {
			return math.MaxInt
		}
		cost += s.floor + s.open
	}
	return cost
}

const (
	// maxRoots bounds the <html> and <body> tags of a document.
	maxRoots = 16
	// maxTagBytes bounds a formatting tag, maxNesting the tags of a stretch.
	maxTagBytes, maxNesting = 4096, 64
)

// stretch follows the formatting elements that may be open, from the outermost
// on. Weights count an element together with its attributes, in nodes.
type stretch struct {
	floor int // weight of those that may stay open for good
	open  int // weight of those in stack
	stack []openTag
	roots int
}

type openTag struct {
	name   []byte
	weight int // 0: not a formatting element
}

// add takes the tag behind a "<". It reports false for a document that is not
// to be parsed at all.
func (s *stretch) add(text []byte) bool {
	if len(text) == 0 {
		return true
	}
	switch c := text[0]; {
	case isLetter(c):
		return s.start(text)
	case c == '/' && len(text) > 1 && isLetter(text[1]):
		s.end(text[1:])
	case c == '!' || c == '?' || c == '/':
		s.interrupt()
	}
	return true
}

// start takes a start tag.
func (s *stretch) start(text []byte) bool {
	name, n := tagName(text)
	kind := kindOf(name)
	if kind == rootTag {
		s.roots++
		s.interrupt()
		return s.roots <= maxRoots
	}
	switch {
	case kind == otherTag:
		s.interrupt()
		return true
	case kind != formattingTag && len(s.stack) == 0:
		return true // a stretch begins with a formatting element
	}
	length, attributes, closed := scanAttributes(text[n:min(len(text), maxTagBytes)])
	weight := 0
	if kind == formattingTag {
		if !closed {
			return false
		}
		weight = 1 + (attributes+1)/2
	}
	switch {
	case !closed || len(s.stack) == maxNesting || bytes.IndexByte(text[:n+length], '<') >= 0:
		s.interrupt()
		s.floor += weight
	case kind != voidTag && !(kind == foreignTag && text[n+length-2] == '/'):
		s.stack = append(s.stack, openTag{name, weight})
		s.open += weight
	}
	return true
}

// end takes an end tag.
func (s *stretch) end(text []byte) {
	if len(s.stack) == 0 {
		return
	}
	name, n := tagName(text)
	top := s.stack[len(s.stack)-1]
	if !bytes.Equal(name, top.name) || n >= len(text) || text[n] != '>' {
		s.interrupt()
		return
	}
	s.stack = s.stack[:len(s.stack)-1]
	s.open -= top.weight
}

// interrupt ends the stretch: what is open in it may stay open for good.
func (s *stretch) interrupt() {
	s.floor += s.open
	s.open = 0
	s.stack = s.stack[:0]
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// tagName returns the name that text begins with, in lower case, and its length.
func tagName(text []byte) (name []byte, n int) {
	upper := false
	for n < len(text) && !isSpace(text[n]) && text[n] != '>' && text[n] != '/' {
		upper = upper || 'A' <= text[n] && text[n] <= 'Z'
		n++
	}
	if name = text[:n]; upper {
		name = bytes.ToLower(name[:min(n, maxTagBytes)])
	}
	return name, n
}

// scanAttributes reads the attributes of a tag up to its ">", as the tokenizer
// does (HTML, sections 13.2.5.32 to 13.2.5.40). closed is false if there is none.
func scanAttributes(text []byte) (length, attributes int, closed bool) {
	i := 0
	for {
		if i = skipSpace(text, i); i >= len(text) {
			return i, attributes, false
		}
		if text[i] == '>' {
			return i + 1, attributes, true
		}
		attributes++
		for key := i; i < len(text) && !endsKey(text[i], i == key); i++ {
		}
		if i = skipSpace(text, i); i < len(text) && text[i] == '/' {
			i++
		} else if i < len(text) && text[i] == '=' {
			i = skipValue(text, skipSpace(text, i+1))
		}
	}
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

// endsKey reports whether c ends an attribute's name; an equals sign in its
// first place does not.
func endsKey(c byte, first bool) bool {
	return c == '>' || c == '/' || isSpace(c) || (c == '=' && !first)
}

// skipValue returns the index behind the attribute value at i.
func skipValue(text []byte, i int) int {
	if i < len(text) && (text[i] == '"' || text[i] == '\'') {
		n := bytes.IndexByte(text[i+1:], text[i])
		if n < 0 {
			return len(text)
		}
		return i + n + 2
	}
	for i < len(text) && text[i] != '>' && !isSpace(text[i]) {
		i++
	}
	return i
}
