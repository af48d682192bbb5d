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
	var sums [64]int32
	words := 0
	add := func(h uint64) {
		h = mix(h)
		for i := range sums {
			sums[i] += int32(h>>i&1)*2 - 1
		}
		words++
	}
	word, number, length := uint64(fnvOffset), false, 0
	end := func() {
		if length > 0 && !number {
			add(word)
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
	var sum uint64
	for i, n := range sums {
		if n > 0 {
			sum |= 1 << i
		}
	}
	if words > 0 && sum == 0 {
		sum = 1
	}
	return sum
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
