package wall

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// shapeBytes is how much of a document has a part in its shape.
const shapeBytes = 16 << 10

// longestWord is the longest word that counts. Longer ones are keys.
const longestWord = 20

// Shape sums up the words that people see in a document, and the names of its elements, without
// what differs from one challenge to the next: scripts, styles, attributes, words with a digit,
// long words, and where the document repeats its URL. The URL has no scheme: "example.org/a/b". Its
// time is linear in the bytes of body, and it reads 16 KiB of them at most. It is odd if people see a
// key in the document, such as the id of a request, and never 0.
func Shape(body []byte, url string) uint64 {
	s := shaper{sum: 14695981039346656037}
	for rest := []byte(url); len(rest) > 0 && s.length < len(s.url); {
		var word token
		if word, rest = cutWord(rest); word.counts() {
			s.url[s.length] = word.hash
			s.length++
		}
	}
	for rest := body[:min(len(body), shapeBytes)]; len(rest) > 0; {
		var word, name token
		if rest[0] != '<' {
			if word, rest = cutWord(rest); word.counts() {
				s.word(word.hash)
			}
			s.keyed = s.keyed || word.isKey()
			continue
		}
		s.flush()
		if name, rest = cutTag(rest[1:]); name.length > 0 {
			s.add(name.hash)
		}
	}
	s.flush()
	if s.keyed {
		return s.sum | 1
	}
	return s.sum&^1 | 2
}

// shaper is a sum over words and names.
type shaper struct {
	sum    uint64
	url    [32]uint32 // the words of the URL
	length int        // of url
	last   uint32     // the word before, not yet added; 0: none
	echoed bool       // last is part of the URL
	keyed  bool       // there was a key
}

func (s *shaper) add(h uint32) { s.sum = (s.sum ^ uint64(h)) * 1099511628211 }

// word takes a word. Two words that follow each other in the URL too are not added.
func (s *shaper) word(h uint32) {
	echoed := false
	for i := 1; i < s.length && !echoed; i++ {
		echoed = s.url[i] == h && s.url[i-1] == s.last
	}
	s.echoed = s.echoed || echoed
	s.flush()
	s.last, s.echoed = h, echoed
}

// flush adds the last word.
func (s *shaper) flush() {
	if s.last != 0 && !s.echoed {
		s.add(s.last)
	}
	s.last, s.echoed = 0, false
}

// MayHaveKey reports whether the shape of a document may be odd: whether there is a key anywhere in it. It takes a
// fraction of the time that Shape takes.
func MayHaveKey(body []byte) bool {
	body = body[:min(len(body), shapeBytes)]
	for i := nextDigit(body, 0); i < len(body); i = nextDigit(body, i) {
		begin := i
		for begin > 0 && isWord(body[begin-1]) {
			begin--
		}
		hasOthers := begin < i
		for ; i < len(body) && isWord(body[i]); i++ {
			hasOthers = hasOthers || body[i] > '9'
		}
		if hasOthers && i-begin >= shortestKey {
			return true
		}
	}
	return false
}

// nextDigit returns the index of the first digit from i on, or the length of the body. It looks at eight bytes at a
// time.
func nextDigit(body []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(body); i += 8 {
		eight := binary.LittleEndian.Uint64(body[i:]) ^ '0'*ones // digits are 0 to 9 now
		if digits := ^(eight&^highs + (0x80-10)*ones | eight) & highs; digits != 0 {
			return i + bits.TrailingZeros64(digits)/8
		}
	}
	for ; i < len(body) && (body[i] < '0' || '9' < body[i]); i++ {
	}
	return i
}

// token is a word of a text, or the name of an element.
type token struct {
	hash   uint32 // FNV-1a of its lower case
	length int
	digits bool // it has one at least
	others bool // it has something else than digits
}

// shortestKey is the length of the shortest word of digits and letters that is taken for a key.
const shortestKey = 8

// isKey reports whether it is a key, such as the id of a request.
func (t token) isKey() bool { return t.digits && t.others && t.length >= shortestKey }

// counts reports whether it is a word, and no key or number.
func (t token) counts() bool { return 0 < t.length && t.length <= longestWord && !t.digits }

// cutWord cuts the word at the beginning of b, or the one byte that is part of no word.
func cutWord(b []byte) (t token, rest []byte) {
	t.hash = 2166136261
	for t.length < len(b) && isWord(b[t.length]) {
		c := b[t.length]
		t.hash = (t.hash ^ uint32(lower(c))) * 16777619
		t.digits, t.others = t.digits || c <= '9', t.others || c > '9'
		t.length++
	}
	return t, b[min(max(t.length, 1), len(b)):]
}

// cutTag cuts a tag behind its "<", with the text behind it if people do not see that. The name of
// an end tag is empty.
func cutTag(b []byte) (name token, rest []byte) {
	name, rest = cutWord(b)
	if name.length == 0 { // an end tag or a comment
		return token{}, after(rest, '>')
	}
	element := b[:name.length]
	rest = after(rest, '>')
	if bytes.EqualFold(element, []byte("script")) || bytes.EqualFold(element, []byte("style")) {
		for len(rest) > 0 {
			rest = after(rest, '<')
			if len(rest) > name.length && rest[0] == '/' && bytes.EqualFold(rest[1:1+name.length], element) {
				return name, after(rest, '>')
			}
		}
	}
	return name, rest
}

// after returns what follows the first c in b, nothing if there is none.
func after(b []byte, c byte) []byte {
	if i := bytes.IndexByte(b, c); i >= 0 {
		return b[i+1:]
	}
	return nil
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// isWord reports whether a byte is part of a word: a digit, a letter, or any of those beyond ASCII.
func isWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}
