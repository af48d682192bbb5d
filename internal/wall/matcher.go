package wall

import "bytes"

// matcher finds texts in a body without regard to the case of ASCII letters. Where the body is like no
// text, it goes on by up to 6 bytes at a time, as the search of Wu and Manber does (TR 94-17, University
// of Arizona, 1994). From where it may be like one, it goes on with the automaton of Aho and Corasick
// (CACM 18, 1975), one step a byte. So its time is linear, whatever the body.
type matcher struct {
	class [256]uint8 // of a byte; 0: in no text
	width int        // the number of classes
	next  []uint16   // the state after state*width + class
	found []Mark     // by state: the strongest mark that ends there
	depth []uint8    // by state: the length of the longest beginning of a text that the body has there
	skip  []uint8    // by the last block of a window: how far behind it the next text may begin
	first []bool     // by the first block of a window: whether a text begins with it
}

// Every text has a window of its first bytes, which the search compares by its last block.
const (
	window     = shortestMark
	block      = 3
	blockBits  = 15
	mostSkip   = window - block + 1
	leastSteps = window // of the automaton, before the search goes on by skips
)

// blockAt returns the number of the block of three bytes that ends behind b[i].
func (m *matcher) blockAt(b []byte, i int) uint {
	return (uint(m.class[b[i-2]])<<10 ^ uint(m.class[b[i-1]])<<5 ^ uint(m.class[b[i]])) & (1<<blockBits - 1)
}

type pattern struct {
	text string
	mark Mark
}

// stronger returns the stronger one of two marks, with the excuses of both.
func stronger(a, b Mark) Mark {
	if b.Tier == tierExcuse {
		b = Mark{Excuse: true}
	}
	if a.Tier == tierExcuse {
		a = Mark{Excuse: true}
	}
	excuse := a.Excuse || b.Excuse
	if b.Tier > a.Tier || b.Tier == a.Tier && a.Wall == 0 {
		a = b
	}
	a.Excuse = excuse
	return a
}

func newMatcher(patterns []pattern) *matcher {
	m := &matcher{width: 1}
	for _, p := range patterns {
		for i := range len(p.text) {
			if c := lower(p.text[i]); m.class[c] == 0 {
				m.class[c] = uint8(m.width)
				m.width++
			}
		}
	}
	for c := byte('A'); c <= 'Z'; c++ {
		m.class[c] = m.class[lower(c)]
	}
	m.addState()
	for _, p := range patterns {
		state := 0
		for i := range len(p.text) {
			at := state*m.width + int(m.class[p.text[i]])
			if m.next[at] == 0 {
				m.next[at] = uint16(len(m.found))
				m.addState()
				m.depth[len(m.depth)-1] = uint8(i + 1)
			}
			state = int(m.next[at])
		}
		m.found[state] = stronger(m.found[state], p.mark)
	}
	m.link()
	m.skip = bytes.Repeat([]byte{mostSkip}, 1<<blockBits)
	m.first = make([]bool, 1<<blockBits)
	for _, p := range patterns {
		m.first[m.blockAt([]byte(p.text), block-1)] = true
		for end := block - 1; end < window; end++ {
			at := m.blockAt([]byte(p.text), end)
			m.skip[at] = min(m.skip[at], uint8(window-1-end))
		}
	}
	return m
}

func (m *matcher) addState() {
	m.found = append(m.found, Mark{})
	m.depth = append(m.depth, 0)
	m.next = append(m.next, make([]uint16, m.width)...)
}

// link makes an automaton of a tree: where a state has no child, it goes on as the state of its
// longest end that begins a text.
func (m *matcher) link() {
	fail := make([]uint16, len(m.found))
	queue := make([]uint16, 0, len(m.found))
	for class := range m.width {
		if child := m.next[class]; child != 0 {
			queue = append(queue, child)
		}
	}
	for len(queue) > 0 {
		state := int(queue[0])
		queue = queue[1:]
		m.found[state] = stronger(m.found[state], m.found[fail[state]])
		for class := range m.width {
			at, other := state*m.width+class, m.next[int(fail[state])*m.width+class]
			if child := m.next[at]; child != 0 {
				fail[child] = other
				queue = append(queue, child)
			} else {
				m.next[at] = other
			}
		}
	}
}

// find returns the strongest mark in a body.
func (m *matcher) find(body []byte) (best Mark) {
	for i := 0; i+window <= len(body); {
		if n := m.skip[m.blockAt(body, i+window-1)]; n > 0 {
			i += int(n)
			continue
		}
		if !m.first[m.blockAt(body, i+block-1)] {
			i++
			continue
		}
		state := 0
		for steps := 1; i < len(body); steps++ {
			state = int(m.next[state*m.width+int(m.class[body[i]])])
			i++
			if m.found[state] != (Mark{}) {
				best = stronger(best, m.found[state])
			}
			if depth := int(m.depth[state]); steps >= leastSteps && depth <= 1 {
				i -= depth
				break
			}
		}
	}
	return best
}
