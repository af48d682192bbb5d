package cluster

import (
	"testing"
	"time"
)

// The bounds of the model: how long faults last, and how long after them nobody may starve. A message
// of a dead node may come 30 s late, the node is sealed a TTL after that, and its successor grants
// nothing for another TTL.
const (
	faultsFor    = 4 * time.Minute
	ownersWithin = 65 * time.Second
	servedWithin = 200 * time.Second
)

// TestModel runs clusters through random faults: messages lost, late and repeated; clocks that run
// differently; processes killed, stopped and cut off; the log away; two processes with one name. At
// no instant may two nodes trust themselves with a shard, or more slots of a shared limit be granted
// than there are. After the faults no shard may be without an owner, or without its turn.
func TestModel(t *testing.T) {
	steps := 0
	for seed := uint64(1); steps < 1_000_000; seed++ {
		steps += modelRun(t, seed)
	}
}

// modelRun runs one cluster and returns the number of its steps.
func modelRun(t *testing.T, seed uint64) int {
	t.Helper()
	w := newWorld(seed)
	w.populate(3 + int(seed%4))
	w.live()
	if w.violation != "" {
		t.Fatalf("seed %d: %s", seed, w.violation)
	}
	if len(w.opened) < worldShards {
		t.Fatalf("seed %d: few engines were opened", seed)
	}
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

// TestModelFindsFaults breaks the options of half of the nodes, which newNode does not check, and holds
// that the model sees what follows.
func TestModelFindsFaults(t *testing.T) {
	faults := map[string]func(w *world){
		"seals too early":        alterOdd(func(o *Options) { o.TTL = 5 * time.Second; o.Margin = -13 * time.Second }),
		"trusts itself too long": alterOdd(func(o *Options) { o.Margin = -5 * time.Second }),
		"grants too much":        laxOdd(func(l *Limit) { l.Slots = 4 }),
		"grants without a delay": laxOdd(func(l *Limit) { l.Delay = 0 }),
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed < 50; seed++ {
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
