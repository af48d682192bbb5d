package warc

import "math/bits"

// The alphabets of DEFLATE (RFC 1951, section 3.2.5).
const (
	endOfBlock   = 256
	allSymbols   = 286 // literals, the end of a block, lengths
	allDistances = 30
	minMatch     = 3
	maxMatch     = 258
)

// quickLengths are the lengths in bits of the codes of all symbols and then of all distances, a
// letter each: a is 1. They are those of the best code for the HTML files of up to 32 KiB below
// /usr/share/doc of a Debian machine, as TestQuickTable finds it.
const quickLengths = "" +
	"mmmmmmmmmlgmmimmmmmmmmmmmmmmmmmmdkfkljkjijlkhggfggghhhhhhhhigggjkhihhhijihljhihihjhhgijjjjkklkli" +
	"legffdggfekiffeefieeefghhgjkkklmklllllllmmmllmmmmmllkmlmllmmllmlillllmllmlmllllmmlmllmlmlmmmmmlm" +
	"mmilmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmkmlmlmmlmmmmmmmmmmmmmmmmmmmmmlkldeefffgfghhghhhiiijijjkklllj" +
	"kgkjhjfgffeededddddddddddeefgj"

// quickCode is the Huffman code of a quickGzip. It is immutable.
type quickCode struct {
	symbols   [allSymbols]bitString
	lengths   [maxMatch - minMatch + 1]bitString // of a match, with the extra bits
	distances [allDistances]bitString
}

func newQuickCode() (c quickCode) {
	assignCodes(c.symbols[:], quickLengths[:allSymbols])
	assignCodes(c.distances[:], quickLengths[allSymbols:])
	for n := range maxMatch - minMatch {
		symbol, extra := scale(uint32(n), 4)
		c.lengths[n] = c.symbols[endOfBlock+1+symbol].and(uint32(n)&(1<<extra-1), extra)
	}
	c.lengths[maxMatch-minMatch] = c.symbols[allSymbols-1] // it has a symbol of its own
	return c
}

// distance returns the code of a distance from 1 to 32768.
func (c *quickCode) distance(d int) bitString {
	symbol, extra := scale(uint32(d-1), 2)
	return c.distances[symbol].and(uint32(d-1)&(1<<extra-1), extra)
}

// scale returns the symbol of a number and how many of its low bits follow it, where each doubling
// has as many symbols as steps, a power of two.
func scale(n, steps uint32) (symbol uint32, extra uint8) {
	if n < 2*steps {
		return n, 0
	}
	extra = uint8(bits.Len32(n) - bits.Len32(steps))
	return uint32(extra)*steps + n>>extra, extra
}

// assignCodes sets the codes that follow from their lengths (section 3.2.2).
func assignCodes(codes []bitString, lengths string) {
	next := uint32(0)
	for n := uint8(1); n <= 15; n++ {
		for i := range codes {
			if lengths[i]-'a'+1 == n {
				codes[i] = bitString{bits.Reverse32(next) >> (32 - n), n}
				next++
			}
		}
		next <<= 1
	}
}

// repeatLast is the symbol for three to six repetitions of the last length.
const repeatLast = 16

// appendTo writes the header of a block with this code, the last block (section 3.2.7).
func (c *quickCode) appendTo(w *bitWriter) {
	w.add(bitString{1 | 2<<1, 3})
	w.add(bitString{allSymbols - 257, 5})
	w.add(bitString{allDistances - 1, 5})
	order := [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
	w.add(bitString{uint32(len(order)) - 4, 4})
	// The lengths have a code too: two bits for a repetition, four for each length from 2 to 13.
	var lengths [19]byte
	for i := range lengths {
		switch {
		case i == repeatLast:
			lengths[i] = 'a' + 1
		case 2 <= i && i <= 13:
			lengths[i] = 'a' + 3
		}
	}
	for _, i := range order {
		n := uint32(0)
		if lengths[i] != 0 {
			n = uint32(lengths[i]-'a') + 1
		}
		w.add(bitString{n, 3})
	}
	var codes [19]bitString
	assignCodes(codes[:], string(lengths[:]))
	for i := 0; i < len(quickLengths); {
		n := 1
		for i+n < len(quickLengths) && quickLengths[i+n] == quickLengths[i] {
			n++
		}
		w.add(codes[quickLengths[i]-'a'+1])
		i++
		for n--; n >= 3; {
			times := min(n, 6)
			w.add(codes[repeatLast])
			w.add(bitString{uint32(times) - 3, 2})
			i, n = i+times, n-times
		}
	}
}
