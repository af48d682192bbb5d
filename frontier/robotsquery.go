package frontier

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// In a cluster a robots.txt may redirect to a host of another shard. Only the owner of that shard makes
// requests to the host. So the job waits here while the owner is queried. There it is a job without a host
// of its own, which gets its turn like the jobs of other hosts; what the request brings goes back.

// RobotsQuery is a robots job whose next request another shard makes.
type RobotsQuery struct {
	ID  uint64
	URL weburl.URL
	Job RobotsJob
}

// RobotsAnswer is what a request for another shard has brought.
type RobotsAnswer struct {
	ID      uint64
	Outcome robots.Outcome
}

// queries are the robots jobs that cross shards.
type queries struct {
	last    uint64
	waiting map[uint64]pendingJob // that other shards serve
	fresh   []RobotsQuery         // of waiting, since TakeQueries
	answers []RobotsAnswer        // to other shards, since TakeAnswers
}

// TakeQueries returns the jobs since the last call whose next request another shard makes. Each of them
// waits for CompleteQuery.
func (f *Frontier) TakeQueries() []RobotsQuery {
	q := f.queries.fresh
	f.queries.fresh = nil
	return q
}

// query hands the next request of a job to the shard of its host.
func (f *Frontier) query(e pendingJob) {
	f.queries.last++
	f.queries.waiting[f.queries.last] = e
	f.queries.fresh = append(f.queries.fresh, RobotsQuery{f.queries.last, e.url, e.job})
}

// CompleteQuery takes what another shard has brought for a job. The error is ErrUnknownLease.
func (f *Frontier) CompleteQuery(id uint64, r RobotsReport) error {
	e, ok := f.queries.waiting[id]
	if !ok {
		return fmt.Errorf("%w: robots query %d", ErrUnknownLease, id)
	}
	f.readClock(r.End)
	delete(f.queries.waiting, id)
	if !r.Redirect.IsZero() {
		e.job.Hops++
		f.forwardJob(nil, pendingJob{r.Redirect, e.job}, r.End)
		return nil
	}
	f.jobDone(f.setRecord(e.job, r.Record, r.Rules, r.End), nil, r.End)
	return nil
}

// ServeRobots takes the job of another shard: one request to a host of this one, for the robots.txt of an
// origin. previous has the validators. TakeAnswers has the answer, with the same ID, which is not 0.
func (f *Frontier) ServeRobots(id uint64, u weburl.URL, origin weburl.Origin, previous robots.Record, now time.Time) {
	f.readClock(now)
	job := RobotsJob{Origin: origin, Owner: storage.NoHost, Previous: previous, query: id}
	f.forwardJob(nil, pendingJob{u, job}, now)
}

// IsQuery reports whether the job is that of another shard, which judges what it brings.
func (j *RobotsJob) IsQuery() bool { return j.query != 0 }

// answer answers the job of another shard.
func (f *Frontier) answer(job *RobotsJob, out robots.Outcome) {
	f.queries.answers = append(f.queries.answers, RobotsAnswer{job.query, out})
}

// TakeAnswers returns the answers to other shards since the last call.
func (f *Frontier) TakeAnswers() []RobotsAnswer {
	a := f.queries.answers
	f.queries.answers = nil
	return a
}
