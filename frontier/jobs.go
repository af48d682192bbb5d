package frontier

import (
	"slices"
	"time"

	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// A robots.txt that redirects is a job for the host that the redirect leads to: it is fetched under
// the politeness of that host, and ahead of its URLs because the queue of another host waits for
// it. Any number of hosts may redirect to one. So the jobs of others get one request in jobShare
// that the host serves, unless it has nothing else to do, and only maxJobs of them wait for it: for
// the rest, robots.txt is unreachable for a while.
const (
	maxJobs  = 16
	jobShare = 5
)

// foreign reports whether a job is that of another host than the one that serves it.
func (e *pendingJob) isForeign(server *host) bool { return e.job.Owner != server.id }

// addJobs gives a host jobs to serve. Its own come first.
func (f *Frontier) addJobs(h *host, jobs []pendingJob, now time.Time) {
	list := f.dormantJobs[h.id]
	if h.active != nil {
		list = h.active.jobs
	}
	for _, e := range jobs {
		others := countForeign(list, h)
		switch {
		case !e.isForeign(h):
			list = slices.Insert(list, len(list)-others, e)
		case others >= maxJobs:
			f.failJob(h, &e, robots.FailureCrowded, now)
		default:
			list = append(list, e)
		}
	}
	switch {
	case h.active != nil:
		h.active.jobs = list
	case len(list) > 0:
		f.dormantJobs[h.id] = list
	}
}

// countForeign counts the jobs of others, which are behind the host's own.
func countForeign(list []pendingJob, server *host) int {
	i := slices.IndexFunc(list, func(e pendingJob) bool { return e.isForeign(server) })
	if i < 0 {
		return 0
	}
	return len(list) - i
}

// firstJob is where a job goes that could not be served: before all others of its kind.
func (a *active) jobPosition(h *host, job *RobotsJob) int {
	if job.Owner == h.id {
		return 0
	}
	return len(a.jobs) - countForeign(a.jobs, h)
}

// takeJob leases the first job of a host, if it is its turn or nothing else is to be done; nil: it
// is not.
func (f *Frontier) leaseJob(h *host, idle bool, now time.Time) *outstanding {
	a := h.active
	if len(a.jobs) == 0 {
		return nil
	}
	e := a.jobs[0]
	if e.isForeign(h) {
		if !idle && a.sinceForeignJob < jobShare-1 {
			return nil
		}
		a.sinceForeignJob = 0
	}
	a.jobs = a.jobs[1:]
	return f.leaseRobots(h, e.url, &e.job, now)
}

// forward hands a job to the host that a redirect leads to.
func (f *Frontier) forwardJob(from *host, e pendingJob, now time.Time) {
	name := e.url.Host()
	switch {
	case name == from.active.name:
		f.addJobs(from, []pendingJob{e}, now)
	case len(f.jobsByName[name]) >= maxJobs:
		f.failJob(from, &e, robots.FailureCrowded, now)
	default:
		f.jobsByName[name] = append(f.jobsByName[name], e)
		f.out.Ensure = append(f.out.Ensure, name)
	}
}

// deliver gives the jobs for a host to it, now that it has an id.
func (f *Frontier) deliverJobs(name string, id storage.HostID, now time.Time) {
	jobs := f.jobsByName[name]
	delete(f.jobsByName, name)
	h := f.host(id)
	f.addJobs(h, jobs, now)
	f.schedule(h, f.instant(now))
}

// failJobs answers the jobs that a host cannot serve because its name leads nowhere.
func (f *Frontier) failJobs(h *host, end time.Time) {
	jobs := h.active.jobs
	h.active.jobs = nil
	for i := range jobs {
		f.failJob(h, &jobs[i], robots.FailureDNS, end)
	}
}

// failJob answers a job that the host cannot serve: for its owner robots.txt is unreachable.
func (f *Frontier) failJob(server *host, e *pendingJob, why robots.Failure, end time.Time) {
	out := robots.Outcome{URL: e.url.String(), Redirects: e.job.Hops, Failure: why, Jitter: f.jitter()}
	record, _ := f.o.Robots.Next(e.job.Previous, out, end)
	f.jobDone(f.setRecord(e.job, record, f.copyRules(e.job, &record), end), server, end)
}

// keptRules are the rules of a robots.txt that could not be fetched: those of its copy, where there
// is one. They are compiled already.
func (f *Frontier) copyRules(job RobotsJob, record *robots.Record) *robots.Rules {
	if q := f.hosts.get(job.Owner).queueOf(job.Origin); q != nil && q.known {
		return q.rules
	}
	return record.Rules(f.o.Tokens...)
}
