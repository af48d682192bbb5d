package frontier

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Command is a command of the operator about one host.
type Command struct {
	Kind  CommandKind
	Until time.Time     // of CommandPause: when the pause ends; zero: at CommandResume
	Delay time.Duration // of CommandDelay: replaces the configured delay; 0: the configured one counts again
}

// CommandKind says what a Command does.
type CommandKind uint8

// The kinds of commands.
const (
	CommandPause  CommandKind = iota // fetch nothing from the host for a while; the last one counts
	CommandResume                    // end its pause
	CommandDelay                     // set its delay; the delays that the host demands still count
	// CommandForget forgets what was learned of it: backoff, failures, a wall, how long its
	// robots.txt is valid. Its holds stay.
	CommandForget
)

// String returns the name of the kind for logs.
func (k CommandKind) String() string { return [...]string{"pause", "resume", "delay", "forget"}[k] }

// commands are what the operator wants of hosts whose last state a load may not bring.
type commands struct {
	*base
	results  *results
	recrawls *recrawlPlan
	pending  map[storage.HostID]*pendingCommands
	drops    map[storage.HostID]*drop
}

// Control applies a command. stored is the host as committed. records are the robots records of its
// origins, in the order of stored.Queues; only CommandForget needs them. The command is part of the
// next batch. The error is that of a stored politeness that cannot be decoded.
func (f *Frontier) Control(stored *storage.Host, records []robots.Record, o Command, now time.Time) error {
	f.readClock(now)
	h := f.hosts.ensure(stored.ID)
	if a := h.active; a != nil && a.loaded {
		f.commands.applyCommand(h, o, now)
		f.schedule(h, f.instant(now))
		return nil
	}
	// The host is not in memory or is being loaded, so nothing of it is uncommitted and the stored
	// state is complete.
	state, err := politeness.DecodeState(stored.Politeness)
	if err != nil {
		return fmt.Errorf("host %s: %w", stored.Name, err)
	}
	f.budgets.setName(h, stored.Name, 0)
	if o.Kind == CommandDelay && (h.waitReason == politeness.ReasonDelay || h.waitReason == politeness.ReasonSetDelay) {
		h.ready = always // it waits by the delay that is about to change; the time of its last request is in the state
	}
	polite := f.restorePoliteness(new(politeness.Host), state, h, now)
	if pending := f.commands.pending[h.id]; pending != nil { // they may not be on disk
		for _, earlier := range pending.commands {
			applyToPoliteness(polite, earlier, now)
		}
	}
	applyToPoliteness(polite, o, now)
	if o.Kind == CommandForget {
		h.forgetFailures()
		for i := range records {
			f.results.storeRecord(storage.Policy{Origin: stored.Queues[i].Origin}, records[i].Forget(), nil)
		}
	}
	encoded, _ := polite.State(now).AppendBinary(nil) // its error is always nil
	u := storage.HostUpdate{Host: h.id, Politeness: encoded}
	if o.Kind == CommandForget {
		u.Wall = []byte{}
	}
	f.results.batch.Hosts = append(f.results.batch.Hosts, u)
	h.workAt = always
	f.saveTimes(h, polite, h.closed.wall())
	f.gate.tellStored(stored.Name, polite)
	if f.commands.pending[h.id] == nil {
		f.commands.pending[h.id] = new(pendingCommands)
	}
	f.commands.pending[h.id].commands = append(f.commands.pending[h.id].commands, o)
	f.commands.pending[h.id].uncommitted++
	f.schedule(h, f.instant(now))
	return nil
}

// pendingCommands are commands for a host that was not in memory. They are kept as long as a load
// may return an older state of the host.
type pendingCommands struct {
	commands    []Command
	uncommitted int // host updates of these commands that are not on disk yet
}

// applyCommands applies the commands that were given before the host was loaded once more.
func (c *commands) applyCommands(h *host, now time.Time) {
	if pending := c.pending[h.id]; pending != nil {
		for _, o := range pending.commands {
			c.applyCommand(h, o, now)
		}
		c.forget(h)
	}
}

// forget drops commands that every later load includes.
func (c *commands) forget(h *host) {
	opening := h.active != nil && !h.active.loaded
	if !opening && c.pending[h.id].uncommitted == 0 {
		delete(c.pending, h.id)
	}
}

// applyCommand applies a command to a host that is in memory.
func (c *commands) applyCommand(h *host, o Command, now time.Time) {
	a := h.active
	applyToPoliteness(&a.polite, o, now)
	if o.Kind == CommandForget {
		h.forgetFailures()
		a.failUntil, a.expires, a.wall = always, always, wall.State{}
		for i := range a.queues {
			q := &a.queues[i]
			q.setRules(q.record.Forget(), q.rules)
			q.heldUntil = always
			if q.known {
				c.results.storeRecord(storage.Policy{Origin: q.origin}, *q.record, nil)
			}
		}
	}
	c.results.update(h, now, 0, 0)
}

// applyToPoliteness applies the part of a command that belongs to politeness.
func applyToPoliteness(polite *politeness.Host, o Command, now time.Time) {
	switch o.Kind {
	case CommandPause:
		polite.Pause(now, o.Until)
	case CommandResume:
		polite.Resume()
	case CommandDelay:
		polite.SetDelay(o.Delay)
	case CommandForget:
		polite.Forget()
	}
}

// forgetFailures drops what failures of a host led to outside of politeness.
func (h *host) forgetFailures() {
	h.failingSince, h.absent, h.noLookupUntil, h.robotsReason = never, 0, 0, robots.ReasonNone
	h.closed = newClosed(wall.KindNone, h.closed.parked())
}

// drop excludes the URLs of a host that wait, on behalf of the operator. The owner of the store
// excludes what waits on disk, and the frontier what is in memory.
type drop struct {
	below   uint32 // of ordinals below this one
	deleted bool   // these URLs are deleted, also those to recrawl
	done    bool   // the store has none of them any more
}

// Drop excludes the URLs of a host that wait and have an ordinal below the given one. Those in
// memory are excluded at once, and those that are loaded later, or come back from a lease, until
// the caller has excluded them in the store and calls Dropped. Requests in flight are completed.
func (f *Frontier) Drop(id storage.HostID, below uint32, now time.Time) {
	f.beginDrop(id, drop{below: below}, now)
}

// Delete is Drop for URLs that the caller deletes: pages to recrawl are dropped too, and outcomes of
// the URLs may come after they are deleted.
func (f *Frontier) Delete(id storage.HostID, below uint32, now time.Time) {
	f.beginDrop(id, drop{below: below, deleted: true}, now)
}

func (f *Frontier) beginDrop(id storage.HostID, d drop, now time.Time) {
	h := f.hosts.ensure(id)
	f.commands.drops[id] = &d
	f.commands.applyDrop(h, now)
	f.schedule(h, f.instant(now))
}

// Dropped says that no URL below an ordinal that was given to Drop waits in the store any more.
func (f *Frontier) Dropped(id storage.HostID, below uint32, now time.Time) {
	if d := f.commands.drops[id]; d != nil && d.below <= below {
		d.done = true
		f.commands.applyDrop(f.hosts.ensure(id), now)
	}
}

// DropMatters returns the states of URLs that a drop excludes.
func DropMatters() storage.States { return storage.In(storage.Queued, storage.Retrying) }

// DropOutcome returns the outcome of a URL that a drop excludes.
func DropOutcome(now time.Time) storage.Outcome {
	return storage.Outcome{State: storage.Excluded, Reason: storage.ReasonOperator, At: now}
}

// applyDrop excludes what is in memory of a host. A drop that is done is forgotten when nothing can
// arrive any more that was read before it.
func (c *commands) applyDrop(h *host, now time.Time) {
	d, a := c.drops[h.id], h.active
	if d == nil {
		return
	}
	if d.done && (a == nil || !a.loading && a.inFlight+a.reading+int(a.matching) == 0) {
		defer delete(c.drops, h.id)
	}
	if a == nil || !a.loaded {
		return
	}
	recorded := len(c.results.batch.Done)
	for i := range a.queues {
		c.dropQueue(h, &a.queues[i], d, now)
	}
	if len(c.results.batch.Done) > recorded {
		c.results.update(h, now, 0, 0)
	}
}

func (c *commands) dropQueue(h *host, q *originQueue, d *drop, now time.Time) {
	dropped := q.DropBelow(d.below, func(last *storage.Outcome) bool {
		isPutBack := d.done && last.Reason == storage.ReasonOperator // after the drop
		return isPutBack || !DropMatters().Has(last.State)
	})
	if d.deleted {
		dropped = append(dropped, q.DropRecrawlsBelow(d.below)...)
	}
	for i := range dropped {
		h.active.busy.Add(dropped[i].Ordinal)
		o := DropOutcome(now)
		c.recrawls.keepHistory(h, &dropped[i], &o)
		c.results.recordOutcome(h, &dropped[i], o)
	}
}

// PutBack returns the outcome that puts a URL back into its queue, due at once. It keeps what is known of the page.
func PutBack(last storage.Outcome, now time.Time) storage.Outcome {
	last.State, last.Reason, last.Line, last.Attempts, last.Due = storage.Retrying, storage.ReasonOperator, 0, 0, now
	return last
}

// CanDrop returns the states of URLs that the operator can leave out.
func CanDrop() storage.States {
	return CanPutBack()&^storage.In(storage.Excluded) | storage.In(storage.Queued, storage.Fetched)
}

// LeaveOut returns the outcome of a URL that the operator leaves out for good. It keeps what is known of the page,
// but for its recrawls.
func LeaveOut(last storage.Outcome, now time.Time) storage.Outcome {
	last.State, last.Reason, last.Line, last.Attempts = storage.Excluded, storage.ReasonOperator, 0, 0
	last.At, last.Due, last.History = now, time.Time{}, recrawl.History{}
	return last
}

// CanPutBack returns the states of URLs that can be put back into their queue. Fetched is not one
// of them, because those pages are recrawled.
func CanPutBack() storage.States {
	return storage.In(storage.Redirected, storage.Failed, storage.Denied, storage.Excluded, storage.Retrying)
}

// forgetName forgets the last lookup of a host's name, so that URLs which were put back do not fail
// because of an earlier answer.
func (r *register) forgetName(id storage.HostID) {
	h := r.get(id)
	if h == nil {
		return
	}
	h.absent, h.noLookupUntil, h.lookup = 0, 0, notLookedUp
	if h.active != nil {
		h.active.failUntil = always
	}
}

// An opt-out is part of the scope, because all that adds or fetches URLs checks that. In addition to
// each URL, it decides about requests that are for no URL of a queue: those for a robots.txt, and all
// requests to an address.

// applyOptOuts puts other opt-outs in force for all active hosts. Others find them in force when they become active.
func (f *Frontier) applyOptOuts() {
	now := f.instant(f.clock)
	for h := range f.hosts.all {
		a := h.active
		if a == nil || !a.loaded {
			continue
		}
		f.setOptedOut(a)
		if a.failReason == storage.ReasonOptOut {
			a.failUntil, a.failReason = always, storage.ReasonNone
		}
		_, covers := f.scope.optOuts.Addr(a.pinned, time.Time{})
		if covers || a.optedOut {
			f.leaveLimits(h, now)
		}
		if covers {
			h.setLimit(byAddress, nil) // its name is looked up again
		}
		f.schedule(h, now)
	}
}

// leaveLimits gives up what an active host waits for among the shared limits, and what it has reserved:
// no turn there may lead to a request.
func (s *scheduler) leaveLimits(h *host, now instant) {
	if h.state == limited {
		for _, l := range h.active.limits {
			if l != nil {
				for i := range l.waiters {
					l.waiters[i] = slices.DeleteFunc(l.waiters[i], func(w *host) bool { return w == h })
				}
			}
		}
		h.state = empty
	}
	s.releaseReserved(h, now)
}

// setOptedOut determines which queues of a host opted out.
func (b *base) setOptedOut(a *active) {
	a.optedOut = false
	for i := range a.queues {
		q := &a.queues[i]
		q.optedOut = b.scope.isOptedOut(q.origin.URL("/robots.txt"))
		a.optedOut = a.optedOut || q.optedOut
	}
}

// failOptedOutJobs fails the jobs of a host for a robots.txt that may not be fetched.
func (s *scheduler) failOptedOutJobs(h *host, now instant) {
	a := h.active
	if s.scope.optOuts.Len() == 0 || len(a.jobs) == 0 {
		return
	}
	covered := func(e pendingJob) bool { return s.scope.isOptedOut(e.url) || s.scope.isOptedOut(e.job.Origin.URL("/")) }
	if !slices.ContainsFunc(a.jobs, covered) {
		return
	}
	jobs := a.jobs
	a.jobs = nil
	for i := range jobs {
		if covered(jobs[i]) {
			s.failJob(h, &jobs[i], robots.FailureBlocked, s.time(now))
		} else {
			a.jobs = append(a.jobs, jobs[i])
		}
	}
}

// leaveOut removes the addresses that opted out from an answer. If none is left, nothing of the host may be fetched.
func (r *ResolveReport) leaveOut(list *optout.List) {
	if list.Len() == 0 || len(r.Addresses) == 0 {
		return
	}
	isOut := func(a netip.Addr) bool {
		_, is := list.Addr(a, time.Time{})
		return is
	}
	r.Addresses = slices.DeleteFunc(slices.Clone(r.Addresses), isOut)
	if len(r.Addresses) == 0 {
		r.Final, r.Absent, r.Reason = true, false, storage.ReasonOptOut
	}
}
