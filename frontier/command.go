package frontier

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Order is what the operator wants of one host.
type Order struct {
	Kind  OrderKind
	Until time.Time     // of OrderPause: when the pause ends; zero: with OrderResume
	Delay time.Duration // of OrderDelay: in place of the configured one; 0: that counts again
}

// OrderKind says what an Order is about.
type OrderKind uint8

// The kinds of orders.
const (
	OrderPause  OrderKind = iota // ask nothing of the host for a while; the last one counts
	OrderResume                  // end its pause
	OrderDelay                   // set its delay; what the host itself asks for still counts
	OrderForget                  // drop what was learned of it: back-off, errors, how long robots.txt is good. What is owed to it stays
)

// String names the kind for logs.
func (k OrderKind) String() string { return [...]string{"pause", "resume", "delay", "forget"}[k] }

// Control carries out an order. stored is the host as it is on disk, records are those of the robots.txt of its origins,
// in the order of stored.Queues; they are asked for OrderForget only. The order is in the next batch.
func (f *Frontier) Control(stored *storage.Host, records []robots.Record, o Order, now time.Time) error {
	f.readClock(now)
	h := f.host(stored.ID)
	if a := h.active; a != nil && a.polite != nil {
		f.applyOrder(h, o, now)
		f.schedule(h, f.instant(now))
		return nil
	}
	// Not in memory, or on its way there: what is on disk is all there is to know, and nothing of the host waits for a commit.
	state, err := politeness.DecodeState(stored.Politeness)
	if err != nil {
		return fmt.Errorf("host %s: %w", stored.Name, err)
	}
	f.setName(h, stored.Name, 0)
	if o.Kind == OrderDelay && (h.waitReason == politeness.ReasonDelay || h.waitReason == politeness.ReasonSetDelay) {
		h.ready = always // by the delay that is about to change; the time of the last request is in the state
	}
	polite := f.restorePoliteness(state, h, now)
	applyToPoliteness(polite, o, now)
	if o.Kind == OrderForget {
		f.forgetFailures(h)
		for i := range records {
			f.storeRecord(storage.Policy{Origin: stored.Queues[i].Origin}, records[i].Forget())
		}
	}
	encoded, _ := polite.State(now).AppendBinary(nil) // its error is always nil
	f.out.Hosts = append(f.out.Hosts, storage.HostUpdate{Host: h.id, Politeness: encoded})
	h.workAt = always
	f.saveTimes(h, polite)
	if f.pendingOrders[h.id] == nil {
		f.pendingOrders[h.id] = new(pendingOrders)
	}
	f.pendingOrders[h.id].orders = append(f.pendingOrders[h.id].orders, o)
	f.pendingOrders[h.id].uncommitted++
	f.schedule(h, f.instant(now))
	return nil
}

// ordered is what was ordered about a host that was not in memory, for as long as a load of it may be older.
type pendingOrders struct {
	orders      []Order
	uncommitted int // host updates of these that are not on disk yet
}

// followOrders carries out once more what was ordered before the host was loaded.
func (f *Frontier) applyOrders(h *host, now time.Time) {
	if pending := f.pendingOrders[h.id]; pending != nil {
		for _, o := range pending.orders {
			f.applyOrder(h, o, now)
		}
		f.forgetOrders(h)
	}
}

// forgetOrders drops orders that every load to come will know of.
func (f *Frontier) forgetOrders(h *host) {
	opening := h.active != nil && h.active.polite == nil
	if !opening && f.pendingOrders[h.id].uncommitted == 0 {
		delete(f.pendingOrders, h.id)
	}
}

// follow carries out an order about a host that is in memory.
func (f *Frontier) applyOrder(h *host, o Order, now time.Time) {
	a := h.active
	applyToPoliteness(a.polite, o, now)
	if o.Kind == OrderForget {
		f.forgetFailures(h)
		a.failUntil, a.expires = always, always
		for i := range a.queues {
			q := &a.queues[i]
			q.record, q.heldUntil = q.record.Forget(), always
			if q.known {
				f.storeRecord(storage.Policy{Origin: q.origin}, q.record)
			}
		}
	}
	f.update(h, now, 0, 0)
}

// obey is the part of an order that politeness carries out.
func applyToPoliteness(polite *politeness.Host, o Order, now time.Time) {
	switch o.Kind {
	case OrderPause:
		polite.Pause(now, o.Until)
	case OrderResume:
		polite.Resume()
	case OrderDelay:
		polite.SetDelay(o.Delay)
	case OrderForget:
		polite.Forget()
	}
}

// forgetTrouble drops what a host's answers led to outside of politeness.
func (f *Frontier) forgetFailures(h *host) {
	h.failingSince, h.absent, h.noLookupUntil, h.robotsReason = never, 0, 0, robots.ReasonNone
}

// drop is the end of a host's queue by the operator's wish: whoever owns the
// store excludes what waits there, and the frontier what it has in memory.
type drop struct {
	below uint32 // ordinals below it
	done  bool   // the store holds none of them any more
}

// Drop excludes those URLs of a host that wait and have an ordinal below the given one: those in memory at once, and
// those that are read, or come back from a lease, before the caller has done the same in the store and said so with
// Dropped. What is leased is let finish.
func (f *Frontier) Drop(id storage.HostID, below uint32, now time.Time) {
	h := f.host(id)
	f.drops[id] = &drop{below: below}
	f.applyDrop(h, now)
	f.schedule(h, f.instant(now))
}

// Dropped says that no URL below an ordinal that Drop was to exclude waits in the store any more.
func (f *Frontier) Dropped(id storage.HostID, below uint32, now time.Time) {
	if d := f.drops[id]; d != nil && d.below <= below {
		d.done = true
		f.applyDrop(f.host(id), now)
	}
}

// DropMatters is which states a drop ends.
func DropMatters() storage.States { return storage.In(storage.Queued, storage.Retrying) }

// DropOutcome is what it makes of them.
func DropOutcome(now time.Time) storage.Outcome {
	return storage.Outcome{State: storage.Excluded, Reason: storage.ReasonOperator, At: now}
}

// applyDrop excludes what is in memory. A drop that is over is forgotten when
// nothing can come any more that was read before.
func (f *Frontier) applyDrop(h *host, now time.Time) {
	d, a := f.drops[h.id], h.active
	if d == nil {
		return
	}
	if d.done && (a == nil || !a.loading && a.inFlight == 0 && a.matching == 0) {
		defer delete(f.drops, h.id)
	}
	if a == nil || a.polite == nil {
		return
	}
	settled := len(f.out.Done)
	for i := range a.queues {
		f.dropQueue(h, &a.queues[i], d, now)
	}
	if len(f.out.Done) > settled {
		f.update(h, now, 0, 0)
	}
}

func (f *Frontier) dropQueue(h *host, q *originQueue, d *drop, now time.Time) {
	dropped := q.DropBelow(d.below, func(last *storage.Outcome) bool {
		isPutBack := d.done && last.Reason == storage.ReasonOperator // since the drop
		return isPutBack || !DropMatters().Has(last.State)
	})
	for i := range dropped {
		h.active.busy.Add(dropped[i].Ordinal)
		f.recordOutcome(h, &dropped[i], DropOutcome(now))
	}
}

// PutBack is the outcome that puts a URL back into its queue: it is due at once. What is remembered of it stays.
func PutBack(last storage.Outcome, now time.Time) storage.Outcome {
	last.State, last.Reason, last.Line, last.Attempts, last.Due = storage.Retrying, storage.ReasonOperator, 0, 0, now
	return last
}

// CanPutBack is the set of states out of which a URL can be put back into its queue. Fetched pages are not among them: they have recrawls.
func CanPutBack() storage.States {
	return storage.In(storage.Redirected, storage.Failed, storage.Denied, storage.Excluded, storage.Retrying)
}

// isPutBack reports whether an outcome comes from PutBack and not from a lease.
func isPutBack(d *storage.Done) bool {
	return d.When != 0 && d.Outcome.State == storage.Retrying && d.Outcome.Reason == storage.ReasonOperator
}

// forgetName drops what is known of a host's name, so that URLs which were put back are not given up for an earlier answer of DNS.
func (f *Frontier) forgetName(id storage.HostID) {
	h := f.hosts.get(id)
	if h == nil {
		return
	}
	h.absent, h.noLookupUntil, h.lookup = 0, 0, notLookedUp
	if h.active != nil {
		h.active.failUntil = always
	}
}
