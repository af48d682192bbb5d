package crawl

import (
	"errors"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// complete applies what a worker brought.
func (r *run) complete(res *result) {
	l := &res.lease
	if l.Kind == frontier.Resolve {
		r.lookups--
	} else {
		r.busy--
	}
	r.land(res)
	r.logRequest(res, res.place)
	var err error
	switch l.Kind {
	case frontier.Resolve:
		err = r.f.CompleteResolve(l.ID, res.resolve)
	case frontier.Robots:
		r.noteWait(l, &res.robots.Report)
		err = r.f.CompleteRobots(l.ID, res.robots)
		r.pending.add(res)
	case frontier.Page:
		r.pages--
		if res.page.Outcome.State == storage.Fetched {
			r.pending.pages++
			r.unsettled++
		}
		r.noteWait(l, &res.page.Report)
		r.join(res)
		if res.page.Outcome.Reason == storage.ReasonCrash {
			r.noteCrash(l.Host)
		}
		err = r.f.CompletePage(l.ID, res.page)
		r.pending.add(res)
		r.bodies.add(res)
	case frontier.Match:
		if res.match.Crashed {
			r.noteCrash(l.Host)
		}
		err = r.f.CompleteMatch(l.ID, res.match)
	}
	if err != nil {
		r.fail(fmt.Errorf("complete %s of %s: %w", l.Kind, l.URL, err))
	}
	r.collect()
}

// join widens the scope by where a seed's redirect led.
func (r *run) join(res *result) {
	if res.join.IsZero() {
		return
	}
	scope := r.f.Scope().With(res.join)
	r.f.SetScope(scope)
	r.scope.Store(scope)
	r.pending.batch.Join = append(r.pending.batch.Join, res.join.String())
	r.log.Info("a seed redirects; its target joins the scope", "seed", res.lease.URL.String(), "target", res.join.String())
}

// notSent ends a lease that never reached a worker.
func (r *run) notSent(l frontier.Lease, now time.Time) {
	report := frontier.Report{End: now}
	var err error
	if l.Kind == frontier.Robots {
		err = r.f.CompleteRobots(l.ID, frontier.RobotsReport{Report: report})
	} else {
		err = r.f.CompletePage(l.ID, frontier.PageReport{Report: report})
	}
	if err != nil {
		r.fail(err)
	}
	r.collect()
}

func (r *run) fail(err error) {
	if r.failed == nil {
		r.failed = err
	}
}

// nextJob is the channel and the job to offer to the committer; a nil channel
// when there is nothing to commit or it is busy. After a commit that failed for
// good nothing is: what follows it on disk must not skip what it held.
//
// Everything that ended before this moment is in the job, so the requests that
// are still out are all that the ledger must remember.
func (r *run) nextJob() (chan<- *job, *job) {
	if r.committing || r.torn {
		return nil, nil
	}
	if j := r.additionJob(); j != nil {
		return r.toCommit, j
	}
	if r.pending.empty() || r.gathers() {
		return nil, nil
	}
	r.markPlan(r.pending)
	r.pending.place = r.ledger.Place()
	for _, fl := range r.flights {
		r.pending.place = min(r.pending.place, fl.place)
	}
	return r.toCommit, r.pending
}

func (r *run) handedToCommitter(j *job) {
	r.committing = true
	if r.addedLast = j.addition != nil; r.addedLast {
		r.adding = nil
		return
	}
	r.settled = j.place
	if r.pending, r.spare = r.spare, nil; r.pending == nil {
		r.pending = newJob()
	}
}

// applied takes note of a commit.
func (r *run) applied(j *job) {
	r.committing = false
	r.unsettled -= j.pages
	r.takeStall() // what the committer said before it sent the job back
	j.answerAddition()
	j.answerDrops(j.err)
	j.answerOrders(j.err)
	if j.err != nil {
		r.torn = true
		r.fail(j.err)
		return
	}
	r.unstall(&r.noCommit)
	r.gathering.begin(j.took)
	r.portion.Committed(j.size, j.result.Changed)
	now := r.now()
	r.f.Committed(&j.batch, j.result, now)
	r.bodies.committed(j.batch.Payloads)
	j.endSweeps(now)
	r.collect()
	r.tally.added.Add(uint64(j.result.Added))
	r.tally.gaveUp.count(j.batch.Done)
	for reason, n := range j.result.TrappedBy {
		r.tally.traps.count(reason, n)
	}
	place := j.place
	if j.addition == nil {
		r.spare = j.reuse()
	}
	// Without room for a new ledger the old one goes on growing.
	if err := r.ledger.Trim(place); err != nil && !errors.Is(err, storage.ErrNoSpace) {
		r.fail(err)
	}
}

// nextLoads is the channel and the requests to offer to the loader.
func (r *run) nextLoads() (chan<- []frontier.LoadRequest, []frontier.LoadRequest) {
	if len(r.loads) == 0 {
		return nil, nil
	}
	return r.toLoad, r.loads
}

func (r *run) takeLoad(l *load) {
	r.loading--
	if l.err == nil {
		l.err = r.f.Loaded(&l.load, r.now())
	} else {
		r.f.LoadFailed(l.load.Host.ID, r.now())
	}
	if l.err != nil {
		r.fail(fmt.Errorf("read the queue of host %d: %w", l.load.Host.ID, l.err))
	}
	r.collect()
}

// drain waits for what is in flight.
func (r *run) drain() {
	r.draining = true
	r.ending.Store(true)
	r.report("stopping")
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for r.busy+r.lookups+r.loading > 0 {
		toCommit, batch := r.nextJob()
		select {
		case res := <-r.results:
			r.complete(res)
		case toCommit <- batch:
			r.handedToCommitter(batch)
		case j := <-r.committed:
			r.applied(j)
		case err := <-r.stalls:
			r.stall(&r.noCommit, err)
		case l := <-r.loaded:
			r.takeLoad(l)
		case <-second.C:
			r.report("stopping")
		}
	}
}

// flush commits what is left. Where the disk stays full what is not committed
// is given up; those requests will be made again.
func (r *run) flush() {
	for r.committing || !r.pending.empty() && !r.torn {
		toCommit, batch := r.nextJob()
		select {
		case toCommit <- batch:
			r.handedToCommitter(batch)
		case j := <-r.committed:
			r.applied(j)
		case err := <-r.stalls:
			r.stall(&r.noCommit, err)
		}
	}
}
