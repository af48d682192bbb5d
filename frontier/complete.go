package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/recrawl"
	"github.com/amble-crawler/amble/internal/wall"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

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

// PageReport is the Report of a page with the outcome of its URL. An outcome in state Retrying
// means that the failure may be temporary: the frontier decides whether to retry it, and sets
// Attempts and Due.
type PageReport struct {
	Report
	Outcome storage.Outcome
	Wall    wall.Answer // what the response says about a wall; zero without a response
	Refused bool        // nothing was sent, and Outcome says why; the URL does not go back to its queue

	// Of a response with the page, or that says that it has not changed.
	Change   recrawl.Change
	Modified time.Time     // Last-Modified; zero: unknown
	Expires  time.Time     // the page demands not to be fetched after it; zero: it does not
	Fresh    time.Duration // for how long the response says that it can be used; 0: it does not
}

// endRequest ends the request of a lease for its host and its limits.
func (f *Frontier) endRequest(out *outstanding, r *Report) {
	f.readClock(r.End)
	h := out.host
	h.active.inFlight--
	f.endInLane(out, f.instant(r.End))
	for _, l := range out.limits {
		if l != nil {
			f.endInLimit(l, r.End)
		}
	}
	if !r.Sent {
		return
	}
	f.recordLatency(h, r)
	if out.lease.Kind == Robots && r.Signal == politeness.SignalOK && h.active.wall.Walled() {
		r.Signal = politeness.SignalRefused // a wall seldom stands before robots.txt
	}
	result := politeness.Result{
		Signal: r.Signal, Duration: r.Duration, RetryAfter: r.RetryAfter, Header: r.RetryAfterText,
		RateLimit: r.RateLimit, Cause: uint16(r.Cause), Jitter: f.jitter(),
	}
	h.describeWall(&result)
	h.active.polite.Ended(r.End, result)
	if out.lease.Kind == Page || r.Signal != politeness.SignalOK { // else setRecord decides: it may hold the origin
		h.setFailing(r.Signal, f.instant(r.End))
	}
	if r.Signal == politeness.SignalUnreachable {
		h.addressTurn++
		h.active.expires = always // look its addresses up again, and try another
	}
}

// answered reports whether the lease has a result.
func (r *Report) answered() bool { return r.Sent && !r.Broken }

// CompletePage ends a Page lease. The error is ErrUnknownLease.
func (f *Frontier) CompletePage(id uint64, r PageReport) error {
	out, err := f.endLease(id, Page)
	if err != nil {
		return err
	}
	h, head := out.host, &out.lease.Head
	behindWall := f.observeWall(h, head.Ordinal, &r)
	f.endRequest(out, &r.Report)
	q := &h.active.queues[head.Origin]
	outcome := head.Last
	if r.answered() {
		if outcome = r.Outcome; behindWall {
			outcome = f.behindWall(head, &r)
		} else {
			outcome = f.attempted(head, outcome, r.End)
		}
		f.planRecrawl(h, head, &outcome, &r)
		f.recordOutcome(h, head, outcome)
		q.Done(head.Ordinal)
	} else if r.Refused {
		outcome = r.Outcome
		outcome.At = r.End
		f.keepHistory(h, head, &outcome)
		f.recordOutcome(h, head, outcome)
		q.Done(head.Ordinal)
		f.update(h, r.End, 0, 0)
	} else {
		f.putBack(h, q, out)
	}
	f.uncountPage(h, outcome.State, f.instant(r.End))
	if r.Sent {
		f.update(h, r.End, 1, r.Bytes)
	}
	f.applyDrop(h, r.End)
	f.schedule(h, f.instant(r.End))
	return nil
}

// putBack returns the URL of a lease without a result to its queue.
func (f *Frontier) putBack(h *host, q *originQueue, out *outstanding) {
	q.Return(out.lease.Head, out.urlKind)
	h.active.busy.Remove(out.lease.Head.Ordinal)
	if out.urlKind == queue.Recrawl && out.lease.Kind == Page {
		f.refundRecrawl()
	}
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
func (f *Frontier) attempted(head *storage.Head, o storage.Outcome, end time.Time) storage.Outcome {
	o.At = end
	if o.State != storage.Retrying {
		return o
	}
	attempts, again := f.o.Attempted(head, o.State)
	o.Attempts = attempts
	if !again {
		o.State = storage.Failed
		return o
	}
	wait := f.o.RetryDelay << min(attempts-1, 16)
	o.Due = f.dueTime(end).Add(wait + time.Duration(f.jitter()*float64(wait)/4))
	return o
}
