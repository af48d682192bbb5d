package crawl

import (
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
)

// Observer is told what a crawl does while it does it: for metrics, and for people who watch. Workers and the committer call it at the same
// time, so its methods must be safe for that, and must not wait for anything.
type Observer interface {
	// Requested is told of each request that left, once it has ended. The Request is the observer's to keep.
	Requested(Request)
	// Committed is told of each commit: how long it took, and how many outcomes and discoveries it held.
	Committed(took time.Duration, items int)
}

// Observers are told one after the other.
type Observers []Observer

// Requested is part of Observer.
func (o Observers) Requested(q Request) {
	for _, each := range o {
		each.Requested(q)
	}
}

// Committed is part of Observer.
func (o Observers) Committed(took time.Duration, items int) {
	for _, each := range o {
		each.Committed(took, items)
	}
}

// Request is one request that has ended.
type Request struct {
	Host  string
	URL   string
	Kind  string // robots or page
	Error string // the kind of failure where there was no whole answer, see fetch.Kind
	// Status is that of the answer; 0: there was none.
	Status int
	Bytes  int64 // of the body, decoded
	Start  time.Time
	// Connected is when there was a connection, FirstByte when the answer began; both zero: there was no whole answer.
	Connected time.Time
	FirstByte time.Time
	End       time.Time
	// Late is how long after the instant that politeness allowed the request began; 0 where the host waited for nothing.
	Late time.Duration
	// Gap is the time since the request to the host before had ended, Delay what it had to be at least. A Gap below 0: there is no request
	// before that this process knows of.
	Gap, Delay time.Duration
}

// Observe sets who is told from the next Run on; nil: nobody.
func (e *Engine) Observe(o Observer) { e.observer = o }

// answerOf describes a request with an answer.
func answerOf(l *frontier.Lease, resp *fetch.Response) Request {
	q := requestOf(l, resp.Start, resp.End)
	q.Status, q.Bytes, q.Connected, q.FirstByte = resp.Status, resp.Body.Size(), resp.Connected, resp.FirstByte
	return q
}

// failureOf describes a request without one.
func failureOf(l *frontier.Lease, failure *fetch.Error) Request {
	q := requestOf(l, failure.Start, failure.End)
	q.Error = failure.Kind.String()
	return q
}

func requestOf(l *frontier.Lease, start, end time.Time) Request {
	q := Request{Host: l.HostName, URL: l.URL.String(), Kind: l.Kind.String(), Start: start, End: end, Gap: -1, Delay: l.Delay}
	if !l.LastEnd.IsZero() {
		q.Gap = max(start.Sub(l.LastEnd), 0)
	}
	if !l.Ready.IsZero() {
		q.Late = max(start.Sub(l.Ready), 0)
	}
	return q
}

// observe counts a request and tells the observer of it.
func (r *run) observe(q Request) {
	r.tally.answers.count(&q)
	r.tally.pace.count(&q)
	if r.observer != nil {
		r.observer.Requested(q)
	}
}
