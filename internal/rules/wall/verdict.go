package wall

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Kind is the kind of a wall.
type Kind uint8

// The kinds. The numbers are stored.
const (
	KindNone      Kind = 0
	KindRefusal   Kind = 1  // 401, 403, 406, 407, 428
	KindPrice     Kind = 2  // 402
	KindRate      Kind = 3  // 429 without end, although each wait was obeyed
	KindLegal     Kind = 4  // 451
	KindChallenge Kind = 5  // a challenge of known make, or 503 with the words of one
	KindSoftBlock Kind = 6  // status 2xx, and the words of a refusal
	KindSame      Kind = 7  // status 2xx, and one short document under all URLs
	KindRedirect  Kind = 8  // redirects of all URLs to one place
	KindEmpty     Kind = 9  // status 200 without a body
	KindGate      Kind = 10 // status 2xx, and one login, or question for consent or an age, under all URLs
	kinds         Kind = 11
)

var kindNames = [kinds]string{
	"none", "refusal", "price", "rate-limit", "legal", "challenge", "soft-block", "same-document",
	"redirect", "empty", "gate",
}

// Kinds returns all kinds of walls.
func Kinds() (all []Kind) {
	for k := Kind(1); k < kinds; k++ {
		all = append(all, k)
	}
	return all
}

// String returns the kind in one lower-case word.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// ParseKind is the inverse of String; KindNone for a text that is no kind.
func ParseKind(text string) Kind {
	return Kind(max(slices.Index(kindNames[:], text), 0))
}

// Covers reports whether an outcome with a status is one that a wall of this kind brings about. The
// engine puts the URLs of such outcomes back that are not older than Verdict.Since.
func (k Kind) Covers(status int) bool {
	switch status {
	case 401, 402, 403, 406, 407, 428, 429, 451, 503:
		return k != KindNone
	}
	switch k {
	case KindRedirect:
		return status/100 == 3 && status != 304
	case KindEmpty:
		return status == 200
	case KindChallenge, KindSoftBlock, KindSame, KindGate:
		return status/100 == 2 && status != 304 || status == 405
	}
	return false
}

// IsSame reports whether a wall of this kind is one document under all URLs, that of [State.Document].
func (k Kind) IsSame() bool { return k == KindSame || k == KindGate }

// Stand is where a host stands with regard to a wall.
type Stand uint8

// The stands.
const (
	Open      Stand = iota // there is no wall
	Suspected              // there is evidence for one; the response is judged as if there were none
	Begins                 // with this response there is a wall
	Walled                 // there is one, and this response was no page
	Ends                   // with this response, which was a page, the wall has ended
)

// Verdict is what a response means.
type Verdict struct {
	Stand Stand
	Sign  Sign // of the response alone
	// Of the wall, or of the evidence for one:
	Kind    Kind
	Since   time.Time // of the first response that counts, in 1/256 seconds, rounded down
	Refused int       // responses that count, up to 255
	Judged  int       // these, and the pages among them, up to 255
	// Sections is the number of sections that refused, up to 3.
	Sections int
	Status   int   // of the last response that counts
	Wall     uint8 // the number of its make, for [Marks.Name]; 0: unknown
	Probes   int   // that failed, up to 255
	Park     bool  // Probes has reached [ParkAfter]
}

// Verdict returns what is known of the host, without a response.
func (s *State) Verdict() Verdict { return s.verdict(SignNone) }

func (s *State) verdict(sign Sign) Verdict {
	v := Verdict{Sign: sign}
	if s.since == 0 || s.counted == 0 {
		return v
	}
	v.Stand = Suspected
	if s.walled {
		v.Stand = Walled
	}
	v.Kind, v.Wall = s.kind, s.maker
	v.Since = s.begin()
	v.Refused, v.Judged, v.Status = int(s.counted), int(s.judged), int(s.status)
	for _, key := range s.refused {
		if key != 0 {
			v.Sections++
		}
	}
	v.Probes, v.Park = int(s.probes), s.walled && s.probes >= ParkAfter
	return v
}

// MayRefuse reports whether the response alone is a refusal or a challenge.
func (v Verdict) MayRefuse() bool { return v.Sign.refuses() }

// Refuses reports whether there is a wall, and the response was of it and not what the URL stands for.
func (v Verdict) Refuses() bool {
	if v.Stand != Begins && v.Stand != Walled {
		return false
	}
	return v.Sign.refuses() || v.Sign == SignShort && v.Kind == KindSame || v.Sign == SignGate && v.Kind == KindGate ||
		v.Sign == SignRedirect && v.Kind == KindRedirect || v.Sign == SignEmpty && v.Kind == KindEmpty
}

// Evidence says for people what the verdict rests on: "12 of the last 12 pages, in 3 sections, were
// refused with 403 since 2026-11-22 10:00:00 UTC; 2 probes failed". It is empty for Open.
func (v Verdict) Evidence(marks *Marks) string {
	if v.Stand == Open {
		return ""
	}
	text := fmt.Sprintf("%d of the last %d pages, in %s, %s since %s", v.Refused, v.Judged, v.sections(),
		v.what(marks), v.Since.Format("2006-01-02 15:04:05 MST"))
	switch v.Probes {
	case 0:
	case 1:
		text += "; 1 probe failed"
	default:
		text += fmt.Sprintf("; %d probes failed", v.Probes)
	}
	return text
}

func (v Verdict) sections() string {
	return [...]string{"0 sections", "1 section", "2 sections", "3 or more sections"}[min(v.Sections, 3)]
}

func (v Verdict) what(marks *Marks) string {
	switch v.Kind {
	case KindPrice:
		return "had a price (402)"
	case KindRate:
		return "were refused with 429 after every wait"
	case KindLegal:
		return "were withheld for legal reasons (451)"
	case KindChallenge:
		if name := marks.Name(v.Wall); name != "" {
			return fmt.Sprintf("were challenges of %s (%d)", name, v.Status)
		}
		return fmt.Sprintf("were challenges (%d)", v.Status)
	case KindSoftBlock:
		return fmt.Sprintf("were the same refusal with status %d", v.Status)
	case KindRedirect:
		return fmt.Sprintf("were redirects to the same place (%d)", v.Status)
	case KindEmpty:
		return fmt.Sprintf("were empty (%d)", v.Status)
	case KindGate:
		return fmt.Sprintf("were the same login, or question for consent or an age, with status %d", v.Status)
	case KindSame:
		return fmt.Sprintf("were the same short document with status %d", v.Status)
	}
	return fmt.Sprintf("were refused with %d", v.Status)
}
