//go:build !core

package pagerules

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

const (
	// maxParts bounds the parts of all selectors of a rule: "main a[href], nav" has three. Each is
	// a bit of partSet.
	maxParts = 64
	// maxSelector bounds a selector, in bytes.
	maxSelector = 1024
	// maxWork bounds the bytes that are compared for a page: each part that is tried on an element
	// counts with elementWork and the attributes of the element.
	maxWork, elementWork = 128 << 20, 16
	// maxNth bounds the number in :nth-child(number): so many siblings are counted.
	maxNth = 100
)

// partSet is a set of the parts of a rule's selectors, by their index.
type partSet uint64

// compound is the part of a selector that is about one element: "main > a[href]" has two. The selectors of
// a rule are matched together, in one pass over the document, in which each part is tried once on
// each element. cascadia would try an element on each of its ancestors for each space in a
// selector.
type compound struct {
	matcher    cascadia.Sel
	combinator byte    // its relation to the part before it: ' ', '>', '+' or '~'; 0: it is the first
	before     partSet // the part before it
}

// compiler makes parts of selectors.
type compiler struct {
	parts []compound
	count int // of the parts, including those in :not()
}

// compile adds the parts of a list of selectors. It returns the last part of each.
func (c *compiler) compile(text string) (last partSet, err error) {
	if len(text) > maxSelector {
		return 0, fmt.Errorf("it has %d bytes; want at most %d", len(text), maxSelector)
	}
	s := scanner{rest: text}
	for {
		one, err := c.compileOne(&s)
		if err != nil {
			return 0, err
		}
		last |= one
		if s.rest == "" {
			return last, nil
		}
		s.rest = s.rest[1:] // the comma
	}
}

// compileOne adds the parts of one selector, up to a comma or the end.
func (c *compiler) compileOne(s *scanner) (last partSet, err error) {
	var combinator byte
	for {
		text, err := s.compound()
		if err != nil {
			return 0, err
		}
		matcher, err := cascadia.Parse(text)
		if err != nil {
			return 0, err
		}
		if c.count += 1 + strings.Count(text, ":not(") + strings.Count(text, ","); c.count > maxParts {
			return 0, fmt.Errorf("the selectors of the rule have more than %d parts together", maxParts)
		}
		c.parts = append(c.parts, compound{matcher: matcher, combinator: combinator, before: last})
		last = 1 << (len(c.parts) - 1)
		if combinator = s.combinator(); combinator == 0 {
			return last, nil
		}
	}
}

// scanner cuts a selector into the parts between its combinators.
type scanner struct{ rest string }

// combinators stand between the parts of a selector, space among them is ASCII whitespace.
const combinators, space = ">+~", " \t\n\f\r"

// combinator cuts off the text between two parts; it returns 0 at a comma or the end.
func (s *scanner) combinator() byte {
	trimmed := strings.TrimLeft(s.rest, space)
	descends := len(trimmed) < len(s.rest)
	s.rest = trimmed
	switch {
	case s.rest == "" || s.rest[0] == ',':
		return 0
	case strings.IndexByte(combinators, s.rest[0]) >= 0:
		c := s.rest[0]
		s.rest = s.rest[1:]
		return c
	case descends:
		return ' '
	}
	return 0
}

// errUnclosed is the error of a bracket, parenthesis or quote that is not closed.
var errUnclosed = errors.New("a bracket, parenthesis or quote is not closed")

// compound cuts off the next part.
func (s *scanner) compound() (string, error) {
	s.rest = strings.TrimLeft(s.rest, space)
	var open []byte // brackets, parentheses and quotes
	for i := 0; i < len(s.rest); i++ {
		c := s.rest[i]
		inside := byte(0)
		if len(open) > 0 {
			inside = open[len(open)-1]
		}
		switch {
		case c == '\\':
			i++
		case inside == '"' || inside == '\'':
			if c == inside {
				open = open[:len(open)-1]
			}
		case c == '"' || c == '\'' || c == '[' || c == '(':
			open = append(open, c)
		case c == ']' && inside == '[' || c == ')' && inside == '(':
			open = open[:len(open)-1]
		case inside == '[':
			if c == '#' && strings.HasPrefix(s.rest[i:], "#=") {
				return "", errors.New("regular expressions (#=) are not allowed")
			}
		case c == ':':
			if err := checkPseudoClass(s.rest[i+1:]); err != nil {
				return "", err
			}
		case inside == '(' && strings.IndexByte(combinators+space, c) >= 0:
			return "", errors.New("want a selector without spaces and combinators in parentheses")
		case inside == 0 && strings.IndexByte(combinators+space+",", c) >= 0:
			return s.cut(i)
		}
	}
	if len(open) > 0 {
		return "", errUnclosed
	}
	return s.cut(len(s.rest))
}

func (s *scanner) cut(i int) (string, error) {
	compound := s.rest[:i]
	s.rest = s.rest[i:]
	if compound == "" {
		return "", errors.New("want an element, such as a, .class, #id or [attribute]")
	}
	return compound, nil
}

// pseudoClasses are the pseudo-classes that check a bounded number of elements, unlike :has() and
// :contains().
var pseudoClasses = []string{"not", "first-child", "last-child", "only-child", "nth-child", "nth-last-child", "empty",
	"root", "link", "checked"}

// checkPseudoClass checks the pseudo-class at the start of text.
func checkPseudoClass(text string) error {
	end := 0
	for end < len(text) && (isLetter(rune(text[end])) || text[end] == '-') {
		end++
	}
	name := strings.ToLower(text[:end])
	if !slices.Contains(pseudoClasses, name) {
		return fmt.Errorf(":%s is not allowed, or unknown; there are :%s", name, strings.Join(pseudoClasses, ", :"))
	}
	if !strings.HasPrefix(name, "nth-") {
		return nil
	}
	argument, _, _ := strings.Cut(strings.TrimPrefix(text[end:], "("), ")")
	if n, err := strconv.Atoi(argument); err != nil || n < 1 || n > maxNth {
		return fmt.Errorf("want a number from 1 to %d in :%s()", maxNth, name)
	}
	return nil
}

// surroundings are the parts that match around an element.
type surroundings struct {
	parent, above partSet // above: any ancestor of the element
	last, earlier partSet // the sibling right before it; any before it
}

// allow returns the parts whose predecessor matches.
func (s *surroundings) allow(p *compound) bool {
	switch p.combinator {
	case 0:
		return true
	case ' ':
		return s.above&p.before != 0
	case '>':
		return s.parent&p.before != 0
	case '+':
		return s.last&p.before != 0
	}
	return s.earlier&p.before != 0
}

// match returns the parts that an element matches, and how many bytes were compared for that.
func match(parts []compound, n *html.Node, around *surroundings) (matched partSet, work int) {
	size := elementWork
	for i := range n.Attr {
		size += len(n.Attr[i].Key) + len(n.Attr[i].Val)
	}
	for i := range parts {
		if p := &parts[i]; around.allow(p) {
			work += size
			if p.matcher.Match(n) {
				matched |= 1 << i
			}
		}
	}
	return matched, work
}

func isLetter(c rune) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
