package wall

import (
	"math"
	"slices"
	"time"
)

// ParkAfter is how many probes of a wall fail before the host is parked. With one probe a backoff
// period, from one minute on and doubled each time, the sixth fails an hour after the wall began.
// By then the bans that a firewall lifts by itself, of 5 minutes to an hour, have ended.
const ParkAfter = 6

// Evidence is in units of 1/64 nat.
const (
	nat       = 64
	threshold = 13 * nat // the evidence for a wall
	pageTakes = 4 * nat  // what a page takes away

	mostChallenge = threshold/7 + 1 // of a challenge: 7 make a wall
	mostRate      = threshold/6 + 1 // of a rate limit that did not end: 6
	mostRefused   = threshold / 8   // of other refusals: 8
)

const (
	unusedSection = 2                // refusals of a section that never answered that count, ...
	onlySections  = 3                // ... and in full at a host that never answered, or hardly ever
	againPart     = 4                // of the evidence counts of a URL that an earlier wall refused
	hardlyPages   = 2                // pages of a host that hardly ever answered, none of them in a directory
	rateApart     = 30 * time.Second // from one rate limit to the next that counts
	fewDocuments  = 8                // different documents that a host has before sameness counts
	usualReturns  = 4                // that make a document usual
	mostOfRun     = 2                // refusals in a row that are remembered: they have one reason
	mostHistory   = 255              // pages and refusals that are remembered in full
	refusedBehind = 0.95             // the part of requests that a wall refuses
	refusedBefore = 1.0              // refusals that every host is thought to have had, ...
	seenBefore    = 7.0              // ... of that many responses
)

// State is what is known of a host. The zero State is that of a host without a response. It is a
// plain value of 72 bytes, and nothing but its own.
type State struct {
	since    uint32    // Unix seconds of the first refusal that counts; 0: there is no evidence
	quiet    uint32    // Unix seconds: earlier rate limits, and behind a wall earlier requests, do not count
	tops     [3]uint16 // that answered, the last one first
	sections [6]uint16 // that answered, the last one first
	refused  [3]uint16 // sections, or tops, that refused since
	times    [3]uint8  // how often, by refused
	evidence uint16
	document uint16 // digest of the last short document
	gate     uint16 // the section that is known for nothing but document, a gate; 0: none is
	earlier  [2]uint16
	usual    uint16 // digest of a short document that comes back between others
	shape    uint16 // of most of the last documents with a mark
	url      uint16 // of the last refusal that counts
	status   uint16 // of the last refusal that counts
	pages    uint8  // halved together with refusals
	refusals uint8  // that were no wall
	distinct uint8  // different documents, up to fewDocuments
	part     uint8  // of since: 1/256 seconds more
	pending  uint8  // refusals since the last page
	returns  uint8  // how often usual did
	same     uint8  // how often document came in a row, apart from URLs that were found on it
	alike    uint8  // how often shape came, minus others
	counted  uint8  // refusals since, up to 255
	judged   uint8  // refusals and pages since, up to 255
	kind     Kind   // of most refusals since
	lead     uint8  // refusals of kind minus others, as in a majority vote
	maker    uint8  // the wall of the last mark
	walled   bool
	probes   uint8 // that failed
}

// Observe takes the next response of the host, which ended at an instant, and returns what it means.
func (s *State) Observe(at time.Time, a Answer) Verdict {
	sign := a.Sign()
	if s.isAtWall(sign, &a) || sign == SignRedirect && s.leadsAway(&a) {
		sign = SignNone // it shows no more than the redirect to it
		if s.Suspects() && s.kind == KindRedirect {
			s.evidence = min(s.evidence+mostRefused/2, threshold)
		}
	}
	if s.walled {
		return s.probe(at, sign, &a)
	}
	kind, times := s.judge(at, sign, &a)
	switch {
	case kind == kindPage:
		s.page(at, sign, &a)
	case kind != KindNone && fold64(a.URL) != s.url: // the same URL again says nothing of others
		s.url = fold64(a.URL)
		first := at
		if times > 1 {
			first = at.Add(-max(a.Gap, 0)) // when the other one came
		}
		for range times {
			s.refuse(first, kind, &a)
		}
	}
	v := s.verdict(sign)
	if s.evidence >= threshold && s.isEverywhere() {
		v = s.begins(at, sign)
	}
	return v
}

func (s *State) begins(at time.Time, sign Sign) Verdict {
	s.walled, s.probes = true, 0
	s.quiet = seconds(at.Add(time.Second))
	v := s.verdict(sign)
	v.Stand = Begins
	return v
}

// Conclude says that no response follows: the host has no other URLs. More than half of the evidence for a wall is
// enough then, because probes tell what the URLs cannot. It reports whether a wall begins.
func (s *State) Conclude(at time.Time) (v Verdict, begins bool) {
	if !s.Suspects() || s.evidence <= threshold/2 || !s.isEverywhere() {
		return s.verdict(SignNone), false
	}
	return s.begins(at, SignNone), true
}

// hardlyAnswers reports whether all that the host has answered is its first page, or two pages next to it. Its
// sections are then no closed part of a site that is open otherwise.
func (s *State) hardlyAnswers() bool {
	return s.pages <= hardlyPages && s.tops[1] == 0 && (s.tops[0] == 0 || s.tops[0] == rootSection)
}

// Answered reports whether a section has answered before, or the directory above it. Behind a wall, one of its pages
// tells whether there still is one: what has never answered may be closed for good.
func (s *State) Answered(section, top uint16) bool {
	return !s.hardlyAnswers() && (slices.Contains(s.sections[:], section) || slices.Contains(s.tops[:], top))
}

// Recovers reports whether a wall has ended and little was answered since.
func (s *State) Recovers() bool { return !s.walled && s.since != 0 && s.counted == 0 }

// Refused reports whether a section, or the directory above it, is among those that refused last.
func (s *State) Refused(section, top uint16) bool {
	key, _ := s.keyOf(section, top)
	return slices.Contains(s.refused[:], key)
}

// isEverywhere reports whether the evidence is from more than one section, which one document under
// several URLs needs: an old section may be gone as a whole.
func (s *State) isEverywhere() bool {
	switch s.kind {
	case KindRedirect, KindGate:
		return s.refusesPages() && (s.refused[1] != 0 || s.tops[1] == 0)
	case KindSame, KindEmpty:
		return s.refused[1] != 0 || s.tops[1] == 0
	}
	return true
}

// kindPage is what judge returns for a page.
const kindPage Kind = 255

// judge returns the kind of wall that a response speaks for, and how many refusals it stands for: the
// second of two equal documents counts for the first as well.
func (s *State) judge(at time.Time, sign Sign, a *Answer) (kind Kind, times int) {
	switch sign {
	case SignPage:
		return kindPage, 1
	case SignRefused:
		return KindRefusal, 1
	case SignPrice:
		return KindPrice, 1
	case SignLegal:
		return KindLegal, 1
	case SignChallenge:
		return KindChallenge, 1
	case SignRate:
		if seconds(at) < s.quiet {
			return KindNone, 0
		}
		s.quiet = seconds(at.Add(max(a.RetryAfter, rateApart)))
		return KindRate, 1
	case SignMarked:
		return s.judgeMarked(a)
	case SignShort:
		return s.judgeShort(KindSame, a)
	case SignGate:
		return s.judgeShort(KindGate, a)
	case SignRedirect:
		return s.judgeSame(KindRedirect, a)
	case SignEmpty:
		return s.judgeSame(KindEmpty, a)
	}
	return KindNone, 0
}

// judgeMarked judges a document with a mark in its body: a challenge if the one before had its shape.
func (s *State) judgeMarked(a *Answer) (Kind, int) {
	switch h := fold64(a.Shape); {
	case h == s.shape:
		s.alike = increase(s.alike)
	case s.alike > 1: // a key in its text may look like a word
		s.alike--
		return KindNone, 0
	default:
		s.shape, s.alike = h, 1
		return KindNone, 0
	}
	kind := KindChallenge
	if a.Mark.Wall == 0 {
		kind = KindSoftBlock
	}
	return kind, s.first(s.alike)
}

// first returns for how many documents the n-th equal one counts.
func (s *State) first(n uint8) int { return [...]int{1, 1, 2, 1}[min(n, 3)] }

// judgeShort judges a short document without a mark that counts, or one of a gate, which most hosts
// have: a refusal of a kind only if it comes again and again, from a host that had others before.
func (s *State) judgeShort(kind Kind, a *Answer) (Kind, int) {
	h := a.document16()
	switch {
	case h == s.usual && s.returns >= usualReturns:
		return kindPage, 1
	case h == s.document && a.FromSame:
		return KindNone, 0
	case h == s.document:
		s.same = increase(s.same)
		s.forgetGate()
		if s.distinct < fewDocuments || s.same == 1 {
			return kindPage, 1
		}
		return kind, s.first(s.same)
	}
	if !slices.Contains(s.earlier[:], h) {
		s.distinct = min(s.distinct+1, fewDocuments)
	}
	s.change(h, 1)
	if a.FromSame {
		s.same = 0
	}
	return kindPage, 1
}

// forgetGate takes a section out of those that answered which has answered with a gate alone that has come
// again.
func (s *State) forgetGate() {
	for _, list := range [][]uint16{s.sections[:], s.tops[:]} {
		if i := slices.Index(list, s.gate); s.gate != 0 && i >= 0 {
			_ = slices.Delete(list, i, i+1) // the last one becomes 0
		}
	}
	s.gate = 0
}

// comesBack notes a document that came before others and comes after them again. One that does so
// more often than requests in flight explain is no wall: pages that are not there, say.
func (s *State) comesBack(h uint16) {
	switch {
	case s.usual == h:
		s.returns = increase(s.returns)
	case s.returns > 0:
		s.returns--
	default:
		s.usual, s.returns = h, 1
	}
}

// page takes a page: it takes evidence away, and its section is known as one that answers.
func (s *State) page(at time.Time, sign Sign, a *Answer) {
	isRepeated := sign == SignGate && s.same > 1
	if a.Status < 400 && !isRepeated { // that a page is not there says nothing of its section
		if sign == SignGate && !slices.Contains(s.sections[:], a.Section) {
			s.gate = a.Section
		} else if s.gate == a.Section {
			s.gate = 0
		}
		toFront(s.sections[:], a.Section)
		toFront(s.tops[:], a.Top)
	}
	if sign == SignPage && a.Status/100 == 2 {
		s.distinct = min(s.distinct+1, fewDocuments)
	}
	if s.counted > 0 && at.Add(-max(a.Took, 0)).Before(s.begin()) {
		s.remember(1, 0)
		return // it was in flight before the first refusal, so it says nothing against one
	}
	s.remember(1, min(s.pending, mostOfRun))
	s.pending = 0
	if s.since == 0 {
		return
	}
	s.judged = increase(s.judged)
	if s.evidence > pageTakes {
		s.evidence -= pageTakes
		return
	}
	if s.kind.IsSame() && a.document16() == s.document { // in place of the one that came again
		s.comesBack(s.earlier[0])
	} else if s.kind.IsSame() {
		s.comesBack(s.document)
	}
	s.clear()
}

// refuse adds the evidence of a refusal.
func (s *State) refuse(at time.Time, kind Kind, a *Answer) {
	gain := s.gain(kind)
	share, counts := s.share(a)
	if !counts {
		return
	}
	if a.Again {
		share /= againPart
	}
	if s.counted == 0 {
		s.since, s.part = seconds(at), uint8(at.Nanosecond()*256/int(time.Second))
	}
	s.evidence = min(s.evidence+uint16(gain*share/16), threshold)
	s.pending, s.counted, s.judged = increase(s.pending), increase(s.counted), increase(s.judged)
	s.status = uint16(a.Status)
	s.vote(kind)
	if a.Mark.Wall != 0 {
		s.maker = a.Mark.Wall
	}
}

// Walled reports whether the host is behind a wall.
func (s *State) Walled() bool { return s.walled }

// Suspects reports whether there is evidence for a wall that is not certain yet.
func (s *State) Suspects() bool { return !s.walled && s.since != 0 && s.counted != 0 }

// Document identifies the document that the host shows under several URLs, as [DocumentOf] does.
func (s *State) Document() uint16 { return s.document }

// DocumentOf identifies a document by its digest.
func DocumentOf(digest uint64) uint16 { return max(fold64(digest)&^1, 2) }

// IsDocument reports whether an outcome with a digest and a size may have been that of the document. If that
// is known by its shape, any short one may.
func IsDocument(document uint16, digest, size uint64) bool {
	if document&1 != 0 {
		return size <= longestGate
	}
	return DocumentOf(digest) == document
}

// probe takes a response of a host behind a wall.
func (s *State) probe(at time.Time, sign Sign, a *Answer) Verdict {
	if seconds(at.Add(-max(a.Took, 0))) < s.quiet {
		return s.verdict(sign) // it was in flight when the wall began, or the last probe failed
	}
	if sign == SignNone || sign == SignRedirect && s.kind != KindRedirect || sign == SignEmpty && s.kind != KindEmpty {
		return s.verdict(sign)
	}
	if !s.passed(sign, a) {
		s.probes = increase(s.probes)
		s.quiet = seconds(at.Add(time.Second))
		return s.verdict(sign)
	}
	v := s.verdict(sign)
	v.Stand = Ends
	s.walled, s.probes, s.quiet = false, 0, 0
	s.clear()
	s.page(at, sign, a)
	s.since, s.evidence = seconds(at), threshold/2 // the next wall needs half the evidence
	return v
}

// passed reports whether a probe was answered as a page.
func (s *State) passed(sign Sign, a *Answer) bool {
	switch {
	case sign == SignPage:
		return true
	case sign != SignShort && sign != SignGate:
		return false
	case !s.kind.IsSame():
		return true
	}
	return a.document16() != s.document
}

// begin returns the instant of the first refusal that counts.
func (s *State) begin() time.Time {
	return time.Unix(int64(s.since), int64(s.part)*int64(time.Second)/256).UTC()
}

// seconds returns an instant in Unix seconds, as far as the state can hold them.
func seconds(t time.Time) uint32 { return uint32(max(1, min(t.Unix(), math.MaxUint32))) }
