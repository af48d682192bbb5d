package crawl

import (
	"context"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
)

// stallsEvery is how often requests are looked for that others should not wait for.
const stallsEvery = 250 * time.Millisecond

// flight is what is known of a request while it is under way.
type flight struct {
	place    uint64 // in the start ledger
	progress fetch.Progress
	ctx      context.Context // of the request and of all that is done with its answer
	end      context.CancelCauseFunc
}

// takeOff hands a lease to a worker, which is idle and waits.
func (r *run) takeOff(l *frontier.Lease, place uint64) {
	res := &result{lease: *l}
	res.place = place
	res.ctx, res.end = context.WithCancelCause(r.working)
	r.flights[l.ID] = &res.flight
	r.planStallCheck()
	r.leases <- res
}

// land takes note of the end of a request.
func (r *run) land(res *result) {
	if res.end != nil { // a lookup has none
		delete(r.flights, res.lease.ID)
		res.end(nil)
	}
}

// planStallCheck plans a look for requests that keep others waiting, where there are requests.
func (r *run) planStallCheck() {
	if r.stallCheck == nil && len(r.flights) > 0 {
		r.stallCheck = time.After(stallsEvery)
	}
}

// breakOffStalled breaks off requests that bring next to nothing where other hosts wait for a
// worker. It is not done while nobody has a turn anyhow.
func (r *run) breakOffStalled(now time.Time) {
	r.stallCheck = nil
	defer r.planStallCheck()
	if r.paused() {
		return
	}
	slow := func(id uint64, lasts, patience time.Duration) bool {
		return r.client.IsSlow(&r.flights[id].progress, lasts, patience)
	}
	for _, id := range r.f.Stalled(now, slow) {
		r.flights[id].end(fetch.ErrTooSlow)
	}
}
