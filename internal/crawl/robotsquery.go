package crawl

import (
	"context"
	"runtime/debug"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
)

// RobotsQuery is a request that one shard wants of another: to where a robots.txt redirects.
type RobotsQuery struct {
	URL          weburl.URL    // of a host of the other shard
	Origin       weburl.Origin // whose rules are wanted
	ETag         string        // validators; empty: there is none
	LastModified string
}

// robotsQueries are the requests for robots.txt files that cross shards. The dispatcher owns it.
type robotsQueries struct {
	start   func(frontier.RobotsQuery) // to another shard, in a goroutine of its own
	last    uint64
	waiting map[uint64]chan<- robots.Outcome // queries of other shards; each channel holds one
}

// FetchRobots makes a request for another shard, when the limits of the host allow it. The outcome has what
// the request has brought. The errors are those of Control. Any goroutine may call it.
func (e *Engine) FetchRobots(ctx context.Context, q RobotsQuery) (robots.Outcome, error) {
	m, answer := e.mailbox.Load(), make(chan robots.Outcome, 1)
	if err := m.call(ctx, func(d *dispatcher) { d.serveRobots(&q, answer) }); err != nil {
		return robots.Outcome{}, err
	}
	select {
	case out := <-answer:
		return out, nil
	case <-m.closed:
		return robots.Outcome{}, ErrNotRunning
	case <-ctx.Done():
		return robots.Outcome{}, ctx.Err()
	}
}

// serveRobots begins a request for another shard.
func (d *dispatcher) serveRobots(q *RobotsQuery, answer chan<- robots.Outcome) {
	if !d.o.owns(q.URL.Host()) {
		answer <- robots.Outcome{URL: q.URL.String(), Failure: robots.FailureConnect}
		return
	}
	r := &d.robotsQueries
	r.last++
	r.waiting[r.last] = answer
	previous := robots.Record{
		Copy: robots.ClassFound, FinalURL: q.URL.String(), ETag: q.ETag, LastModified: q.LastModified,
	}
	d.f.ServeRobots(r.last, q.URL, q.Origin, previous, d.o.Now())
	d.collect()
}

// crossShards hands over what the frontier has for other shards.
func (d *dispatcher) crossShards() {
	for _, q := range d.f.TakeQueries() {
		d.robotsQueries.start(q)
	}
	for _, a := range d.f.TakeAnswers() {
		d.robotsQueries.waiting[a.ID] <- a.Outcome
		delete(d.robotsQueries.waiting, a.ID)
	}
}

// robotsOutcome returns what a request for a robots.txt has brought, for the state machine.
func (w *worker) robotsOutcome(u weburl.URL, resp *fetch.Response, failure *fetch.Error) robots.Outcome {
	out := robots.Outcome{URL: u.String()}
	if failure != nil {
		out.Failure = robotsFailure(failure.Kind)
	} else if body, err := resp.Body.Load(nil, robots.MaxBody+1); err != nil {
		out.Failure = robots.FailureConnect
		w.log.Error("cannot read back a robots.txt", "url", out.URL, "error", err)
	} else {
		out.Status, out.Body, out.Truncated = resp.Status, body, resp.Truncated
		out.Header = robotsHeader(resp.Header)
	}
	return out
}

// queryRobots has another shard make the next request of a robots job, and judges what that brings. It
// returns false if the crawl ends meanwhile.
func (w *worker) queryRobots(ctx context.Context, q *frontier.RobotsQuery) (res *result, ok bool) {
	res = &result{lease: frontier.Lease{Kind: frontier.Robots, Host: q.Job.Owner, URL: q.URL, Robots: &q.Job}}
	defer func() {
		if cause := recover(); cause != nil {
			w.crashed(ctx, res, cause, debug.Stack())
			ok = true
		}
	}()
	query := RobotsQuery{URL: q.URL, Origin: q.Job.Origin}
	query.ETag, query.LastModified = w.robotsValidators(&q.Job, q.URL)
	out, err := w.o.Cluster.FetchRobots(ctx, query)
	if err != nil {
		return nil, false
	}
	out.URL = q.URL.String()
	res.robots.Sent, res.robots.End = true, w.o.Now()
	w.judgeRobots(res, out)
	return res, true
}

// completeQuery takes what another shard has brought for a robots job.
func (d *dispatcher) completeQuery(id uint64, res *result) {
	d.fail(d.f.CompleteQuery(id, res.robots))
	d.pending.add(res)
	d.collect()
}
