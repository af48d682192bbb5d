package crawl

import (
	"context"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
)

// robotsQueries are the requests for robots.txt files that cross shards, and the jobs of visits. The dispatcher owns
// it.
type robotsQueries struct {
	start   func(frontier.RobotsQuery) // to another shard, in a goroutine of its own
	last    uint64
	waiting map[uint64]chan<- frontier.RobotsAnswer // jobs from outside; each channel holds one
}

// FetchRobots makes a request for another shard, when the limits of the host allow it. The outcome has what
// the request has brought. The errors are those of Control. Any goroutine may call it.
func (c *commands) FetchRobots(ctx context.Context, q RobotsQuery) (robots.Outcome, error) {
	out, err := c.serve(ctx, q.URL, frontier.RobotsJob{Origin: q.Origin, Previous: robots.Record{
		Copy: robots.ClassFound, FinalURL: q.URL.String(), ETag: q.ETag, LastModified: q.LastModified,
	}})
	return out.Outcome, err
}

// serve has the frontier do a job from outside, and waits for its answer.
func (c *commands) serve(
	ctx context.Context, u weburl.URL, job frontier.RobotsJob,
) (out frontier.RobotsAnswer, err error) {
	m, answer := c.mailbox.Load(), make(chan frontier.RobotsAnswer, 1)
	if err := m.call(ctx, func(d *dispatcher) { d.serveJob(u, job, answer) }); err != nil {
		return out, err
	}
	select {
	case out = <-answer:
		return out, nil
	case <-m.closed:
		return out, ErrNotRunning
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

// serveJob begins a job from outside.
func (g *gathering) serveJob(u weburl.URL, job frontier.RobotsJob, answer chan<- frontier.RobotsAnswer) {
	if !g.o.owns(u.Host()) {
		answer <- frontier.RobotsAnswer{Outcome: robots.Outcome{URL: u.String(), Failure: robots.FailureConnect}}
		return
	}
	r := &g.robotsQueries
	r.last++
	r.waiting[r.last] = answer
	g.f.Serve(r.last, u, job, g.o.Now())
}

// crossShards hands over what the frontier has for other shards, and for the owners of visits.
func (g *gathering) crossShards() {
	for _, q := range g.f.TakeQueries() {
		g.robotsQueries.start(q)
	}
	for _, a := range g.f.TakeAnswers() {
		g.robotsQueries.waiting[a.ID] <- a
		delete(g.robotsQueries.waiting, a.ID)
	}
}

// completeQuery takes what another shard has brought for a robots job.
func (g *gathering) completeQuery(id uint64, res *work.Result) {
	g.fail(g.f.CompleteQuery(id, res.Robots))
	g.pending.add(res)
}
