package requestlog

import (
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

// Kind says what a request was for. The numbers are stored; new ones are added at the end.
type Kind uint8

// The kinds of requests.
const (
	Page   Kind = iota // a URL of the frontier
	Robots             // the robots.txt of an origin, or what it redirects to
	kinds
)

// String returns the name of the kind in reports.
func (k Kind) String() string {
	if k < kinds {
		return [...]string{"page", "robots"}[k]
	}
	return "unknown"
}

// Method is the HTTP method. The numbers are stored; new ones are added at the end.
type Method uint8

// The methods. A crawler only uses GET.
const (
	Get Method = iota
	methods
)

// String returns the method as a request has it.
func (m Method) String() string {
	if m < methods {
		return [...]string{"GET"}[m]
	}
	return "unknown"
}

// Request is one request that was made.
type Request struct {
	Kind         Kind
	Method       Method
	URL          weburl.URL
	For          weburl.Origin // of Robots: the origin whose rules are needed, if it is not that of URL; else zero
	Address      netip.Addr    // that was dialled
	LedgerOffset uint64        // of its line in the start ledger
	Again        bool          // repeated: a process had ended before it could commit the outcome

	Start, End time.Time     // End is zero if it is unknown: the process was killed
	Decided    time.Time     // when the frontier granted it
	Sent       bool          // bytes of it may have reached the server; false: there was no connection
	Status     int           // of the response; 0: there was none
	Failure    fetch.Kind    // why there was no response; meaningful with Status 0 and a known End
	Bytes      uint64        // received
	RetryAfter time.Duration // that the response demands, by Retry-After or RateLimit

	Delay       time.Duration     // the delay in force at Decided
	DelayReason politeness.Reason // the source of that delay
	Reason      politeness.Reason // the reason for which the host last had to wait

	Fetcher string // that made it, outside of this process; empty: amble did
	Lease   string // the id of its lease; empty: amble made it, or the log is older than ids

	Policy  *Policy // of Page: the policy that allowed it; of Robots: the new policy; nil: none
	Allowed bool    // of Page: the verdict
	Line    int     // of Page: the line of the robots.txt that gave the verdict; 0: none did

	// Only the process that makes the request knows these; the log does not keep them.
	BodyBytes int64         // of the body, decoded
	Connected time.Time     // when the connection was ready; zero: no whole response came
	FirstByte time.Time     // when the response began; zero: no whole response came
	Late      time.Duration // from the instant that politeness allowed to Start; 0: the host waited for nothing
	Gap       time.Duration // since the last request to the host had ended; negative: the process knows of none

	Process *Process // that made it, or, if End is zero, that found it in the start ledger; set by Read

	starts, ends Instant
}

// Process is a process that makes requests. It does not change while it runs.
type Process struct {
	Began      time.Time     // with a monotonic clock reading
	Uptime     time.Duration // the time since the start of the machine at Began; 0: not known
	Boot       string        // identifies that start of the machine; "": not known
	Agent      string        // the User-Agent header
	Tokens     []string      // the names that apply in robots.txt
	Obey       bool          // robots.txt is obeyed
	LedgerBase uint64        // the first offset of its start ledger; Read does not set it

	clock int // the number of the clock of its instants; set by Read
}

// Instant is a moment on the wall clock, and, if the system has one that continues from one process
// to the next, on a clock that cannot be set.
type Instant struct {
	Wall  time.Time
	since time.Duration
	clock int // instants with equal numbers can be compared exactly
}

// Policy is a robots.txt as it was in force. The Record is zero if only the version is known.
type Policy struct {
	Record  robots.Record  // of a policy that was read: without the body
	Packed  []byte         // the body as robots.Pack returns it; nil: the log packs it
	Version robots.Version // of the body; zero: there is no file

	size int // of the body in the log
	kept bool
}
