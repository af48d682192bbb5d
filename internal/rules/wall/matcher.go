package wall

import (
	"encoding/binary"
	"math/bits"
)

// matcher finds texts in a body without regard to the case of ASCII letters. It looks at a block of five
// bytes, then at the one eight bytes behind it, and so on: wherever a text stands, one of these blocks is in the first
// twelve bytes of the text, its window. Where a window may begin, the automaton of Aho and Corasick (CACM 18, 1975)
// reads on, one step a byte. So the time is linear, whatever the body.
type matcher struct {
	offsets [1 << hashBits]uint8 // by the hash of a block: where windows have it, one bit for each offset

	class [256]uint8 // of a byte; 0: in no text
	width int        // the number of classes
	next  []uint16   // the state after state*width + class
	found []Mark     // by state: the strongest mark that ends there
	depth []uint8    // by state: the length of the longest beginning of a text that the body has there
}

const (
	window     = shortestMark
	block      = 5
	stride     = window - block + 1 // from a block to the next, and the offsets of a block in a window
	hashBits   = 15
	leastSteps = window // of the automaton, before the search goes on by strides
)

// hashAt returns the hash of the block at b[i]. Bytes that differ in one bit, as the two cases of a
// letter do, are the same to it.
func hashAt(b []byte, i int) uint64 {
	return hashOf(uint64(binary.LittleEndian.Uint32(b[i:])) | uint64(b[i+4])<<32)
}

// hashOf returns the hash of the block that eight bytes begin with.
func hashOf(eight uint64) uint64 {
	const factor = 11400714819323198485 << (64 - 8*block) & (1<<64 - 1) // of Fibonacci; it leaves out the other bytes
	return (eight | 0x2020202020) * factor >> (64 - hashBits)
}

// hashIn is hashAt where eight bytes can be read, which is faster.
func hashIn(b []byte, i int) uint64 { return hashOf(binary.LittleEndian.Uint64(b[i:])) }

type pattern struct {
	text string
	mark Mark
}

// asWords returns the mark of an excuse or a gate as what it says of the document.
func asWords(m Mark) Mark {
	switch m.Tier {
	case tierExcuse:
		return Mark{Excuse: true}
	case tierGate:
		return Mark{Gate: true}
	}
	return m
}

// stronger returns the stronger one of two marks, with the excuses and gates of both.
func stronger(a, b Mark) Mark {
	a, b = asWords(a), asWords(b)
	excuse, gate := a.Excuse || b.Excuse, a.Gate || b.Gate
	if b.Tier > a.Tier || b.Tier == a.Tier && a.Wall == 0 {
		a = b
	}
	a.Excuse, a.Gate = excuse, gate
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
	for _, p := range patterns {
		for offset := range stride {
			m.offsets[hashAt([]byte(p.text), offset)] |= 1 << offset
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
	for i := stride - 1; ; i += stride {
		i = m.candidate(body, i)
		if i < 0 {
			return best
		}
		at, state := i-(stride-1), 0
		for steps := 1; at < len(body); steps++ {
			state = int(m.next[state*m.width+int(m.class[body[at]])])
			at++
			if m.found[state] != (Mark{}) {
				best = stronger(best, m.found[state])
			}
			if depth := int(m.depth[state]); steps >= leastSteps && depth <= 1 {
				at -= depth
				break
			}
		}
		i = at - 1
	}
}

// candidate returns the first of the blocks at i, i+stride and so on with a window around it; negative: there is none.
func (m *matcher) candidate(body []byte, i int) int {
	for ; i+4*stride <= len(body); i += 4 * stride {
		four := body[i : i+4*stride]
		a, b := m.offsets[hashIn(four, 0)], m.offsets[hashIn(four, stride)]
		c, d := m.offsets[hashIn(four, 2*stride)], m.offsets[hashIn(four, 3*stride)]
		if a|b|c|d == 0 {
			continue
		}
		for k, offsets := range [...]uint8{a, b, c, d} {
			if m.hasWindow(body, i+k*stride, offsets) {
				return i + k*stride
			}
		}
	}
	for ; i+block <= len(body); i += stride {
		if m.hasWindow(body, i, m.offsets[hashAt(body, i)]) {
			return i
		}
	}
	return -1
}

// hasWindow reports whether the block at body[i] may be at one of its offsets in a window, by the first
// and the last block of that.
func (m *matcher) hasWindow(body []byte, i int, offsets uint8) bool {
	for ; offsets != 0; offsets &= offsets - 1 {
		begin := i - bits.TrailingZeros8(offsets)
		if begin+window <= len(body) && m.offsets[hashAt(body, begin)]&1 != 0 &&
			m.offsets[hashAt(body, begin+stride-1)]>>(stride-1) != 0 {
			return true
		}
	}
	return false
}
