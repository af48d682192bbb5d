package frontier

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// RobotsQuery is a robots job whose next request another shard makes.
type RobotsQuery struct {
	ID  uint64
	URL weburl.URL
	Job RobotsJob
}

// RobotsAnswer is what a job from outside has brought: the Outcome of a request for another shard, or the Record and
// the Rules of the robots.txt that a visit needs.
type RobotsAnswer struct {
	ID      uint64
	Outcome robots.Outcome
	Record  robots.Record
	Rules   *robots.Rules
}

// queries are the robots jobs that cross shards.
type queries struct {
	last    uint64
	waiting map[uint64]pendingJob // that other shards serve
	fresh   []RobotsQuery         // of waiting, since TakeQueries
	answers []RobotsAnswer        // to jobs from outside, since TakeAnswers
}

// TakeQueries returns the jobs since the last call whose next request another shard makes. Each of them
// waits for CompleteQuery.
func (f *Frontier) TakeQueries() []RobotsQuery {
	q := f.jobs.queries.fresh
	f.jobs.queries.fresh = nil
	return q
}

// query hands the next request of a job to the shard of its host.
func (j *robotsJobs) query(e pendingJob) {
	j.queries.last++
	j.queries.waiting[j.queries.last] = e
	j.queries.fresh = append(j.queries.fresh, RobotsQuery{j.queries.last, e.url, e.job})
}

// CompleteQuery takes what another shard has brought for a job. The error is ErrUnknownLease.
func (f *Frontier) CompleteQuery(id uint64, r RobotsReport) error {
	e, ok := f.jobs.queries.waiting[id]
	if !ok {
		return fmt.Errorf("%w: robots query %d", ErrUnknownLease, id)
	}
	f.readClock(r.End)
	delete(f.jobs.queries.waiting, id)
	if !r.Redirect.IsZero() {
		e.job.Hops++
		f.forwardJob(nil, pendingJob{r.Redirect, e.job}, r.End)
		return nil
	}
	f.jobDone(f.setRecord(e.job, &r), nil, r.End)
	return nil
}

// Serve takes a job from outside, which starts at u: that of another shard, one request for the robots.txt of
// job.Origin, whose validators job.Previous has; or one of a visit. TakeAnswers has the answer, with the same ID, which
// is not 0.
func (f *Frontier) Serve(id uint64, u weburl.URL, job RobotsJob, now time.Time) {
	f.readClock(now)
	job.Owner, job.query = storage.NoHost, id
	f.forwardJob(nil, pendingJob{u, job}, now)
}

// IsQuery reports whether somebody else judges what the job brings: another shard, or the owner of a visit.
func (j *RobotsJob) IsQuery() bool { return j.query != 0 && (j.Visit == nil || j.isVisit()) }

// answer answers the job of somebody else.
func (j *robotsJobs) answer(job *RobotsJob, a RobotsAnswer) {
	a.ID = job.query
	j.queries.answers = append(j.queries.answers, a)
}

// TakeAnswers returns the answers to jobs from outside since the last call.
func (f *Frontier) TakeAnswers() []RobotsAnswer {
	a := f.jobs.queries.answers
	f.jobs.queries.answers = nil
	return a
}
