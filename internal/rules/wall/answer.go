package wall

import "time"

// Answer is what a response says about a wall.
type Answer struct {
	Status int // of HTTP; 0: there was no response
	// Took is the time from the start of the request to its end.
	Took time.Duration
	// Gap is the time from the end of the request before to the end of this one; 0: unknown.
	Gap time.Duration
	// RetryAfter is the wait that a 429 demands; 0: none.
	RetryAfter time.Duration
	Mark       Mark
	// HTML reports whether the body is a document for people. Other bodies of status 2xx are pages.
	HTML   bool
	Length int64  // bytes of the body
	Digest uint64 // of the body
	Shape  uint64 // of the document, as [Shape] returns it; needed where [Answer.HasShape] says so
	URL    uint64 // a hash of the URL; needed where [Answer.MayBeOfWall] says so
	Place  uint64 // the same, as [PlaceOf] returns it; always needed of a redirect: that of its target
	From   uint64 // of a redirect: the place of the URL itself
	// FromSame reports whether the URL was found on a page of the host that has the same document. A
	// wall hides pages that were found before it, so such a URL speaks for no wall.
	FromSame bool
	// Again reports whether a wall that has ended refused the URL. Refused once more, it may be closed for good.
	Again bool
	// Section and Top name the part of the site, as [Sections] returns them.
	Section, Top uint16
}

// Sign is what one response is, apart from all others.
type Sign uint8

// The signs.
const (
	SignNone      Sign = iota // no response, a failure of the server, a redirect without a target
	SignPage                  // the host answered: a page, or the news that there is none
	SignRefused               // 401, 403, 406, 407, 428
	SignPrice                 // 402
	SignLegal                 // 451
	SignRate                  // 429
	SignChallenge             // a challenge: it says so in its header, or has a mark and a status that refuses
	SignMarked                // status 2xx and a mark in the body: a challenge if others look the same
	SignShort                 // a short document of status 2xx, which may be a page or not
	SignRedirect              // a redirect, which may lead to the place of a wall
	SignEmpty                 // status 2xx without a body
	SignGate                  // status 2xx and a login, or a question for consent or for an age
)

// refuses reports whether the response is a refusal or a challenge, of a wall or not.
func (s Sign) refuses() bool { return SignRefused <= s && s <= SignMarked }

// The longest documents of status 2xx that count, in bytes. Challenge pages of known make have up to
// 30 KB, most of them scripts; texts that people write and pages of unknown make have to be shorter.
const (
	// LongestMarked bounds those that are searched for marks at all. A longer one is a page, whatever
	// is in it.
	LongestMarked = 32 << 10
	longestPhrase = 16 << 10
	// LongestShort bounds those that are compared by their digests.
	LongestShort = 8 << 10
	longestGate  = shapeBytes // all of it counts
)

// Sign returns what the response is. A response of SignChallenge is no page, whatever the host's
// others are.
func (a *Answer) Sign() Sign {
	if a.Mark.Tier == TierHeader {
		return SignChallenge
	}
	inBody := a.Mark.Tier == TierPage || a.Mark.Tier == TierPhrase
	switch a.Status {
	case 401, 402, 403, 405, 406, 407, 418, 428, 429, 451, 503:
		if a.Mark.Tier == TierPage || inBody && a.Status == 503 {
			return SignChallenge
		}
	}
	switch {
	case a.Status == 402:
		return SignPrice
	case a.Status == 451:
		return SignLegal
	case a.Status == 429:
		return SignRate
	case a.Status == 401, a.Status == 403, a.Status == 406, a.Status == 407, a.Status == 428:
		return SignRefused
	case a.Status == 304:
		return SignPage
	case a.Status/100 == 3 && a.Place != 0:
		return SignRedirect
	case a.Status < 200, a.Status/100 == 3, a.Status >= 500, a.Status == 408, a.Status == 425:
		return SignNone
	case a.Status >= 400:
		return SignPage
	}
	return a.document()
}

// document returns what a response of status 2xx without a conclusive mark is.
func (a *Answer) document() Sign {
	switch {
	case a.Length == 0 && a.Status != 200:
		return SignNone // 204 and the like have none
	case a.Length == 0:
		return SignEmpty
	case !a.HTML:
		return SignPage
	case a.Mark.Tier == TierPage && a.Length <= LongestMarked:
		return SignMarked
	case a.Mark.Excuse || a.Mark.Gate && a.Length > longestGate:
		return SignPage
	case a.Mark.Gate:
		return SignGate
	case a.Mark.Tier == TierPhrase && a.Length <= longestPhrase:
		return SignMarked
	case a.Length <= LongestShort:
		return SignShort
	}
	return SignPage
}

// HasShape reports whether Shape is needed: with a mark of the body, of a gate, and of a short document with a key.
func (a *Answer) HasShape(body []byte) bool {
	sign := a.Sign()
	return sign == SignGate || a.Mark.Tier != TierNone && a.Mark.Tier != TierHeader ||
		sign == SignShort && MayHaveKey(body)
}

// MayBeSame reports whether FromSame is needed.
func (a *Answer) MayBeSame() bool { return a.Sign() == SignShort || a.Sign() == SignGate }

// MayBeOfWall reports whether URL and Place are needed: for all but pages whose words excuse nothing.
func (a *Answer) MayBeOfWall() bool { return a.Sign() != SignPage || a.Mark.Excuse || a.Mark.Gate }

// document16 identifies a short document: by its digest, an even number, or by its shape, an odd one, if
// it has a key in it. That of a redirect is the place of its target.
func (a *Answer) document16() uint16 {
	switch {
	case a.Status/100 == 3:
		return fold64(a.Place)
	case a.HasKey():
		return fold64(a.Shape) | 1
	}
	return DocumentOf(a.Digest)
}

// HasKey reports whether what the document has in common with others is its shape, and not its digest: people see a key
// in it, or it has the mark of a maker who puts keys into it. The form of a gate has one where nobody sees it.
func (a *Answer) HasKey() bool {
	return a.Shape&1 != 0 || a.Mark.Tier == TierStub || a.Sign() == SignGate
}

// keyBytes is by how much the lengths of two documents with the same words differ, if the maker of the
// wall puts keys into them.
const keyBytes = 64

// IsOf reports whether the response has the document of a page with a digest and a length, as far as
// that can be told from these.
func (a *Answer) IsOf(digest, length uint64) bool {
	if a.HasKey() {
		return length > 0 && max(a.Length-int64(length), int64(length)-a.Length) < keyBytes
	}
	return a.Digest == digest
}

// rootSection is the section of pages that are in no directory.
const rootSection = 1

// Sections returns the part of a site to which the page of a request target belongs. The section is
// the first two directories of its path, the name of a script counting as a directory if the target
// has a query; top is the first of them. Pages at the root have 1 and 1.
func Sections(target string) (section, top uint16) {
	const offset, prime = 2166136261, 16777619 // FNV-1a
	h, parts, from := uint32(offset), 0, 0
	section, top = rootSection, rootSection
	for i := 0; i < len(target) && parts < 2; i++ {
		c := target[i]
		end := c == '?' || c == '#'
		if (c == '/' || end) && i > from {
			parts++
			section = fold(h)
			if parts == 1 {
				top = section
			}
		}
		if end {
			break
		}
		if c == '/' {
			from = i + 1
		}
		h = (h ^ uint32(c)) * prime
	}
	return section, top
}

// IsInDirectory reports whether the page of a request target is in a directory. A wall often leaves pages at the root
// open, the first one above all.
func IsInDirectory(target string) bool {
	section, _ := Sections(target)
	return section != rootSection
}

// fold returns 16 bits of a hash, not 0.
func fold(h uint32) uint16 { return max(uint16(h^h>>16), 1) }

// fold64 returns 16 bits of a hash, not 0.
func fold64(h uint64) uint16 { return fold(uint32(h ^ h>>32)) }
