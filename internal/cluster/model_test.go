package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// The bounds of the model: how long faults last, and how long after them nobody may starve. A message
// of a dead node may come 30 s late, and the node is sealed a TTL after that.
const (
	faultsFor    = 4 * time.Minute
	ownersWithin = 65 * time.Second
	servedWithin = 200 * time.Second
)

// TestModel runs clusters through random faults: messages lost, late and repeated; clocks that run
// differently; processes killed, stopped and cut off; the log away; two processes with one name; registers of nodes
// that nobody can read. At no instant may two nodes trust themselves with a shard, or more slots of a shared limit be
// granted than there are. After the faults no shard may be without an owner, or without its turn.
func TestModel(t *testing.T) {
	steps := 0
	for seed := uint64(1); steps < 300_000; seed++ {
		steps += modelRun(t, seed)
	}
}

// modelRun runs one cluster and returns the number of its steps.
func modelRun(t *testing.T, seed uint64) int {
	t.Helper()
	w := newWorld(seed)
	w.populate(4 + int(seed%3))
	w.live()
	must.True(t, w.violation == "", "seed %d: %s", seed, w.violation)
	must.True(t, len(w.opened) >= worldShards, "seed %d: few engines were opened", seed)
	return w.steps
}

// live lets faults happen, and then watches how the cluster recovers.
func (w *world) live() {
	w.run(faultsFor)
	w.endFaults()
	w.run(faultsFor + ownersWithin)
	w.recovered()
	w.run(faultsFor + ownersWithin + servedWithin)
	w.served(faultsFor + ownersWithin)
}

// TestHandOver: processes leave in an orderly way and come back, one after the other and then all at once.
// Requests under shared limits pause not much longer than they do otherwise, which is 1, 4 and 9 s.
func TestHandOver(t *testing.T) {
	longest := map[string]time.Duration{"slots": 5 * time.Second, "another": 7 * time.Second, "delay": 20 * time.Second}
	for seed := uint64(1); seed <= 20; seed++ {
		w := newWorld(seed)
		w.faulty = false
		w.populate(4)
		w.processes[3].mayRestart = never // it has the name of another
		w.run(time.Minute)
		clear(w.pauses)
		for i := range 3 {
			w.processes[i].leave()
			w.run(w.now + 20*time.Second)
		}
		for _, p := range w.processes[:3] {
			p.leave()
		}
		w.run(w.now + 20*time.Second)
		for key, most := range longest {
			assert.AtMost(t, max(w.pauses[key], w.now-w.begun[key]), most, "seed", seed, "a pause of under", key)
		}
		must.True(t, w.violation == "", "seed %d: %s", seed, w.violation)
	}
}

// TestModelFindsFaults breaks the options of half of the nodes, which newNode does not check, and holds
// that the model sees what follows.
func TestModelFindsFaults(t *testing.T) {
	faults := map[string]func(w *world){
		"seals too early":        alterOdd(func(o *Options) { o.TTL = 5 * time.Second; o.Margin = -13 * time.Second }),
		"trusts itself too long": alterOdd(func(o *Options) { o.Margin = -5 * time.Second }),
		"grants too much":        laxOdd(func(l *Limit) { l.Slots = 4 }),
		"grants without a delay": laxOdd(func(l *Limit) { l.Delay = 0 }),
		"hands over no users":    forgeUsers(func(HandoverUser) []HandoverUser { return nil }),
		"hands over too little": forgeUsers(
			func(u HandoverUser) []HandoverUser { u.Left /= 4; return []HandoverUser{u} }),
		"hands over no wait": forgeHandover(func(h *Handover) { h.Ready = -never }),
		"hands over no delays": forgeHandover(func(h *Handover) {
			for i := range h.Limits {
				h.Limits[i].LastEnd = -never
			}
		}),
		"grants for longer than it trusts itself": func(w *world) { w.lend = func(g *Grant) { g.For = never } },
		"takes any seal for one after a TTL":      func(w *world) { w.forgeKey = func(k *Key) { k.Silent = k.Sealed } },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed < 200; seed++ {
				w := newWorld(seed)
				fault(w)
				w.populate(5)
				if w.run(faultsFor); w.violation != "" {
					t.Logf("seed %d: %s", seed, w.violation)
					return
				}
			}
			t.Error("not found")
		})
	}
}

// alterOdd breaks the options of every other process.
func alterOdd(fault func(o *Options)) func(w *world) {
	return func(w *world) {
		w.alter = func(o *Options, i int) {
			if i%2 == 1 {
				fault(o)
			}
		}
	}
}

// laxOdd breaks the limits in the requests of every other process.
func laxOdd(fault func(l *Limit)) func(w *world) {
	return func(w *world) {
		w.lax = func(l *Limit, i int) {
			if i%2 == 1 {
				fault(l)
			}
		}
	}
}

// forgeHandover breaks what processes hand over.
func forgeHandover(fault func(h *Handover)) func(w *world) {
	return func(w *world) {
		w.forge = func(e *Epoch) {
			if e.Handover == nil {
				return
			}
			h := Handover{e.Handover.Ready, slices.Clone(e.Handover.Limits)}
			fault(&h)
			e.Handover = &h
		}
	}
}

// forgeUsers breaks the users that processes hand over.
func forgeUsers(fault func(u HandoverUser) []HandoverUser) func(w *world) {
	return forgeHandover(func(h *Handover) {
		for i := range h.Limits {
			var users []HandoverUser
			for _, u := range h.Limits[i].Users {
				users = append(users, fault(u)...)
			}
			h.Limits[i].Users = users
		}
	})
}
