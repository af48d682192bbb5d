package frontier

import (
	"time"

	"github.com/amble-crawler/amble/frontier/internal/queue"
	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

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

// endRequest ends the request of a lease at its host and its address.
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
	h.active.polite.Ended(r.End, politeness.Result{
		Signal: r.Signal, Duration: r.Duration, RetryAfter: r.RetryAfter, Header: r.RetryAfterText, Cause: uint16(r.Cause), Jitter: f.jitter(),
	})
	if out.lease.Kind == Page || r.Signal != politeness.SignalOK { // what robots.txt says may be that trouble goes on: setPolicy
		h.setFailing(r.Signal, f.instant(r.End))
	}
	if r.Signal == politeness.SignalUnreachable {
		h.addressTurn++
		h.active.expires = always // ask for its addresses again, and try another
	}
}

// answered reports whether the lease came to something.
func (r *Report) answered() bool { return r.Sent && !r.Broken }

// CompletePage ends a Page lease.
func (f *Frontier) CompletePage(id uint64, r PageReport) error {
	out, err := f.endLease(id, Page)
	if err != nil {
		return err
	}
	f.endRequest(out, &r.Report)
	h, head := out.host, &out.lease.Head
	q := &h.active.queues[head.Origin]
	outcome := head.Last
	if r.answered() {
		outcome = f.attempted(head, r.Outcome, r.End)
		f.planRecrawl(h, head, &outcome, &r)
		f.recordOutcome(h, head, outcome)
		q.Done(head.Ordinal)
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

// Attempted counts an attempt at a URL that came to a state, and says whether
// another one is to follow.
func (o *Options) Attempted(head *storage.Head, s storage.State) (attempts uint8, again bool) {
	if s != storage.Retrying {
		return 0, false
	}
	attempts = head.Last.Attempts + 1
	return attempts, attempts < o.MaxAttempts
}

// attempted decides about a failure that may pass: another attempt, later each
// time, or the end.
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
