package crawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/storage"
)

// stallCheckEvery is how often the dispatcher looks for requests that others should not wait for.
const stallCheckEvery = 250 * time.Millisecond

// flight is a lease while a worker has it.
type flight struct {
	offset   uint64 // in the start ledger
	progress fetch.Progress
	ctx      context.Context         // of the request and of all that is done with its response
	end      context.CancelCauseFunc // nil for a lookup
}

// flights are the leases that workers have, by lease.
type flights struct {
	all     map[uint64]*flight
	checkAt time.Time // the next look for stalled requests; zero: there are no requests
}

// add starts a flight.
func (f *flights) add(ctx context.Context, res *result, offset uint64, now time.Time) {
	res.offset = offset
	res.ctx, res.end = context.WithCancelCause(ctx)
	f.all[res.lease.ID] = &res.flight
	if f.checkAt.IsZero() {
		f.checkAt = now.Add(stallCheckEvery)
	}
}

// remove ends a flight.
func (f *flights) remove(res *result) {
	if res.end != nil {
		delete(f.all, res.lease.ID)
		res.end(nil)
	}
}

// settled returns the offset in the ledger before which every request has ended, given that of the
// ledger's end.
func (f *flights) completedOffset(end uint64) uint64 {
	for _, fl := range f.all {
		end = min(end, fl.offset)
	}
	return end
}

// breakOffStalled breaks off requests that bring next to nothing while other hosts wait for a
// worker. It does not while nothing may be given out anyhow.
func (d *dispatcher) breakOffStalled(now time.Time) {
	d.flights.checkAt = time.Time{}
	if len(d.flights.all) == 0 {
		return
	}
	d.flights.checkAt = now.Add(stallCheckEvery)
	if d.isPaused() {
		return
	}
	slow := func(id uint64, lasts, stallTime time.Duration) bool {
		return d.connections.IsSlow(&d.flights.all[id].progress, lasts, stallTime)
	}
	for _, id := range d.f.Stalled(now, slow) {
		d.flights.all[id].end(fetch.ErrTooSlow)
	}
}

// complete applies the result of a lease.
func (d *dispatcher) complete(res *result) {
	l := &res.lease
	if l.Kind == frontier.Resolve {
		d.lookups--
	} else {
		d.busy--
	}
	d.flights.remove(res)
	d.requests.complete(res)
	var err error
	switch l.Kind {
	case frontier.Resolve:
		err = d.f.CompleteResolve(l.ID, res.resolve)
	case frontier.Robots:
		d.enterWait(l, &res.robots.Report)
		err = d.f.CompleteRobots(l.ID, res.robots)
		d.pending.add(res)
	case frontier.Page:
		err = d.completePage(res)
	case frontier.Match:
		if res.match.Crashed {
			d.markCrash(l.Host)
		}
		err = d.f.CompleteMatch(l.ID, res.match)
	}
	if err != nil {
		d.fail(fmt.Errorf("complete %s of %s: %w", l.Kind, l.URL, err))
	}
	d.collect()
}

func (d *dispatcher) completePage(res *result) error {
	l := &res.lease
	d.pages--
	if res.page.Outcome.State == storage.Fetched {
		d.pending.pages++
		d.uncommitted++
	}
	d.enterWait(l, &res.page.Report)
	d.addScopeSeed(res)
	if res.page.Outcome.Reason == storage.ReasonCrash {
		d.markCrash(l.Host)
	}
	err := d.f.CompletePage(l.ID, res.page)
	d.pending.add(res)
	d.bodies.add(res)
	return err
}

// enterWait writes a Retry-After into the ledger: it holds even if this process ends before the
// response is committed.
func (d *dispatcher) enterWait(l *frontier.Lease, report *frontier.Report) {
	if !report.Sent || report.RetryAfter <= l.Delay {
		return
	}
	err := d.ledger.AppendWait(storage.Wait{Host: l.HostName, At: report.End, Wait: report.RetryAfter})
	if err != nil && !errors.Is(err, storage.ErrNoSpace) { // on a full disk no request begins before the commit
		d.fail(err)
	}
}

// addScopeSeed widens the scope by where a seed's redirect led.
func (d *dispatcher) addScopeSeed(res *result) {
	if res.scopeSeed.IsZero() {
		return
	}
	target := res.scopeSeed.String()
	d.setScope(d.f.Scope().With(res.scopeSeed))
	d.pending.rows.ScopeSeeds = append(d.pending.rows.ScopeSeeds, target)
	d.log.Info("a seed redirects; its target becomes a scope seed", "seed", res.lease.URL.String(), "target", target)
}

// markCrash stores the version that crashed at a URL of a host, in the commit of the URL's outcome.
func (d *dispatcher) markCrash(host storage.HostID) {
	d.pending.setMark(crashMark(host), []byte(d.o.Version))
}

// notSent ends a lease that never reached a worker.
func (d *dispatcher) notSent(l *frontier.Lease, now time.Time) {
	report := frontier.Report{End: now}
	var err error
	if l.Kind == frontier.Robots {
		err = d.f.CompleteRobots(l.ID, frontier.RobotsReport{Report: report})
	} else {
		err = d.f.CompletePage(l.ID, frontier.PageReport{Report: report})
	}
	if err != nil {
		d.fail(err)
	}
	d.collect()
}

// nextLoads returns the channel and the requests to offer to the loader.
func (d *dispatcher) nextLoads() (chan<- []frontier.LoadRequest, []frontier.LoadRequest) {
	if len(d.loads) == 0 {
		return nil, nil
	}
	return d.toLoad, d.loads
}

// takeLoad applies what the loader read.
func (d *dispatcher) takeLoad(l *load) {
	d.loading--
	if l.err == nil {
		l.err = d.f.Loaded(&l.load, d.o.Now())
	} else {
		d.f.LoadFailed(l.load.Host.ID, d.o.Now())
	}
	if l.err != nil {
		d.fail(fmt.Errorf("read the queue of host %d: %w", l.load.Host.ID, l.err))
	}
	d.collect()
}
