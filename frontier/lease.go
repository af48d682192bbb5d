package frontier

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/wall"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Kind says what a lease is for.
type Kind uint8

// The kinds of leases.
const (
	Resolve Kind = iota // a lookup of a host name; no request to the host
	Robots              // a request for the robots.txt of an origin, or what it redirects to
	Page                // a request for a URL of the frontier
	Match               // a match of a URL against rules that take long; no request
)

// String returns the name of the kind for logs.
func (k Kind) String() string { return [...]string{"resolve", "robots", "page", "match"}[k] }

// Lease is the permission for one request to one host at one address, until it is completed. It is
// plain data; a worker may keep it.
type Lease struct {
	ID       uint64
	Kind     Kind
	Host     storage.HostID
	HostName string
	URL      weburl.URL // zero for Resolve
	Address  netip.Addr // the only one to dial; zero for Resolve and Match

	// Of Page and Match leases.
	Head    storage.Head
	Verdict robots.Verdict // which allowed it; zero for Match, which is to find it
	Rules   *robots.Rules  // which gave the verdict
	Policy  *robots.Record // which the rules come from; read-only
	Wall    *wall.State    // what is known of the wall that the host is behind; nil: there is none

	Robots *RobotsJob // of Robots leases; read-only

	// For the start ledger and the logs.
	At          time.Time         // when it was given out
	Delay       time.Duration     // the delay in force
	DelayReason politeness.Reason // what demands the delay
	DelaySource politeness.Source // where that comes from
	Reason      politeness.Reason // what the host waited for last
	Source      politeness.Source // where that comes from
	Learned     bool              // a robots.txt of the host was read before
	LastEnd     time.Time         // end of the last request to the host; zero: none is known
	Ready       time.Time         // when politeness allowed the request; zero: it always did
}

// RobotsJob is the job of fetching the robots.txt of an origin. A redirect passes it on to another
// host.
type RobotsJob struct {
	Origin   weburl.Origin  // whose rules are wanted
	Owner    storage.HostID // the host of the origin
	Hops     int            // redirects followed so far
	Previous robots.Record
	// HostAnswers says that another origin of the host answers; see robots.Outcome.
	HostAnswers bool
}

// outstanding is what the frontier keeps of a lease in flight.
type outstanding struct {
	host   *host
	lease  Lease
	limits [limitClasses]*limit // which it counts against

	lane        lane       // of its host when it began
	beforeQuick bool       // it began while a quick host was due
	urlKind     queue.Kind // of Page and Match leases
	unproven    bool       // of a lookup: no earlier lookup of the name found an address
}

// ErrUnknownLease says that a lease was completed twice or never given out.
var ErrUnknownLease = errors.New("frontier: no such lease is out")

func (f *Frontier) lease(h *host, kind Kind) *outstanding {
	f.lastLease++
	if len(f.spare) == 0 {
		f.spare = append(f.spare, new(outstanding))
	}
	last := len(f.spare) - 1
	out := f.spare[last]
	f.spare = f.spare[:last]
	*out = outstanding{host: h, limits: h.active.limits}
	out.lease.ID, out.lease.Kind, out.lease.Host, out.lease.HostName = f.lastLease, kind, h.id, h.active.name
	f.leases[f.lastLease] = out
	return out
}

// leaseRequest leases a request to a host. It counts against the host's limits until it is
// completed.
func (f *Frontier) leaseRequest(t *turn, kind Kind, u weburl.URL) *outstanding {
	a, why := t.host.active, &t.polite
	a.inFlight++
	a.served++
	for _, limit := range a.limits {
		if limit != nil {
			limit.polite.Begin()
		}
	}
	out := f.lease(t.host, kind)
	f.beginInLane(out, t.at)
	l := &out.lease
	l.URL, l.Address = u, a.pinned
	l.At, l.Delay, l.DelayReason, l.DelaySource = t.now, why.Delay, why.DelayReason, why.DelaySource
	l.Reason, l.Source, l.Learned = why.Reason, why.Source, a.learned()
	l.LastEnd, l.Ready = a.polite.LastEnd(), why.Until
	return out
}

// leaseRobots leases a request for a robots.txt, or for what it redirects to.
func (f *Frontier) leaseRobots(t *turn, u weburl.URL, job *RobotsJob) *outstanding {
	out := f.leaseRequest(t, Robots, u)
	out.lease.Robots = job
	return out
}

// endLease ends a lease. The result is valid until the next lease is given out.
func (f *Frontier) endLease(id uint64, kind Kind) (*outstanding, error) {
	out := f.leases[id]
	if out == nil || out.lease.Kind != kind {
		return nil, fmt.Errorf("%w: %s lease %d", ErrUnknownLease, kind, id)
	}
	delete(f.leases, id)
	f.spare = append(f.spare, out)
	return out, nil
}
