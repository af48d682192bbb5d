package robots

import (
	"time"
	"unsafe"
)

// Reason says why a URL is allowed or not. The numbers are stable; new ones are added at the end.
type Reason uint8

const (
	ReasonNone        Reason = iota
	ReasonRule               // a rule matched
	ReasonNoRule             // the group that applies has no rule that matches
	ReasonNoGroup            // no group applies
	ReasonRobotsFile         // /robots.txt itself is always allowed
	ReasonUnavailable        // there is no robots.txt (4xx, or unreachable for so long that it counts as unavailable)
	ReasonUnreachable        // robots.txt could not be read: complete disallow
	ReasonNotRobots          // the response is no robots.txt: an HTML page, JSON
	ReasonForbidden          // 401 or 403, and the option says that this is a disallow
)

// String returns the name used in reports.
func (r Reason) String() string {
	switch r {
	case ReasonRule:
		return "rule"
	case ReasonNoRule:
		return "no rule"
	case ReasonNoGroup:
		return "no group"
	case ReasonRobotsFile:
		return "robots file itself"
	case ReasonUnavailable:
		return "unavailable"
	case ReasonUnreachable:
		return "unreachable"
	case ReasonNotRobots:
		return "not a robots file"
	case ReasonForbidden:
		return "forbidden"
	}
	return "none"
}

// Verdict is the result of Match for one URL.
type Verdict struct {
	Allowed bool
	Reason  Reason
	Line    int   // of the rule that decided, from 1; 0: no rule did
	rule    int32 // literals first, then wildcards; meaningful with ReasonRule only
}

// Rules are what one robots.txt says to one crawler: immutable, compact, and safe for any number of readers. The zero
// value has no rules and allows everything.
type Rules struct {
	// text holds the patterns in normal form: the literals in octet order, then the wildcards by descending length.
	text      []byte
	literals  []literal
	wildcards []wildcard

	group   string // the token that the rules apply to, "*", or empty
	pace    *Pace  // nil: the file demands none
	usage   []statement
	license []string // URLs
	reason  Reason   // if no rule matches
	refuse  bool     // if no rule matches: disallowed
	denyAll bool
	version Version // of the file; zero if the caller used Compile
}

// literal is a rule without a star.
type literal struct {
	end  uint32 // of its pattern in text; it starts where the one before ends
	up   int32  // the longest other literal that is a prefix of this one, or -1
	line lineAllow
}

// wildcard is a rule with at least one star.
type wildcard struct {
	end   uint32
	line  lineAllow
	probe [2]uint16 // two pairs of octets that any match must hold; see pairs
}

// lineAllow is a line number, with the top bit set for an allow rule.
type lineAllow uint32

const allowBit = 1 << 31

func newLineAllow(line int, allow bool) lineAllow {
	l := lineAllow(line)
	if allow {
		l |= allowBit
	}
	return l
}

func (l lineAllow) allow() bool { return l&allowBit != 0 }
func (l lineAllow) line() int   { return int(l &^ allowBit) }

func (r *Rules) literal(i int32) []byte {
	start := uint32(0)
	if i > 0 {
		start = r.literals[i-1].end
	}
	return r.text[start:r.literals[i].end]
}

func (r *Rules) wildcard(i int) []byte {
	start := r.wildcardsStart()
	if i > 0 {
		start = r.wildcards[i-1].end
	}
	return r.text[start:r.wildcards[i].end]
}

func (r *Rules) wildcardsStart() uint32 {
	if n := len(r.literals); n > 0 {
		return r.literals[n-1].end
	}
	return 0
}

// Group returns the name of the group that applies: one of the tokens, as passed to Compile, "*",
// or "" if no group applies.
func (r *Rules) Group() string { return r.group }

// Len returns the number of distinct rules.
func (r *Rules) Len() int { return len(r.literals) + len(r.wildcards) }

// CrawlDelay returns the least time between two requests that the file demands at all hours: the largest Crawl-delay
// or Request-rate of the group that applies. ok is false if the file demands none. The delay is never clamped, except
// to MaxDelay, which only keeps the arithmetic of clocks from overflowing.
func (r *Rules) CrawlDelay() (d time.Duration, ok bool) {
	if r.group == "" || r.pace == nil || r.pace.Line == 0 {
		return 0, false
	}
	return r.pace.Delay, true
}

// Pace returns the pace of requests that the file demands. Nobody may change it.
func (r *Rules) Pace() Pace {
	if r.group == "" || r.pace == nil {
		return Pace{}
	}
	return *r.pace
}

// DisallowsAll reports whether no URL but /robots.txt can be allowed: the file has a bare
// "Disallow: /" that no allow rule can beat, or could not be read.
func (r *Rules) DisallowsAll() bool { return r.denyAll }

// Version returns the version of the file that Record.Rules compiled, or zero if there was none.
func (r *Rules) Version() Version { return r.version }

// Size returns the bytes that the rules retain.
func (r *Rules) Size() int {
	return int(unsafe.Sizeof(*r)) + r.pace.size() + usageSize(r.usage) + licenseSize(r.license) + cap(r.text) +
		cap(r.literals)*int(unsafe.Sizeof(literal{})) +
		cap(r.wildcards)*int(unsafe.Sizeof(wildcard{}))
}

// RuleText returns the rule that decided, its pattern in normal form, or "" if no rule did.
// LineText returns the line as in the file.
func (r *Rules) RuleText(v Verdict) string {
	if v.Reason != ReasonRule || int(v.rule) >= r.Len() {
		return ""
	}
	kind, pattern := "Disallow: ", []byte(nil)
	if v.Allowed {
		kind = "Allow: "
	}
	if n := len(r.literals); int(v.rule) < n {
		pattern = r.literal(v.rule)
	} else {
		pattern = r.wildcard(int(v.rule) - n)
	}
	return kind + string(pattern)
}

// answer returns rules with the same verdict for every URL.
func answer(allowed bool, reason Reason) *Rules {
	return &Rules{reason: reason, refuse: !allowed, denyAll: !allowed}
}

// size returns the bytes that a Pace retains.
func (p *Pace) size() int {
	if p == nil {
		return 0
	}
	return int(unsafe.Sizeof(*p)) + cap(p.Rates)*int(unsafe.Sizeof(TimedRate{})) +
		cap(p.Visits)*int(unsafe.Sizeof(Visit{}))
}
