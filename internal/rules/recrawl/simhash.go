package recrawl

import (
	"math/bits"
	"unicode"
)

// Simhash is a sum over the words of a text. A few words more or less change few of its bits
// (Charikar, STOC 2002). It ignores case and the characters between words. All words with a digit
// count as the same word: a date, a time or a counter in a page is not its content. A text without
// words has 0.
func Simhash(text string) uint64 {
	var sums bitSums
	word, number, length := uint64(fnvOffset), false, 0
	end := func() {
		if length > 0 && !number {
			sums.add(mix(word))
		}
		word, number, length = fnvOffset, false, 0
	}
	for _, c := range text {
		switch {
		case unicode.IsDigit(c):
			number = true
			length++
		case unicode.IsLetter(c) || unicode.IsMark(c):
			word = (word ^ uint64(unicode.ToLower(c))) * fnvPrime
			length++
		default:
			end()
		}
	}
	end()
	sum := sums.majority()
	if sums.words > 0 && sum == 0 {
		sum = 1
	}
	return sum
}

// bitSums counts how many of some words have each of 64 bits set: eight counts of a byte in each lane, which are
// added at once, and moved before one overflows.
type bitSums struct {
	lanes [8]uint64 // byte k of lane i counts bit 8k+i
	sums  [64]int
	words int
}

func (s *bitSums) add(h uint64) {
	const ones = 0x0101010101010101
	for i := range s.lanes {
		s.lanes[i] += h >> i & ones
	}
	if s.words++; s.words%255 == 0 {
		s.move()
	}
}

// move empties the lanes.
func (s *bitSums) move() {
	for i, lane := range s.lanes {
		for k := range 8 {
			s.sums[8*k+i] += int(lane >> (8 * k) & 0xff)
		}
	}
	s.lanes = [8]uint64{}
}

// majority returns the bits that more than half of the words have.
func (s *bitSums) majority() (bits uint64) {
	s.move()
	for i, n := range s.sums {
		if 2*n > s.words {
			bits |= 1 << i
		}
	}
	return bits
}

// The constants of FNV-1a, which takes a character at a time here.
const (
	fnvOffset = 0xcbf29ce484222325
	fnvPrime  = 0x100000001b3
)

// mix spreads the low bits of FNV over all bits (the finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Similar reports whether the simhashes of two texts differ in at most most bits. Texts without
// words are similar to none.
func Similar(a, b uint64, most int) bool {
	return a != 0 && b != 0 && bits.OnesCount64(a^b) <= most
}
