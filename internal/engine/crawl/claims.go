//go:build !core

package crawl

import (
	"context"
	"errors"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/storage"
)

// claims are reports on their way to their leases.
type claims struct {
	all  []claim
	err  error
	done chan struct{} // closed by the dispatcher when all have a result
}

// claim is one report.
type claim struct {
	report    *remote.Report
	at        storage.Position // of its URL, if it names no lease
	open      bool             // the dispatcher has not decided about it
	result    remote.Result
	res       *work.Result // whose work is left to do; nil: there is none
	committed chan error   // holds one; nil: nothing is committed
}

// claim finds the leases of reports, or waits until all of their hosts are loaded.
func (ld *lender) claim(c *claims) {
	for i := range c.all {
		if x, _ := ld.remote.find(&c.all[i]); x != nil {
			if _, loaded := ld.f.LeaseOf(x.FrontierID); !loaded {
				ld.remote.parked = append(ld.remote.parked, c)
				return
			}
		}
	}
	defer close(c.done)
	now := ld.o.Now()
	ld.runOut(now)
	for i := range c.all {
		ld.claimOne(&c.all[i], now)
	}
}

// find returns the lease that a report is for; nil: none is out.
func (r *remoteLeases) find(c *claim) (x *remote.Held, wasOut bool) {
	switch {
	case !c.open:
		return nil, false
	case c.report.ID != "":
		return r.Find(string(c.report.ID))
	}
	return r.OfURL(c.at), false
}

// claimOne decides about one report.
func (ld *lender) claimOne(c *claim, now time.Time) {
	r := &ld.remote
	f := r.Fetcher(c.report.Fetcher, now)
	x, wasOut := r.find(c)
	if c.open {
		c.result = f.Judge(c.report, x, wasOut)
	}
	if c.open = false; c.result != remote.Accepted {
		f.Refused++
		return
	}
	l, _ := ld.f.LeaseOf(x.FrontierID)
	c.committed = make(chan error, 1)
	took := now.Sub(x.Began)
	if c.report.Took > 0 {
		took = min(took, c.report.Took)
	}
	if c.report.NotDone {
		f.NotDone++
		res := broken(l, x, now.Add(-took), now)
		if res.Page.Duration = took; c.report.Took <= 0 {
			res.Page.Duration = 0
		}
		if !c.report.Sent {
			res.Page.Report = frontier.Report{End: now}
		}
		res.Committed = c.committed
		ld.complete(res)
		return
	}
	offset, err := ld.ledger.claim(l, x)
	switch {
	case err == nil:
		r.Reported(x, offset)
	case !errors.Is(err, storage.ErrNoSpace): // without room no death is counted
		ld.fail(err)
	}
	f.Reported++
	r.Claim(x)
	c.res = &work.Result{Lease: *l, Committed: c.committed, Remote: &work.RemoteResult{
		Lease: x, Report: c.report, Start: now.Add(-took), End: now,
	}}
	c.res.Ctx, c.res.End = context.WithCancelCause(ld.flights.working)
}

// unpark claims again what has waited for hosts to be loaded.
func (ld *lender) unpark() {
	parked := ld.remote.parked
	ld.remote.parked = nil
	for _, c := range parked {
		ld.claim(c)
	}
	parkedPuts := ld.remote.parkedPuts
	ld.remote.parkedPuts = nil
	for _, g := range parkedPuts {
		ld.takePuts(g)
	}
}
