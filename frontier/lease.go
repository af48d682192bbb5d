package frontier

import (
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Kind says what a lease asks for.
type Kind uint8

// The kinds of leases.
const (
	Resolve Kind = iota // the addresses of a host name; no request to the host
	Robots              // the robots.txt of an origin, or what it redirects to
	Page                // a URL of the frontier
	Match               // no request: match a URL against rules that take long
)

// String names the kind for logs.
func (k Kind) String() string { return [...]string{"resolve", "robots", "page", "match"}[k] }

// Lease is the permission for one request to one host at one address, until it
// is completed. It is plain data; a worker may keep it.
type Lease struct {
	ID       uint64
	Kind     Kind
	Host     storage.HostID
	HostName string
	URL      weburl.URL // zero for Resolve
	Address  netip.Addr // to be dialled, and no other; zero for Resolve and Match

	// Of Page and Match leases.
	Head    storage.Head
	Verdict robots.Verdict // that allowed it; of Match: it is wanted
	Rules   *robots.Rules  // that gave the verdict
	Policy  robots.Record  // that the rules come from

	// Of Robots leases.
	Robots RobotsJob

	// For the start ledger and the logs.
	At          time.Time         // when it was given out
	Delay       time.Duration     // the delay in force
	DelayReason politeness.Reason // the sign that asks for it
	DelaySource politeness.Source // where that comes from
	Reason      politeness.Reason // the sign that the host waited for last
	Source      politeness.Source // where that comes from
	Learned     bool              // a robots.txt of the host was read before
	LastEnd     time.Time         // of the request to the host before; zero: none is known of
	Ready       time.Time         // from when politeness let the host be asked; zero: it always did
}

// RobotsJob is the errand of fetching robots.txt for an origin, which after a
// redirect leads to other hosts than the origin's own.
type RobotsJob struct {
	Origin   weburl.Origin  // whose rules are wanted
	Owner    storage.HostID // the origin's host
	Hops     int            // redirects followed so far
	Previous robots.Record
	// HostAnswers says that another origin of the host can be reached: see robots.Outcome.
	HostAnswers bool
}

// Report is what came of a lease that asked a host.
type Report struct {
	Sent     bool      // false: nothing left the machine; all is as if the lease had not been given
	Broken   bool      // sent, and says nothing about URL and host (broken off by the crawler itself, or lost with a kept connection): the host is charged, the URL goes back
	End      time.Time // when the request ended
	Duration time.Duration
	Signal   politeness.Signal
	Cause    storage.Cause // of a Signal that is a failure
	// RetryAfter is what the host asked for; 0 if it did not.
	RetryAfter     time.Duration
	RetryAfterText string // the value of the header
	Bytes          uint64
}

// PageReport is a Report with what became of the URL. An outcome in state
// Retrying means that the failure may pass: the frontier decides between
// another attempt and giving up, and sets Attempts and Due.
type PageReport struct {
	Report
	Outcome storage.Outcome

	// Of an answer with the page, or that it is the same.
	Change   revisit.Change
	Modified time.Time // Last-Modified; zero: not known
	Expires  time.Time // the page asks not to be fetched from then on; zero: it does not
}

// RobotsReport is a Report with what the robots state machine made of the
// answer. Redirect is where to go on; when it is zero, Record and Rules are the result.
type RobotsReport struct {
	Report
	Redirect weburl.URL
	Record   robots.Record
	Rules    *robots.Rules
}

// ResolveReport is the answer to a Resolve lease. No addresses: it failed.
type ResolveReport struct {
	End       time.Time
	Addresses []netip.Addr
	TTL       time.Duration // how long that holds; of Absent, how long there is no use in another lookup
	Aborted   bool          // the crawl is ending; nothing was learned

	// Of a failure: whether the answer is that there can be no address (the name
	// does not exist, or its addresses are out of reach), and the reason to
	// record for URLs that are given up for it. An answer that is repeated from
	// memory is no other answer: it is not Absent.
	Final  bool // give up the host's URLs at once
	Absent bool // give them up after as many such answers in a row as a URL has attempts
	Reason storage.Reason
}
