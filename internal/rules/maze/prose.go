package maze

import (
	"math"
	"unicode"
)

// Who wrote the text of pages shows in where its rarer words are. People write about one thing on a page: a
// word of its subject comes again on the same page, and on few others (Church and Gale, "Poisson mixtures",
// 1995). A generator, whether it follows the pairs of words of a book or draws them one by one, puts
// them where chance does.
const (
	mostPages   = 48   // whose text is compared
	mostWords   = 300  // of a page
	mostKinds   = 2048 // different words
	mostTimes   = 3    // that a word counts on a page
	fewestRunes = 4    // of a word; shorter ones belong to the grammar
	fewRepeats  = 30   // of words on their page, with which nobody wrote a text
	fewInText   = 8    // words a page, with which a text says nothing
	manyInText  = 40   // words a page of the texts of generators
	byPeople    = 2.3  // times the repeats that chance makes; see docs/TRAPS.md
)

// author is who wrote a text.
type author uint8

const (
	nobody author = iota // there is hardly any
	generator
	people
)

// prose counts the words of the pages of a branch.
type prose struct {
	words   map[uint32]count
	lengths []uint16 // of the pages, in words that count
}

// count is how often a word came.
type count struct {
	times, pages uint16
	last         uint8 // the page that it was on last, from 1 on
	here         uint8 // how often it is there
}

// add takes the text of a page.
func (p *prose) add(text string) {
	if len(p.lengths) >= mostPages {
		return
	}
	if p.words == nil {
		p.words = make(map[uint32]count)
	}
	page, length, before := uint8(len(p.lengths)+1), 0, uint32(0)
	pairs := make(map[uint64]struct{}, mostWords)
	for word := range wordsOf(text) {
		pair := uint64(before)<<32 | uint64(word)
		before = word
		if _, repeats := pairs[pair]; repeats {
			continue // a phrase: a generator may run in a circle, and a table has a frame
		}
		pairs[pair] = struct{}{}
		if len(pairs) > mostWords {
			break
		}
		c, known := p.words[word]
		if !known && len(p.words) >= mostKinds {
			continue
		}
		if c.last != page {
			c.last, c.here = page, 0
			c.pages++
		}
		if c.here++; c.here <= mostTimes {
			c.times++
			length++
		}
		p.words[word] = c
	}
	p.lengths = append(p.lengths, uint16(length))
}

// author judges the pages so far, and returns how many words a page has of its own. Words of a third of the pages are
// the grammar, or the frame of the site.
func (p *prose) author() (by author, words int) {
	total, own := 0, 0
	for _, n := range p.lengths {
		total += int(n)
	}
	repeats, byChance := 0.0, 0.0
	for _, c := range p.words {
		if 3*int(c.pages) > len(p.lengths) {
			continue
		}
		own += int(c.times)
		if c.times < 2 {
			continue
		}
		repeats += float64(c.times - c.pages)
		byChance += float64(c.times)
		for _, n := range p.lengths {
			byChance -= 1 - math.Pow(1-float64(n)/float64(total), float64(c.times))
		}
	}
	words = own / max(len(p.lengths), 1)
	switch {
	case own < fewInText*len(p.lengths):
		return nobody, words
	case repeats >= fewRepeats && repeats >= byPeople*byChance:
		return people, words
	}
	return generator, words
}

// wordsOf yields a hash of each word of a text. Where words have no spaces between them, each two
// characters are one.
func wordsOf(text string) func(yield func(uint32) bool) {
	const offset, prime = 2166136261, 16777619 // FNV-1a
	return func(yield func(uint32) bool) {
		h, n, before := uint32(offset), 0, rune(0)
		for _, r := range text {
			dense := isDense(r)
			if !dense && unicode.IsLetter(r) {
				h = (h ^ uint32(unicode.ToLower(r))) * prime
				n++
				continue
			}
			if n >= fewestRunes && !yield(h) {
				return
			}
			h, n = offset, 0
			if dense && before != 0 && !yield((uint32(before)*prime^uint32(r))*prime) {
				return
			}
			before = 0
			if dense {
				before = r
			}
		}
		if n >= fewestRunes {
			yield(h)
		}
	}
}

// isDense reports whether words in the script of a letter have no spaces between them: those of
// Thailand and its neighbours, China and Japan.
func isDense(r rune) bool {
	return 0x0e00 <= r && r < 0x1100 || 0x1780 <= r && r < 0x1800 || 0x2e80 <= r && r < 0xac00
}
