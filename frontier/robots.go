package frontier

import (
	"bytes"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// RobotsReport is the Report of a robots.txt, with the result. If Redirect is set, the job goes on
// there; else Record and Rules are the result. The result of a job of another shard is Outcome.
//
// Packed is what robots.Pack makes of the body of the Record. If it is nil, the owner of the Frontier
// takes the time for that: milliseconds for a large robots.txt.
type RobotsReport struct {
	RequestEnd // its Wall is zero unless the response is the challenge of a wall
	Outcome    robots.Outcome
	Redirect   weburl.URL
	Record     robots.Record
	Packed     []byte
	Rules      *robots.Rules
	// HasFirst says that URLs of FirstPriority were found with the file: nothing of the origin is fetched until
	// they are in its queue. They are in the batch that has the record.
	HasFirst bool
}

// robotsJobs are the robots jobs of hosts that are not active, and of other shards.
type robotsJobs struct {
	*base
	dormant map[storage.HostID][]pendingJob
	byName  map[string][]pendingJob // of hosts that have no id yet
	queries queries
}

// CompleteRobots ends a Robots or a Visited lease. The error is ErrUnknownLease.
func (f *Frontier) CompleteRobots(id uint64, r RobotsReport) error {
	out, err := f.leases.end(id, Robots, Visited)
	if err != nil {
		return err
	}
	defer f.gate.end(out, &r.Report)
	if r.Wall.Status != 0 {
		f.results.observeWall(out.host, &r.RequestEnd, &out.lease.Head.Last)
	}
	f.endRequest(out, &r.Report)
	f.lanes.end(out, f.instant(r.End))
	h, job := out.host, *out.lease.Robots
	owner := h
	switch {
	case out.lease.Kind == Visited:
		f.jobs.answer(&job, RobotsAnswer{})
	case !r.answered(): // it goes before all others of its kind
		at := 0
		if job.Owner != h.id {
			at = len(h.active.jobs) - countForeign(h.active.jobs, h)
		}
		h.active.jobs = slices.Insert(h.active.jobs, at, pendingJob{out.lease.URL, job})
	case job.IsQuery():
		f.jobs.answer(&job, RobotsAnswer{Outcome: r.Outcome})
	case !r.Redirect.IsZero():
		job.Hops++
		f.forwardJob(h, pendingJob{r.Redirect, job}, r.End)
	default:
		owner = f.setRecord(job, &r)
		f.shareRecord(h, out.lease.URL, job, &r)
	}
	if r.Sent {
		f.results.update(h, r.End, 1, r.Bytes)
	}
	f.schedule(h, f.instant(r.End))
	f.jobDone(owner, h, r.End)
	return nil
}

// shareRecord saves the host that served a job a second request for the same file: if a redirect
// led to the robots.txt of one of its own origins, the response counts for that origin too.
func (s *scheduler) shareRecord(h *host, from weburl.URL, job RobotsJob, r *RobotsReport) {
	q := h.queueOf(from.Origin())
	class, status := r.Record.Class, r.Record.Status
	final := class == robots.ClassFound || class == robots.ClassUnavailable && status/100 == 4
	if q == nil || q.fetchingRobots || from.Origin() == job.Origin || from.RequestURI() != "/robots.txt" || !final {
		return
	}
	shared := *r
	shared.Record.Redirects = 0
	s.setRecord(RobotsJob{Origin: q.origin, Owner: h.id, Previous: *q.record}, &shared)
}

// otherOriginAnswers reports whether another origin of the host has a robots.txt that is reachable.
func (a *active) otherOriginAnswers(q *originQueue) bool {
	for i := range a.queues {
		if other := &a.queues[i]; other != q && other.known && other.record.Class != robots.ClassUnreachable {
			return true
		}
	}
	return false
}

// jobDone schedules the owner of a job that another host served.
func (s *scheduler) jobDone(owner, server *host, now time.Time) {
	if owner == nil || owner == server || owner.active == nil {
		return
	}
	s.results.update(owner, now, 0, 0)
	s.schedule(owner, s.instant(now))
}

// setRecord stores the record of an origin and puts it in force. It returns the host of the origin.
func (s *scheduler) setRecord(job RobotsJob, r *RobotsReport) *host {
	record, rules, now := r.Record, r.Rules, r.End
	s.results.storeRecord(storage.Policy{Origin: job.Origin}, record, r.Packed)
	if job.Visit != nil {
		s.jobs.answer(&job, RobotsAnswer{Record: record, Rules: r.Rules})
	}
	h := s.hosts.get(job.Owner)
	q := h.queueOf(job.Origin)
	if q == nil {
		return h
	}
	if rulesChanged(&job.Previous, &record) {
		s.results.rechecks = append(s.results.rechecks, Recheck{Host: h.id, Origin: q.Origin(), Rules: rules})
	}
	q.setRules(record, rules)
	q.fetchingRobots, q.known, q.heldUntil = false, true, always
	if r.HasFirst {
		q.awaits = h.active.uncommitted + 1 // up to the update that follows
	}
	s.memory.updateBytes(h)
	h.setPace()
	decision := s.o.Robots.Decide(record, h.active.polite.Delay(now), now)
	switch {
	case s.holdsOrigin(decision, rules):
		q.hold(decision, s.instant(decision.Until))
		if h.failingSince == never {
			h.failingSince = s.instant(now)
		}
	case record.Class != robots.ClassUnreachable:
		h.failingSince = never
	}
	return h
}

// holdsOrigin reports whether nothing of an origin may be fetched.
func (b *base) holdsOrigin(s robots.Decision, rules *robots.Rules) bool {
	return b.o.Obey && (s.Kind == robots.DecisionHold || rules.DisallowsAll())
}

// setPace puts in force the crawl delays and hours that the robots.txt files of all the host's
// origins demand. While one of them is unknown, the demands of before count as well.
func (h *host) setPace() {
	a := h.active
	var pace politeness.Demands
	all := true
	for i := range a.queues {
		q := &a.queues[i]
		if !q.known || q.rules == nil {
			all = false
			continue
		}
		pace = pace.Merge(paceOf(q.rules.Pace(), q.Origin()))
	}
	if !all {
		pace = pace.Merge(a.polite.Demands())
	}
	a.polite.SetDemands(pace)
}

// paceOf is what one robots.txt demands, in the types of politeness.
func paceOf(p robots.Pace, origin uint8) politeness.Demands {
	line := func(n int) politeness.Line { return politeness.Line{Origin: origin, Number: uint32(n)} }
	a := politeness.Demands{Delay: p.Delay, Rate: p.Rate, Line: line(p.Line)}
	for _, r := range p.Rates {
		a.Rates = append(a.Rates, politeness.Rate{Window: window(r.Window), Delay: r.Delay, Line: line(r.Line)})
	}
	for _, v := range p.Visits {
		a.Visits = append(a.Visits, politeness.Visit{Window: window(v.Window), Line: line(v.Line)})
	}
	return a
}

func window(w robots.Window) politeness.Window {
	from, to := w.Minutes()
	return politeness.Window{From: uint16(from), To: uint16(to)}
}

// Recheck is the task to match the denied URLs of an origin against its new rules.
type Recheck struct {
	Host   storage.HostID
	Origin uint8 // index among the host's origins
	Rules  *robots.Rules
}

// TakeRechecks returns the rechecks since the last call. Their owner sweeps the host's URLs and
// commits those that the rules now allow as Retrying and due.
func (f *Frontier) TakeRechecks() []Recheck {
	r := f.results.rechecks
	f.results.rechecks = nil
	return r
}

// rulesChanged reports whether a record has other rules than the one before. If there was none
// before, no URL was denied.
func rulesChanged(before, after *robots.Record) bool {
	if before.Copy == robots.ClassNone || after.Class == robots.ClassUnreachable {
		return false
	}
	return before.Copy != after.Copy || !bytes.Equal(before.Body, after.Body)
}

// If a robots.txt redirects, the host that the redirect leads to gets a robots job. It serves the
// job under its own politeness and before its own URLs, because the queue of another host waits for
// it. Any number of hosts may redirect to one. So the jobs of others get one request in jobShare,
// unless the host has nothing else to do, and at most maxJobs of them wait: for the rest,
// robots.txt is unreachable for a while.
const (
	maxJobs  = 16
	jobShare = 5
)

// isForeign reports whether a job is that of another host than the one that serves it.
func (e *pendingJob) isForeign(server *host) bool { return e.job.Owner != server.id }

// addJobs gives jobs to a host. Its own come first.
func (s *scheduler) addJobs(h *host, jobs []pendingJob, now time.Time) {
	list := s.jobs.dormant[h.id]
	if h.active != nil {
		list = h.active.jobs
	}
	for _, e := range jobs {
		others := countForeign(list, h)
		switch {
		case !e.isForeign(h):
			list = slices.Insert(list, len(list)-others, e)
		case others >= maxJobs:
			s.failJob(h, &e, robots.FailureTargetBusy, now)
		default:
			list = append(list, e)
		}
	}
	switch {
	case h.active != nil:
		h.active.jobs = list
	case len(list) > 0:
		s.jobs.dormant[h.id] = list
	}
}

// countForeign counts the jobs of others, which come after the host's own.
func countForeign(list []pendingJob, server *host) int {
	i := slices.IndexFunc(list, func(e pendingJob) bool { return e.isForeign(server) })
	if i < 0 {
		return 0
	}
	return len(list) - i
}

// leaseJob leases the first job of a host if it is its turn or the host has nothing else to do;
// else it returns nil.
func (t *turn) leaseJob(idle bool) *outstanding {
	a := t.host.active
	if len(a.jobs) == 0 {
		return nil
	}
	e := a.jobs[0]
	if e.job.isVisit() {
		a.jobs = a.jobs[1:]
		return t.leaseVisit(&e)
	}
	if e.isForeign(t.host) {
		if !idle && a.sinceForeignJob < jobShare-1 {
			return nil
		}
		a.sinceForeignJob = 0
	}
	a.jobs = a.jobs[1:]
	return t.s.leases.robots(t, e.url, &e.job)
}

// forwardJob passes a job on to the host that a redirect leads to. from is the host that has served it
// before; nil: another shard has.
func (s *scheduler) forwardJob(from *host, e pendingJob, now time.Time) {
	name := e.url.Host()
	switch {
	case s.o.Owns != nil && !s.o.Owns(name):
		s.jobs.query(e)
	case from != nil && name == from.active.name:
		s.addJobs(from, []pendingJob{e}, now)
	case len(s.jobs.byName[name]) >= maxJobs:
		s.failJob(from, &e, robots.FailureTargetBusy, now)
	default:
		s.jobs.byName[name] = append(s.jobs.byName[name], e)
		s.results.batch.Ensure = append(s.results.batch.Ensure, name)
	}
}

// deliverJobs gives jobs to a host that has an id now.
func (s *scheduler) deliverJobs(name string, id storage.HostID, now time.Time) {
	jobs := s.jobs.byName[name]
	delete(s.jobs.byName, name)
	for i := range jobs {
		if jobs[i].job.Visit != nil && jobs[i].job.Owner == storage.NoHost {
			jobs[i].job.Owner = id
		}
	}
	h := s.hosts.ensure(id)
	s.addJobs(h, jobs, now)
	s.schedule(h, s.instant(now))
}

// failJobs fails the jobs of a host whose name has no address.
func (s *scheduler) failJobs(h *host, end time.Time) {
	jobs := h.active.jobs
	h.active.jobs = nil
	for i := range jobs {
		s.failJob(h, &jobs[i], robots.FailureDNS, end)
	}
}

// failJob fails a job: for its owner robots.txt is unreachable.
func (s *scheduler) failJob(server *host, e *pendingJob, why robots.Failure, end time.Time) {
	out := robots.Outcome{URL: e.url.String(), Redirects: e.job.Hops, Failure: why, Jitter: s.jitter()}
	if e.job.IsQuery() {
		s.jobs.answer(&e.job, RobotsAnswer{Outcome: out})
		return
	}
	record, _ := s.o.Robots.Next(e.job.Previous, out, end)
	s.jobDone(s.setRecord(e.job, &RobotsReport{
		RequestEnd: RequestEnd{Report: Report{End: end}}, Record: record, Rules: s.copyRules(e.job, &record),
	}), server, end)
}

// copyRules are the rules of the stored copy of a robots.txt that could not be fetched. If the
// queue has them, they are compiled already.
func (s *scheduler) copyRules(job RobotsJob, record *robots.Record) *robots.Rules {
	if q := s.hosts.get(job.Owner).queueOf(job.Origin); q != nil && q.known {
		return q.rules
	}
	return record.Rules(s.o.Tokens...)
}

// pendingJob is a robots job that waits for its turn.
type pendingJob struct {
	url weburl.URL
	job RobotsJob
}

// In a cluster a robots.txt may redirect to a host of another shard. Only the owner of that shard makes
// requests to the host. So the job waits here while the owner is queried. There it is a job without a host
// of its own, which gets its turn like the jobs of other hosts; what the request brings goes back.
