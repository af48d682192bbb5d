package requestlog

import (
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

// Kind says what was asked for. The numbers are stored; new ones are added at the end.
type Kind uint8

// The kinds of requests.
const (
	Page   Kind = iota // a URL of the frontier
	Robots             // the robots.txt of an origin, or what it redirects to
	kinds
)

// String names the kind as reports do.
func (k Kind) String() string {
	if k < kinds {
		return [...]string{"page", "robots"}[k]
	}
	return "unknown"
}

// Method is the HTTP method. The numbers are stored; new ones are added at the end.
type Method uint8

// The methods: a crawler only gets.
const (
	Get Method = iota
	methods
)

// String is the method as it stands in a request.
func (m Method) String() string {
	if m < methods {
		return [...]string{"GET"}[m]
	}
	return "unknown"
}

// Request is one request that was made.
type Request struct {
	Kind    Kind
	Method  Method
	URL     weburl.URL
	For     weburl.Origin // of Robots: whose rules are wanted, where that is not the origin of URL; else zero
	Address netip.Addr    // that was dialled
	Place   uint64        // of its line in the start ledger
	Again   bool          // made before by a process that ended before it could commit the outcome

	Start, End time.Time     // End is zero where nobody saw it: the process was killed
	Decided    time.Time     // when it was given out
	Sent       bool          // bytes of it may have reached the server; false: no connection came about
	Status     int           // of the answer; 0: none came
	Failure    fetch.Kind    // why none came; meaningful with Status 0 and a known End
	Bytes      uint64        // received
	RetryAfter time.Duration // that the answer asked for

	Delay       time.Duration     // the delay in force at Decided
	DelayReason politeness.Reason // the sign that asked for it
	Reason      politeness.Reason // the sign that the host had to wait for last

	Policy  *Policy // of Page: what allowed it; of Robots: what it came to. nil: nothing
	Allowed bool    // of Page: the verdict
	Line    int     // of Page: the line of the robots.txt that gave the verdict; 0: none did

	// What the process that makes a request knows of it besides; the log does not keep it.
	BodyBytes int64         // of the body, decoded
	Connected time.Time     // when there was a connection; zero: no whole response came
	FirstByte time.Time     // when the response began; zero: no whole response came
	Late      time.Duration // from the instant that politeness allowed to Start; 0: the host waited for nothing
	Gap       time.Duration // since the last request to the host had ended; negative: the process knows of none

	Process *Process // that made it, or that found it in the start ledger where End is zero; set by Read

	starts, ends Instant
}

// StartedAt is Start as it can be compared with instants of other requests. It is set by Read.
func (r *Request) StartedAt() Instant { return r.starts }

// EndedAt is End as it can be compared with instants of other requests. Where nobody saw the end it is the latest that it can have been: the
// begin of the next process. It is set by Read.
func (r *Request) EndedAt() Instant { return r.ends }

// Process is who makes requests. Nothing of it changes while it runs.
type Process struct {
	Began  time.Time     // with a monotonic clock reading
	Uptime time.Duration // what the clock of the system that runs since its start showed at Began; 0: not known
	Boot   string        // names that start of the system; "": not known
	Agent  string        // the User-Agent header
	Tokens []string      // the names looked for in robots.txt
	Obey   bool          // robots.txt is obeyed
	Place  uint64        // where its start ledger begins; not set by Read

	clock int // the number of the clock that its instants are on; set by Read
}

// Instant is a moment on a clock that cannot be set, if the system has one that goes on from one process to the next, and on the wall clock.
type Instant struct {
	Wall  time.Time
	since time.Duration
	clock int // instants of one number can be compared exactly
}

// Sub returns how long after u the instant t lies. It is exact where both are on one clock: within a process, and on Linux from one
// process to the next too as long as the machine was not started anew. Else it is the difference by the wall clock.
func (t Instant) Sub(u Instant) (d time.Duration, exact bool) {
	if t.clock == u.clock && t.clock != 0 {
		return t.since - u.since, true
	}
	return t.Wall.Sub(u.Wall), false
}

// Add returns the instant d later.
func (t Instant) Add(d time.Duration) Instant {
	t.Wall, t.since = t.Wall.Add(d), t.since+d
	return t
}

// IsZero tells whether there is no such moment.
func (t Instant) IsZero() bool { return t.Wall.IsZero() }

// instant is where a time of the process lies.
func (p *Process) instant(wall time.Time, mono time.Duration) Instant {
	return Instant{Wall: wall, since: p.Uptime + mono, clock: p.clock}
}

// Policy is a robots.txt as it was in force. Of one that is only known by its version the Record is zero.
type Policy struct {
	Record  robots.Record  // of a policy that was read: without the body
	Version robots.Version // of the body; zero: no file stands behind it

	packed []byte // the body as it stands in the log
	size   int
	kept   bool
}

// Body returns the robots.txt, unpacked; false where the log had no room for it, or there was none.
func (p *Policy) Body() ([]byte, bool) {
	if p.Version == robots.VersionOf(nil) {
		return nil, true // empty, and known to be
	}
	if !p.kept {
		return nil, false
	}
	return unpack(p.packed, p.size)
}
