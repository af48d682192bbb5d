package crawl

import (
	"context"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
)

// stallsEvery is how often requests are looked for that others should not wait for.
const stallsEvery = 250 * time.Millisecond

// flight is a request that is under way.
type flight struct {
	lease    frontier.Lease
	place    uint64 // in the start ledger
	progress fetch.Progress
	ctx      context.Context // of the request and of all that is done with its answer
	end      context.CancelCauseFunc
}

// takeOff hands a lease to a worker, which is idle and waits.
func (r *run) takeOff(l frontier.Lease, place uint64) {
	fl := &flight{lease: l, place: place}
	fl.ctx, fl.end = context.WithCancelCause(r.working)
	r.flights[l.ID] = fl
	r.leases <- fl
}

// land takes note of the end of a request.
func (r *run) land(l *frontier.Lease) (place uint64) {
	fl := r.flights[l.ID]
	if fl == nil { // of a lookup
		return 0
	}
	delete(r.flights, l.ID)
	fl.end(nil)
	return fl.place
}

// breakOffStalled breaks off requests that bring next to nothing where other hosts wait for a
// worker. It is not done while nobody has a turn anyhow.
func (r *run) breakOffStalled(now time.Time) {
	if r.paused() {
		return
	}
	slow := func(id uint64) bool {
		fl := r.flights[id]
		return r.client.IsSlow(&fl.progress, now.Sub(fl.lease.At))
	}
	for _, id := range r.f.Stalled(now, slow) {
		r.flights[id].end(fetch.ErrTooSlow)
	}
}
