package frontier

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/web/weburl"
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
	Visited             // a request that somebody watches: see Visit
)

// String returns the name of the kind for logs.
func (k Kind) String() string { return [...]string{"resolve", "robots", "page", "match", "visit"}[k] }

// Lease is the permission for one request to one host at one address, until it is completed. It is
// plain data; a worker may keep it.
type Lease struct {
	ID       uint64
	Kind     Kind
	Host     storage.HostID
	HostName string
	URL      weburl.URL // zero for Resolve
	Address  netip.Addr // the only one to dial; zero for Resolve and Match
	Every    bool       // of Resolve leases: the addresses of both families are wanted

	// Of Page, Match and Visited leases.
	Head    storage.Head
	Verdict robots.Verdict // which allowed it; zero for Match, which is to find it
	Rules   *robots.Rules  // which gave the verdict
	Policy  *robots.Record // which the rules come from; read-only

	Wall   *wall.State  // of requests: what is known of the wall that the host is behind; nil: there is none
	Robots *RobotsJob   // of Robots and Visited leases; read-only
	Gate   *GateRequest // that the gate has admitted, and counts; nil: none has. Read-only

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

// leases are the leases in flight.
type leases struct {
	*base
	lanes     *laneQueues
	out       map[uint64]*outstanding
	last      uint64
	spare     []*outstanding // ended leases, for reuse
	remote    bool           // LeaseRemote runs
	batchSize int            // the most URLs of a host that a fetcher has wanted so far
}

// RobotsJob is the job of fetching the robots.txt of an origin. A redirect passes it on to another host.
type RobotsJob struct {
	Origin   weburl.Origin  // whose rules are wanted
	Owner    storage.HostID // the host of the origin
	Hops     int            // redirects followed so far
	Previous robots.Record
	// HostAnswers says that another origin of the host answers; see robots.Outcome.
	HostAnswers bool
	// Visit is the visit that the job is, or makes ready; nil: there is none.
	Visit *Visit
	query uint64 // to whom the answer goes: another shard, or the owner of a visit; 0: it is a job of this frontier
}

// outstanding is what the frontier keeps of a lease in flight.
type outstanding struct {
	host   *host
	lease  Lease
	limits [limitClasses]*limit // which it counts against

	lane         lane       // of its host when it began
	beforeQuick  bool       // it began while a quick host was due
	urlKind      queue.Kind // of Page and Match leases
	unproven     bool       // of a lookup: no earlier lookup of the name found an address
	remote       bool       // a fetcher outside of this process has it
	requestEnded bool       // by EndRequest
	leftOut      bool       // the operator has left its URL out meanwhile
	deleted      bool       // its URL is being deleted, and is off the recrawl plan
	behindWall   bool       // of a Page lease whose request has ended: the response was that of a wall
	pages        *pagesOf   // those that a page counts among; nil: its seed has no limit
}

// ErrUnknownLease says that a lease was completed twice or never given out.
var ErrUnknownLease = errors.New("frontier: no such lease is out")

func (ls *leases) add(h *host, kind Kind) *outstanding {
	ls.last++
	if len(ls.spare) == 0 {
		ls.spare = append(ls.spare, new(outstanding))
	}
	last := len(ls.spare) - 1
	out := ls.spare[last]
	ls.spare = ls.spare[:last]
	*out = outstanding{host: h, limits: h.active.limits}
	out.lease.ID, out.lease.Kind, out.lease.Host, out.lease.HostName = ls.last, kind, h.id, h.active.name
	ls.out[ls.last] = out
	return out
}

// request leases a request to a host. It counts against the host's limits until it is
// completed.
func (ls *leases) request(t *turn, kind Kind, u weburl.URL) *outstanding {
	a, why := t.host.active, &t.polite
	a.inFlight++
	a.served++
	t.host.countInTurn()
	for _, limit := range a.limits {
		if limit != nil {
			limit.polite.Begin()
		}
	}
	out := ls.add(t.host, kind)
	out.remote = ls.remote && kind == Page
	ls.lanes.begin(out, t.at)
	l := &out.lease
	l.URL, l.Address = u, a.pinned
	l.At, l.Delay, l.DelayReason, l.DelaySource = t.now, why.Delay, why.DelayReason, why.DelaySource
	l.Reason, l.Source, l.Learned = why.Reason, why.Source, a.learned()
	l.LastEnd, l.Ready = a.polite.LastEnd(), why.Until
	if a.wall.Walled() {
		known := a.wall
		l.Wall = &known
	}
	return out
}

// robots leases a request for a robots.txt, or for what it redirects to.
func (ls *leases) robots(t *turn, u weburl.URL, job *RobotsJob) *outstanding {
	out := ls.request(t, Robots, u)
	out.lease.Robots = job
	return out
}

// end ends a lease. The result is valid until the next lease is given out.
func (ls *leases) end(id uint64, kinds ...Kind) (*outstanding, error) {
	out := ls.out[id]
	if out == nil || !slices.Contains(kinds, out.lease.Kind) {
		return nil, fmt.Errorf("%w: %s lease %d", ErrUnknownLease, kinds[0], id)
	}
	delete(ls.out, id)
	ls.spare = append(ls.spare, out)
	if head := &out.lease.Head; out.lease.Kind == Page && head.Priority == FirstPriority {
		out.host.active.queues[head.Origin].firstInFlight = false
	}
	return out, nil
}

// Report is the result of a lease that made a request.
type Report struct {
	Sent bool // false: nothing left the machine; all is as if the lease had not been given
	// Broken: it was sent, but has no result, because the crawler itself broke it off or a kept
	// connection was lost. The host is charged, and the URL goes back to its queue.
	Broken   bool
	End      time.Time // when the request ended
	Duration time.Duration
	Signal   politeness.Signal
	Cause    storage.Cause // of a Signal that is a failure
	// RetryAfter is the wait that the host demands; 0: none.
	RetryAfter     time.Duration
	RetryAfterText string // the value of the header
	RateLimit      politeness.RateLimit
	Bytes          uint64
}

// RequestEnd is what politeness has to know of a request.
type RequestEnd struct {
	Report
	Wall wall.Answer // what the response says about a wall; zero without a response
}

// PageReport is the end of the request for a page with the outcome of its URL. An outcome in state
// Retrying means that the failure may be temporary: the frontier decides whether to retry it, and
// sets Attempts and Due.
type PageReport struct {
	RequestEnd
	Outcome storage.Outcome
	Next    *time.Time // replaces the plan for the URL: due again then; zero: never. nil: it stays as planned
	RanOut  bool       // with Broken: it counts as an attempt, Outcome says why, and the URL is due again at once
	Refused bool       // nothing was sent, and Outcome says why; the URL does not go back to its queue
	OfWall  func()     // called if the response turns out to be that of a wall; nil: nobody wants to know

	// Of a response with the page, or that says that it has not changed.
	Change   recrawl.Change
	Modified time.Time     // Last-Modified; zero: unknown
	Expires  time.Time     // the page demands not to be fetched after it; zero: it does not
	Fresh    time.Duration // for how long the response says that it can be used; 0: it does not
}

// endRequest ends the request of a lease for its host and its limits.
func (s *scheduler) endRequest(out *outstanding, r *Report) {
	s.readClock(r.End)
	h := out.host
	h.active.inFlight--
	for _, l := range out.limits {
		if l != nil {
			s.endInLimit(l, r)
		}
	}
	if !r.Sent {
		return
	}
	h.marks.set(isNew, false)
	if !out.remote {
		s.lanes.recordLatency(h, r)
	}
	if out.lease.Kind == Robots && r.Signal == politeness.SignalOK && h.active.wall.Walled() {
		r.Signal = politeness.SignalRefused // many walls do not stand before robots.txt
	}
	result := politeness.Result{
		Signal: r.Signal, Duration: r.Duration, RetryAfter: r.RetryAfter, Header: r.RetryAfterText,
		RateLimit: r.RateLimit, Cause: uint16(r.Cause), Jitter: s.jitter(),
	}
	h.describeWall(&result)
	h.active.polite.Ended(r.End, result)
	if out.lease.Kind != Robots || r.Signal != politeness.SignalOK { // else setRecord decides: it may hold the origin
		h.setFailing(r.Signal, s.instant(r.End))
	}
	if r.Signal == politeness.SignalUnreachable && !s.o.NoLookups {
		h.addressTurn++
		h.active.expires = always // look its addresses up again, and try another
	}
}

// signal is what a request says of the pace. One that was never made, or was broken off, says nothing.
func (r *Report) signal() politeness.Signal {
	if !r.answered() {
		return politeness.SignalAborted
	}
	return r.Signal
}

// answered reports whether the lease has a result.
func (r *Report) answered() bool { return r.Sent && !r.Broken }

// EndRequest ends the request of a Page lease before CompletePage ends the lease: the response has
// arrived, and is still being read. The host may have its next request meanwhile; see isFull. The
// error is ErrUnknownLease.
func (f *Frontier) EndRequest(id uint64, r RequestEnd) error {
	out := f.leases.out[id]
	if out == nil || out.lease.Kind != Page || out.requestEnded {
		return fmt.Errorf("%w: page lease %d with a request in flight", ErrUnknownLease, id)
	}
	defer f.gate.end(out, &r.Report)
	f.endPageRequest(out, &r)
	out.requestEnded = true
	out.host.active.reading++
	f.schedule(out.host, f.instant(r.End))
	return nil
}

// endPageRequest ends the request of a Page lease.
func (s *scheduler) endPageRequest(out *outstanding, r *RequestEnd) {
	out.behindWall = s.results.observeWall(out.host, r, &out.lease.Head.Last)
	s.endRequest(out, &r.Report)
}

// CompletePage ends a Page lease, and its request if EndRequest has not. The error is ErrUnknownLease.
func (f *Frontier) CompletePage(id uint64, r PageReport) error {
	out, err := f.leases.end(id, Page)
	if err != nil {
		return err
	}
	h, head := out.host, &out.lease.Head
	if out.requestEnded {
		h.active.reading--
	} else {
		defer f.gate.end(out, &r.Report)
		f.endPageRequest(out, &r.RequestEnd)
	}
	f.lanes.end(out, f.instant(r.End))
	now := r.End
	if out.remote || out.requestEnded { // it ended earlier: a remote one perhaps before this process began
		now = f.clock
	}
	q := &h.active.queues[head.Origin]
	outcome := head.Last
	switch {
	case r.answered():
		if outcome = r.Outcome; out.behindWall {
			outcome = f.behindWall(head, &r, h.active.wall.Verdict().Since)
			if r.OfWall != nil {
				r.OfWall()
			}
		} else {
			outcome = f.attempted(head, outcome, r.End)
		}
	case r.RanOut:
		outcome = f.ranOut(head, &r)
	case r.Refused:
		outcome = r.Outcome
		outcome.At = r.End
		f.recrawls.keepHistory(h, head, &outcome)
	default:
		f.recrawls.putBack(h, q, out)
	}
	if (r.answered() || r.RanOut) && !out.deleted {
		f.recrawls.plan(h, head, &outcome, &r)
	}
	if r.answered() && r.Next != nil && !out.behindWall {
		f.replan(&outcome, *r.Next)
	}
	if out.leftOut && outcome.State == storage.Retrying {
		outcome = LeaveOut(outcome, now)
	}
	if r.answered() || r.RanOut || r.Refused {
		f.results.recordOutcome(h, head, outcome)
		q.Done(head.Ordinal)
	}
	f.uncountPage(out, outcome.State, f.instant(now))
	if r.Sent {
		f.results.update(h, now, 1, r.Bytes)
	} else if r.Refused {
		f.results.update(h, now, 0, 0)
	}
	f.commands.applyDrop(h, now)
	f.schedule(h, f.instant(now))
	return nil
}

// replan sets when a URL is fetched again; zero: never.
func (b *base) replan(o *storage.Outcome, next time.Time) {
	if o.Due = (time.Time{}); !next.IsZero() {
		o.State, o.Due, o.Attempts = storage.Retrying, b.dueTime(next), 0
	} else if o.State == storage.Retrying {
		o.State = storage.Failed
	}
}

// ranOut decides about the URL of a lease that ran out: it is due again at once, until it has had as
// many attempts as any other.
func (b *base) ranOut(head *storage.Head, r *PageReport) storage.Outcome {
	o, again := r.Outcome, false
	o.At = r.End
	if o.Attempts, again = b.o.Attempted(head, storage.Retrying); again {
		o.State, o.Due = storage.Retrying, b.dueTime(r.End)
	} else {
		o.State = storage.Failed
	}
	return o
}

// Attempted returns the number of attempts at a URL after one that ended in state s, and whether
// another one follows.
func (o *Options) Attempted(head *storage.Head, s storage.State) (attempts uint8, again bool) {
	if s != storage.Retrying {
		return 0, false
	}
	attempts = head.Last.Attempts + 1
	return attempts, attempts < o.MaxAttempts
}

// attempted decides about a failure that may be temporary: another attempt, each later than the one
// before, or the end.
func (b *base) attempted(head *storage.Head, o storage.Outcome, end time.Time) storage.Outcome {
	o.At = end
	if o.State != storage.Retrying {
		return o
	}
	again := false
	if o.Attempts, again = b.o.Attempted(head, o.State); !again {
		o.State = storage.Failed
		return o
	}
	wait := b.o.RetryDelay << min(o.Attempts-1, 16)
	o.Due = b.dueTime(end).Add(wait + time.Duration(b.jitter()*float64(wait)/4))
	return o
}
