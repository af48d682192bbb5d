package frontier

import (
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Visit is a request that somebody watches, for a URL that need not be one of the frontier. It is a robots job: the
// host makes the request before its own URLs, under the same limits. Its owner submits two jobs. The job of a Visit
// without Rules fetches the robots.txt of the origin, for the host. That of a Visit with the Rules that allow the URL
// is the request itself: a Visited lease. If the robots.txt has to be fetched again when its turn comes, no request is
// made, and the answer is empty.
type Visit struct {
	Verdict robots.Verdict // of Rules, about the URL
	Rules   *robots.Rules
	Policy  *robots.Record // that the rules come from
	Watcher any            // whatever its owner needs of the lease
	isPaced bool           // what Rules demand is in force
}

// isVisit reports whether the job is the request of a visit.
func (j *RobotsJob) isVisit() bool { return j.Visit != nil && j.Visit.Rules != nil }

// paceVisit puts in force what the robots.txt of the next visit demands of a host that has no URL of its origin.
func (b *base) paceVisit(h *host) {
	if len(h.active.jobs) == 0 || !h.active.jobs[0].job.isVisit() {
		return
	}
	v := h.active.jobs[0].job.Visit
	if !v.isPaced && h.queueOf(h.active.jobs[0].job.Origin) == nil {
		h.active.polite.SetDemands(paceOf(v.Rules.Pace(), 0).Merge(h.active.polite.Demands()))
	}
	v.isPaced = true
}

// leaseVisit leases the request of a visit. nil: its robots.txt has to be fetched again.
func (t *turn) leaseVisit(e *pendingJob) *outstanding {
	v := e.job.Visit
	d := t.s.o.Robots.Decide(*v.Policy, t.polite.Delay, t.now)
	if !t.s.o.NoRobots && d.Kind != robots.DecisionMatch {
		t.s.jobs.answer(&e.job, RobotsAnswer{})
		return nil
	}
	out := t.s.leases.request(t, Visited, e.url)
	l := &out.lease
	l.Robots, l.Verdict, l.Rules, l.Policy = &e.job, v.Verdict, v.Rules, v.Policy
	l.Head = storage.Head{Entry: storage.Entry{RequestURI: e.url.RequestURI(), ViaHost: storage.NoHost}}
	return out
}
