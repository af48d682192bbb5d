package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestSimulation runs a small fleet through joins, deaths and an outage of the log. The soak form is
// that of 1,000 nodes.
func TestSimulation(t *testing.T) { simulate(t, newFleet(60, 1024)) }

// fleet is a cluster in virtual time, made to be cheap: time goes in steps, all watches see a message
// in the same step, and clocks are right.
type fleet struct {
	random    *rand.Rand
	o         Options
	step      int
	wheel     [wheelSize][]func() // what happens in the next steps
	nodes     []*Node             // nil: dead
	last      Sequence
	keys      map[string]Sequence
	epochs    []Sequence
	runner    []int // the node that has opened a shard last, or -1
	away      bool  // the log
	addresses [][]string
	twice     int
	counts    counts
}

// counts are messages: writes of registers, those that watches delivered, and those about grants.
type counts struct{ heartbeats, epochs, refused, delivered, requests, grants, starts int }

const (
	stepTime  = 10 * time.Millisecond
	wheelSize = 512
	tickSteps = 25 // steps from one tick of a node to the next
)

func newFleet(nodes, shards int) *fleet {
	f := &fleet{random: rand.New(rand.NewPCG(uint64(nodes), uint64(shards))), nodes: make([]*Node, nodes),
		keys: make(map[string]Sequence), epochs: make([]Sequence, shards), runner: make([]int, shards),
		addresses: make([][]string, shards)}
	f.o = DefaultOptions()
	f.o.Shards = shards
	// As many shared addresses as shards, each of 8 shards.
	for a := range shards {
		key := fmt.Sprintf("address %x", a)
		for range 8 {
			s := f.random.IntN(shards)
			f.addresses[s] = append(f.addresses[s], key)
		}
		f.runner[a] = -1
	}
	return f
}

// limitOf returns the limit of an address: one in 16 has a delay of a second.
func limitOf(key string) Limit {
	if key[len(key)-1] == '0' {
		return Limit{Slots: 1, Delay: time.Second}
	}
	return Limit{Slots: 8}
}

func (f *fleet) now() Instant { return Instant(time.Hour) + Instant(f.step)*Instant(stepTime) }

// in lets something happen after some time, at least one step.
func (f *fleet) in(d time.Duration, do func()) {
	at := (f.step + max(1, int(d/stepTime))) % wheelSize
	f.wheel[at] = append(f.wheel[at], do)
}

// start starts a node, which finds the newest messages of all registers.
func (f *fleet) start(i int) {
	o := f.o
	o.Node, o.Process = nodeName(i), uint64(i)+1
	n := newNode(f.now(), o)
	for _, other := range f.nodes {
		if other != nil && other.self.incarnation != 0 {
			key := Key{Incarnation: other.self.incarnation, Weight: other.self.weight}
			n.KeySeen(f.now(), other.o.Node, other.self.seq, key)
			n.epochs = copyEpochs(n, other)
		}
	}
	f.nodes[i] = n
	f.tick(i, n)
}

// copyEpochs returns what a node knows of all shards as another node would know it that has seen the
// same members.
func copyEpochs(n, of *Node) []epochView {
	if n.epochs[0].seq != 0 {
		return n.epochs
	}
	for s, v := range of.epochs {
		if v.seq != 0 {
			n.EpochSeen(0, Shard(s), v.seq,
				Epoch{Owner: Member{of.members.all[v.owner].name, v.incarnation}, Released: v.released})
		}
	}
	return n.epochs
}

func nodeName(i int) string { return fmt.Sprint("node", i) }

func nodeNumber(name string) (i int) {
	_, _ = fmt.Sscanf(name, "node%d", &i)
	return i
}

// tick ticks a node for as long as it lives, and makes requests under the limits with a delay.
func (f *fleet) tick(i int, n *Node) {
	if f.nodes[i] != n {
		return
	}
	n.Tick(f.now())
	for _, a := range n.allowances {
		if a.using == 0 && limitOf(a.key).Delay > 0 && n.Start(f.now(), a.key) {
			f.counts.starts++
			key := a.key
			f.in(500*time.Millisecond, func() {
				if f.nodes[i] == n {
					n.End(f.now(), key)
					f.act(i, n)
				}
			})
		}
	}
	f.act(i, n)
	f.in(tickSteps*stepTime, func() { f.tick(i, n) })
}

// delay is how long a message takes to the log or to a node.
func (f *fleet) delay() time.Duration { return time.Duration(5+f.random.IntN(20)) * time.Millisecond }

// act carries out the actions of a node.
func (f *fleet) act(i int, n *Node) {
	for _, action := range n.Actions() {
		switch a := action.(type) {
		case WriteKey:
			f.in(f.delay(), func() { f.writeKey(i, n, a) })
		case WriteEpoch:
			f.in(f.delay(), func() { f.writeEpoch(i, n, a) })
		case OpenEngine:
			f.open(i, n, a.Shard)
		case StopEngine:
			f.in(time.Second, func() {
				f.tell(i, n, func() {
					n.EngineStopped(f.now(), a.Shard)
					f.use(n, a.Shard)
				})
			})
		case SendGrantRequest:
			f.counts.requests++
			f.toNode(f.runner[GranterOf(a.Request.Key, f.o.Shards)],
				func(n *Node) { n.GrantRequested(f.now(), a.Request) })
		case SendGrant:
			f.counts.grants++
			f.toNode(nodeNumber(a.Grant.User.Node), func(n *Node) { n.Granted(f.now(), a.Grant) })
		}
	}
}

// tell lets something happen to a node that lives, and carries out its actions.
func (f *fleet) tell(i int, n *Node, do func()) {
	if f.nodes[i] == n {
		do()
		f.act(i, n)
	}
}

func (f *fleet) toNode(i int, do func(n *Node)) {
	if i < 0 || f.nodes[i] == nil || f.away {
		return
	}
	n := f.nodes[i]
	f.in(f.delay(), func() { f.tell(i, n, func() { do(n) }) })
}

// open starts an engine, and counts a shard that another live node trusts itself with.
func (f *fleet) open(i int, n *Node, s Shard) {
	if before := f.runner[s]; before >= 0 && before != i && f.nodes[before] != nil {
		other := f.nodes[before]
		if h := other.byShard[s]; h != nil && (h.engine == running || h.engine == draining) &&
			other.isTrusted(f.now()) {
			f.twice++
		}
	}
	f.runner[s] = i
	f.in(time.Second, func() { f.tell(i, n, func() { f.use(n, s) }) })
}

// use has a node need the limits of a shard for as many of its shards as use them.
func (f *fleet) use(n *Node, s Shard) {
	for _, key := range f.addresses[s] {
		waiting := 0
		for _, h := range n.held {
			if h.engine == running && slices.Contains(f.addresses[h.shard], key) {
				waiting++
			}
		}
		n.Need(f.now(), key, Need{Limit: limitOf(key), Waiting: waiting})
	}
}

func (f *fleet) writeKey(i int, n *Node, a WriteKey) {
	if f.away {
		return
	}
	f.counts.heartbeats++
	written := f.keys[a.Node] == a.Expected
	if written {
		f.last++
		f.keys[a.Node] = f.last
		seq := f.last
		f.publish(func(n *Node) { n.KeySeen(f.now(), a.Node, seq, a.Key) })
	} else {
		f.counts.refused++
	}
	seq := f.keys[a.Node]
	f.in(f.delay(), func() { f.tell(i, n, func() { n.KeyAnswer(f.now(), a.Node, a.ID, seq, written) }) })
}

func (f *fleet) writeEpoch(i int, n *Node, a WriteEpoch) {
	if f.away {
		return
	}
	f.counts.epochs++
	written := f.epochs[a.Shard] == a.Expected
	if written {
		f.last++
		f.epochs[a.Shard] = f.last
		seq := f.last
		f.publish(func(n *Node) { n.EpochSeen(f.now(), a.Shard, seq, a.Epoch) })
	} else {
		f.counts.refused++
	}
	seq := f.epochs[a.Shard]
	f.in(f.delay(), func() { f.tell(i, n, func() { n.EpochAnswer(f.now(), a.Shard, a.ID, seq, written) }) })
}

// publish brings a message to the watches of all nodes.
func (f *fleet) publish(do func(n *Node)) {
	f.in(f.delay(), func() {
		for i, n := range f.nodes {
			if n != nil {
				f.counts.delivered++
				do(n)
				f.act(i, n)
			}
		}
	})
}

// run lets time pass.
func (f *fleet) run(d time.Duration) {
	for range d / stepTime {
		f.step++
		slot := &f.wheel[f.step%wheelSize]
		due := *slot
		*slot = nil
		for _, do := range due {
			do()
		}
	}
}

// owned returns how many shards may be fetched from.
func (f *fleet) owned() (shards int) {
	for _, n := range f.nodes {
		if n == nil || !n.isTrusted(f.now()) {
			continue
		}
		for _, h := range n.held {
			if h.engine == running {
				shards++
			}
		}
	}
	return shards
}

// live returns how many nodes live.
func (f *fleet) live() (nodes int) {
	for _, n := range f.nodes {
		if n != nil {
			nodes++
		}
	}
	return nodes
}

// phase runs a part of the simulation and logs how long some shard had no owner, and the messages a
// second. It fails if that took longer than most.
func (f *fleet) phase(t *testing.T, name string, lasts, most time.Duration) {
	t.Helper()
	f.counts = counts{}
	least, gap := len(f.epochs), time.Duration(0)
	const every = 200 * time.Millisecond
	for at := every; at <= lasts; at += every {
		f.run(every)
		owned := f.owned()
		if least = min(least, owned); owned < len(f.epochs) {
			gap = at
		}
	}
	c, s := f.counts, lasts.Seconds()
	rate := func(n int) float64 { return float64(n) / s }
	t.Logf("%-28s %4d nodes: all %d shards have an owner after %v (at least %d had one); a second: %.0f heartbeats, "+
		"%.0f epochs written, %.1f refused, %.0f deliveries, %.0f grant requests, %.0f grants, %.0f turns",
		name, f.live(), len(f.epochs), gap, least, rate(c.heartbeats), rate(c.epochs), rate(c.refused),
		rate(c.delivered), rate(c.requests), rate(c.grants), rate(c.starts))
	assert.True(t, gap <= most && f.twice <= 0,
		"%s: shards without an owner for %v, at most %v are allowed; %d had two", name, gap, most, f.twice)
}

// simulate starts nine tenths of the nodes, lets the others join, kills a third at once, and takes the
// log away for a minute.
func simulate(t *testing.T, f *fleet) {
	t.Helper()
	first := len(f.nodes) * 9 / 10
	for i := range first {
		f.in(time.Duration(f.random.IntN(2000))*time.Millisecond, func() { f.start(i) })
	}
	f.phase(t, "cold start within 2 s", 50*time.Second, 15*time.Second)
	f.phase(t, "nothing happens", 20*time.Second, 0)
	for i := first; i < len(f.nodes); i++ {
		f.in(time.Duration(f.random.IntN(5000))*time.Millisecond, func() { f.start(i) })
	}
	f.phase(t, "a tenth joins within 5 s", 40*time.Second, 15*time.Second)
	for _, i := range f.random.Perm(len(f.nodes))[:len(f.nodes)/3] {
		f.nodes[i] = nil
	}
	f.phase(t, "a third dies at once", 60*time.Second, 40*time.Second)
	f.away = true
	f.phase(t, "the log is away", time.Minute, time.Minute)
	f.away = false
	f.phase(t, "the log is back", 40*time.Second, 10*time.Second)
}
