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
	f.read(now)
	h := f.host(stored.ID)
	if a := h.active; a != nil && a.polite != nil {
		f.follow(h, o, now)
		f.place(h, f.instant(now))
		return nil
	}
	// Not in memory, or on its way there: what is on disk is all there is to know, and nothing of the host waits for a commit.
	state, err := politeness.DecodeState(stored.Politeness)
	if err != nil {
		return fmt.Errorf("host %s: %w", stored.Name, err)
	}
	f.named(h, stored.Name, 0)
	if o.Kind == OrderDelay && (h.reason == politeness.ReasonDelay || h.reason == politeness.ReasonSetDelay) {
		h.ready = always // by the delay that is about to change; the time of the last request is in the state
	}
	polite := f.restored(state, h, now)
	obey(polite, o, now)
	if o.Kind == OrderForget {
		f.forgetTrouble(h)
		for i := range records {
			f.policy(storage.Policy{Origin: stored.Queues[i].Origin}, records[i].Forget())
		}
	}
	encoded, _ := polite.State(now).AppendBinary(nil) // its error is always nil
	f.out.Hosts = append(f.out.Hosts, storage.HostUpdate{Host: h.id, Politeness: encoded})
	h.wake = always
	f.remember(h, polite)
	if f.ordered[h.id] == nil {
		f.ordered[h.id] = new(ordered)
	}
	f.ordered[h.id].orders = append(f.ordered[h.id].orders, o)
	f.ordered[h.id].uncommitted++
	f.place(h, f.instant(now))
	return nil
}

// ordered is what was ordered about a host that was not in memory, for as long as a load of it may be older.
type ordered struct {
	orders      []Order
	uncommitted int // host updates of these that are not on disk yet
}

// followOrders carries out once more what was ordered before the host was loaded.
func (f *Frontier) followOrders(h *host, now time.Time) {
	if given := f.ordered[h.id]; given != nil {
		for _, o := range given.orders {
			f.follow(h, o, now)
		}
		f.forgetOrders(h)
	}
}

// updateCommitted takes note that a host update is on disk. Those of orders were made before all others that are not.
func (f *Frontier) updateCommitted(h *host) {
	if given := f.ordered[h.id]; given != nil && given.uncommitted > 0 {
		given.uncommitted--
		f.forgetOrders(h)
	} else if h.active != nil {
		h.active.uncommitted--
	}
}

// forgetOrders drops orders that every load to come will know of.
func (f *Frontier) forgetOrders(h *host) {
	opening := h.active != nil && h.active.polite == nil
	if !opening && f.ordered[h.id].uncommitted == 0 {
		delete(f.ordered, h.id)
	}
}

// follow carries out an order about a host that is in memory.
func (f *Frontier) follow(h *host, o Order, now time.Time) {
	a := h.active
	obey(a.polite, o, now)
	if o.Kind == OrderForget {
		f.forgetTrouble(h)
		a.hopeless, a.expires = always, always
		for i := range a.queues {
			q := &a.queues[i]
			q.record, q.held = q.record.Forget(), always
			if q.known {
				f.policy(storage.Policy{Origin: q.origin}, q.record)
			}
		}
	}
	f.update(h, now, 0, 0)
}

// obey is the part of an order that politeness carries out.
func obey(polite *politeness.Host, o Order, now time.Time) {
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
func (f *Frontier) forgetTrouble(h *host) {
	h.trouble, h.absent, h.nameless, h.robots = never, 0, 0, robots.ReasonNone
}

// policy puts a robots record into the batch.
func (f *Frontier) policy(p storage.Policy, r robots.Record) {
	if encoded, err := r.AppendBinary(nil); err == nil {
		p.Record = encoded
		f.out.Policies = append(f.out.Policies, p)
	}
}
