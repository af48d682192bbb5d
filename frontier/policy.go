package frontier

import (
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// CompleteRobots ends a Robots lease.
func (f *Frontier) CompleteRobots(id uint64, r RobotsReport) error {
	out, err := f.endLease(id, Robots)
	if err != nil {
		return err
	}
	f.endRequest(out, &r.Report)
	h, job := out.host, out.lease.Robots
	owner := h
	switch {
	case !r.answered():
		h.active.jobs = slices.Insert(h.active.jobs, h.active.jobPosition(h, &job), pendingJob{out.lease.URL, job})
	case !r.Redirect.IsZero():
		job.Hops++
		f.forwardJob(h, pendingJob{r.Redirect, job}, r.End)
	default:
		owner = f.setRecord(job, r.Record, r.Rules, r.End)
		f.shareRecord(h, out.lease.URL, job, &r)
	}
	if r.Sent {
		f.update(h, r.End, 1, r.Bytes)
	}
	f.schedule(h, f.instant(r.End))
	f.jobDone(owner, h, r.End)
	return nil
}

// shareRules spares the host that has served an errand a second request for the same file: where a redirect led to the
// robots.txt of an origin of its own, what came counts for that origin as well.
func (f *Frontier) shareRecord(h *host, from weburl.URL, job RobotsJob, r *RobotsReport) {
	q := h.queueOf(from.Origin())
	final := r.Record.Class == robots.ClassFound || r.Record.Class == robots.ClassUnavailable && r.Record.Status/100 == 4
	if q == nil || q.fetchingRobots || from.Origin() == job.Origin || from.RequestURI() != "/robots.txt" || !final {
		return
	}
	record := r.Record
	record.Redirects = 0
	f.setRecord(RobotsJob{Origin: q.origin, Owner: h.id, Previous: q.record}, record, r.Rules, r.End)
}

// answersElsewhere reports whether another origin of the host has a robots.txt that can be asked for.
func (a *active) otherOriginAnswers(q *originQueue) bool {
	for i := range a.queues {
		if other := &a.queues[i]; other != q && other.known && other.record.Class != robots.ClassUnreachable {
			return true
		}
	}
	return false
}

// settled goes on with the owner of an errand that another host has served.
func (f *Frontier) jobDone(owner, server *host, now time.Time) {
	if owner == nil || owner == server || owner.active == nil {
		return
	}
	f.update(owner, now, 0, 0)
	f.schedule(owner, f.instant(now))
}

// setPolicy records what robots.txt came to and puts it in force. It returns
// the host whose origin it is for.
func (f *Frontier) setRecord(job RobotsJob, record robots.Record, rules *robots.Rules, now time.Time) *host {
	f.storeRecord(storage.Policy{Origin: job.Origin}, record)
	h := f.hosts.get(job.Owner)
	q := h.queueOf(job.Origin)
	if q == nil {
		return h
	}
	if rulesChanged(&job.Previous, &record) {
		f.rechecks = append(f.rechecks, Recheck{Host: h.id, Origin: uint8(h.active.originIndex(job.Origin)), Rules: rules})
	}
	q.fetchingRobots, q.known, q.heldUntil, q.record, q.rules, q.verdict = false, true, always, record, rules, workerVerdict{}
	f.updateBytes(h)
	f.setPace(h)
	decision := f.o.Robots.Standing(record, h.active.polite.Delay(now), now)
	switch {
	case f.holdsOrigin(decision, rules):
		q.hold(decision, f.instant(decision.Until))
		if h.failingSince == never {
			h.failingSince = f.instant(now)
		}
	case record.Class != robots.ClassUnreachable:
		h.failingSince = never
	}
	return h
}

// closes reports whether nothing of an origin may be asked.
func (f *Frontier) holdsOrigin(s robots.Standing, rules *robots.Rules) bool {
	return f.o.Obey && (s.Kind == robots.StandingHold || rules.DisallowsAll())
}

func (h *host) queueOf(o weburl.Origin) *originQueue {
	if h == nil || h.active == nil {
		return nil
	}
	if i := h.active.originIndex(o); i >= 0 {
		return &h.active.queues[i]
	}
	return nil
}

// originIndex is the place of an origin among the host's; -1 if it has none.
func (a *active) originIndex(o weburl.Origin) int {
	for i := range a.queues {
		if a.queues[i].origin == o {
			return i
		}
	}
	return -1
}
