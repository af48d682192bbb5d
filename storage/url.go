package storage

import (
	"fmt"
	"strings"
	"time"

	"github.com/amble-crawler/amble/storage/internal/facts"
)

// State is the state of a URL. The numbers are stored and therefore stable.
type State uint8

// The states of a URL. A URL without an outcome is Queued.
const (
	Queued     State = 0 // waiting in its host's queue
	Fetched    State = 1 // response with content, or 304
	Redirected State = 2 // response with a redirect; the target is a separate URL
	Failed     State = 3 // given up, with the reason
	Denied     State = 4 // robots rules forbid it; evaluated again when they change
	Excluded   State = 5 // outside the scope in force at its turn
	Retrying   State = 6 // failed, with a retry at its due time
	numStates        = 7
)

var stateNames = [numStates]string{"queued", "fetched", "redirected", "failed", "denied", "excluded", "retrying"}

// String returns the state's name as the commands print it.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState is the inverse of State.String.
func ParseState(name string) (State, error) {
	for i, n := range stateNames {
		if n == name {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not a state (allowed: %s)", name, strings.Join(stateNames[:], ", "))
}

// States is a set of states. The zero value contains all of them.
type States uint8

// In returns the set of the given states.
func In(states ...State) (set States) {
	for _, s := range states {
		set |= 1 << s
	}
	return set
}

// Has reports whether a state is in the set.
func (set States) Has(s State) bool { return set == 0 || set&(1<<s) != 0 }

// Reason is why a URL is in its state. The numbers are stored and therefore stable: those below
// ReasonFetch are named here, and ReasonFetch plus n stands for the fetch error of kind n.
type Reason uint8

// The reasons that are not fetch errors.
const (
	ReasonNone      Reason = 0
	ReasonStatus    Reason = 1 // the HTTP status
	ReasonRobots    Reason = 2 // a robots rule; Outcome.Line is its line
	ReasonScope     Reason = 3
	ReasonDepth     Reason = 4
	ReasonRedirects Reason = 5  // more redirects in a row than allowed
	ReasonLocation  Reason = 6  // a redirect without a usable target
	ReasonOperator  Reason = 7  // the operator
	ReasonLoop      Reason = 8  // a redirect to itself
	ReasonCrash     Reason = 9  // the crawler itself failed at the response
	ReasonWall      Reason = 10 // the host has put up a wall, or the response was a challenge
	ReasonOptOut    Reason = 11 // its site opted out
	ReasonUsage     Reason = 12 // consent.policy, by what its site says about the use of it
	ReasonLeaseLost Reason = 13 // the leases of fetchers ran out; Outcome.Note names the last one
	ReasonSitemaps  Reason = 14 // a sitemap of a host that has had as many as it may
	ReasonSeedPages Reason = 16 // its seed has as many pages as it may
	ReasonChecked   Reason = 17 // outside of the scope, and it answered when it was checked
	ReasonMaze      Reason = 15 // in a branch of its host that goes on for ever
	ReasonFetch     Reason = 64
)

// Frequency is how often a page changes, according to a sitemap.
type Frequency = facts.Frequency

// Entry is one URL of a host's queue.
type Entry struct {
	Ordinal    uint32
	Origin     uint8  // index into the host's origins
	RequestURI string // path and query
	Stripped   string // the same without its session ids; empty: it has none
	Depth      uint16 // number of links from a seed
	Redirects  uint8  // redirects and refreshes followed in a row to get here
	Seed       bool   // a seed, or reached from one by redirects only
	Sitemap    bool   // not a page: something calls it a sitemap
	Frequency  Frequency
	Priority   int8
	Room       uint8  // of a requisite: how many it may lead to itself
	ViaHost    HostID // the page it was found on; NoHost: none
	ViaOrdinal uint32
	FirstSeen  time.Time // whole seconds
	From       SeedRef
}

// PriorityRequisite is the priority of all that pages are made of, and of nothing else. Requisites have counts of their
// own.
const PriorityRequisite int8 = 126

// IsRequisite reports whether the URL is no page, but what a page is made of.
func (e *Entry) IsRequisite() bool { return e.Priority == PriorityRequisite }

// SeedID identifies a seed; the zero value is none.
type SeedID = facts.SeedID

// SeedRef is the seed that a URL was reached from.
type SeedRef = facts.SeedRef

// Outcome is the result of the last request for a URL, or of the last decision about it.
type Outcome struct {
	State    State
	Reason   Reason
	Status   uint16 // HTTP status; 0: none
	Attempts uint8  // failed attempts in a row
	At       time.Time
	Due      time.Time // of the retry in state Retrying, otherwise of the recrawl; zero: none
	Bytes    uint64    // decoded body bytes
	Digest   uint64    // first 8 bytes of the SHA-256 of the body; 0: none
	Line     uint32    // of robots.txt, the rule that decided
	ETag     string    // at most 255 bytes; longer ones are not kept
	Modified string    // Last-Modified as sent, at most 255 bytes
	History  [8]byte   // change history, encoded by internal/rules/recrawl
	Simhash  uint64    // of the text of the page; 0: none
	Stamp    uint32    // of all that decided what was read out of the body; 0: none
	// of a refusal: what it said; which fault it was; or the fetcher of a lost lease; at most 255 bytes
	Note  string
	Usage string // preferences for the use of the page, encoded by internal/rules/consent, at most 255 bytes
}

// Answered reports whether the last response that counts was a page.
func (o *Outcome) Answered() bool { return o.Status/100 == 2 && o.Digest != 0 }

// Cause is why a request to a host failed, in one number: an HTTP status or a Reason. The zero
// value is an unknown cause. The numbers are stored in the politeness state of hosts.
type Cause uint16

// causeReason is the offset of Reasons, above every HTTP status.
const causeReason = 1000

// StatusCause returns the Cause of an HTTP status.
func StatusCause(status int) Cause {
	if status <= 0 || status >= causeReason {
		return 0
	}
	return Cause(status)
}

// ReasonCause returns the Cause of a Reason.
func ReasonCause(r Reason) Cause {
	if r == ReasonNone {
		return 0
	}
	return causeReason + Cause(r)
}

// Status returns the HTTP status, or 0 if the cause is not one.
func (c Cause) Status() int {
	if c < causeReason {
		return int(c)
	}
	return 0
}

// Reason returns the Reason, or ReasonNone if the cause is not one.
func (c Cause) Reason() Reason {
	if c < causeReason {
		return ReasonNone
	}
	return Reason(c - causeReason)
}
