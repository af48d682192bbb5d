package cluster

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// world is a cluster in virtual time: processes, the log with its registers, the network between
// them, and the requests that the engines make. A seed decides everything that happens.
type world struct {
	random    *rand.Rand
	now       time.Duration // the true time, which no process knows
	events    timeline
	steps     int
	faulty    bool          // faults happen
	calm      bool          // few shards need the same limit at a time, and only granters fail
	wanted    time.Duration // how long a shard needs a limit in a calm world
	down      bool          // the log answers nobody
	processes []*process
	registers
	inFlight  []*webRequest
	lastEnd   map[string]time.Duration // of the requests under a shared limit
	lastStart map[string]time.Duration // by shard and kind
	opened    map[OpenEngine]bool
	violation string                   // the first that was found
	alter     func(o *Options, i int)  // breaks the options of a process
	lax       func(l *Limit, i int)    // breaks the limits in the requests of a process
	forge     func(e *Epoch)           // breaks the epochs that processes write
	forgeKey  func(k *Key)             // breaks the keys that processes write
	lend      func(g *Grant)           // breaks grants
	begun     map[string]time.Duration // the last request, by limit
	pauses    map[string]time.Duration // the longest time between requests, by limit
	turns     int
}

// registers is the log: conditional writes, and all that ever stood in each register.
type registers struct {
	last   Sequence
	keys   map[string][]keyVersion
	epochs [][]epochVersion
}

type keyVersion struct {
	seq    Sequence
	key    Key
	opaque bool // nobody can read it
}

// seen reports a version of the register of a node.
func (v keyVersion) seen(n *Node, now Instant, node string) {
	if v.opaque {
		n.KeyUnreadable(now, node, v.seq)
	} else {
		n.KeySeen(now, node, v.seq, v.key)
	}
}

type epochVersion struct {
	seq   Sequence
	epoch Epoch
}

// The limits that all shards share: a number of slots, and delays.
var worldLimits = map[string]Limit{"slots": {Slots: 3}, "delay": {Slots: 1, Delay: 2 * time.Second},
	"another": {Slots: 1, Delay: time.Second}, "rare": {Slots: 1, Delay: 15 * time.Second}}

const (
	worldShards = 8
	worldDrift  = 0.03                   // how much faster or slower a clock may run
	worldStep   = 100 * time.Millisecond // how far a clock may be set, once in 10 s
)

func newWorld(seed uint64) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 1)), faulty: true, calm: seed%2 == 0,
		registers: registers{keys: make(map[string][]keyVersion), epochs: make([][]epochVersion, worldShards)},
		lastEnd:   make(map[string]time.Duration), lastStart: make(map[string]time.Duration),
		opened: make(map[OpenEngine]bool), begun: make(map[string]time.Duration),
		pauses: make(map[string]time.Duration)}
	w.wanted = w.between(time.Second, 10*time.Second)
	return w
}

// populate starts the processes. The last has the name of the one before it.
func (w *world) populate(count int) {
	for i := range count {
		name := fmt.Sprint("node", min(i, count-2))
		w.processes = append(w.processes,
			&process{w: w, i: i, name: name, rate: 1, offset: Instant(w.between(0, time.Hour))})
	}
	for _, p := range w.processes {
		w.after(w.between(0, 10*time.Second), p.start)
		w.loop(func() time.Duration { return w.between(50*time.Millisecond, 400*time.Millisecond) }, p.tick)
		w.loop(func() time.Duration { return w.between(20*time.Millisecond, time.Second) }, p.crawl)
		w.loop(func() time.Duration { return w.between(time.Second, 5*time.Second) }, func() {
			if w.faulty {
				p.resync() // a watch begins again after a fault
			}
		})
		w.loop(func() time.Duration { return w.between(time.Second, 20*time.Second) }, p.fault)
	}
	w.loop(func() time.Duration { return w.between(5*time.Second, 30*time.Second) }, w.loseGranter)
	w.loop(func() time.Duration { return w.between(20*time.Second, 2*time.Minute) }, w.scribble)
	w.loop(func() time.Duration { return w.between(30*time.Second, 3*time.Minute) }, func() {
		if w.faulty && !w.calm {
			w.down = true
			w.after(w.between(time.Second, 30*time.Second), func() { w.down = false })
		}
	})
}

// loseGranter ends the process that grants some limit, in a calm world: it dies while it cannot reach the
// log, it is replaced by one that leaves, or it leaves.
func (w *world) loseGranter() {
	if !w.calm || !w.faulty {
		return
	}
	key := worldKeys[w.random.IntN(len(worldKeys))]
	i := slices.IndexFunc(w.processes, func(p *process) bool { return p.n != nil && p.n.IsGranter(p.clock(), key) })
	if i < 0 {
		return
	}
	switch p := w.processes[i]; w.random.IntN(3) {
	case 0:
		p.mute = true
		w.after(w.between(0, 20*time.Second), func() {
			p.mute = false
			p.kill()
		})
	case 1:
		p.replace()
	default:
		p.leave()
	}
}

// event is something that happens at an instant.
type event struct {
	at   time.Duration
	turn int // events of one instant happen in the order in which they were made
	do   func()
}

type timeline []event

func (t timeline) Len() int { return len(t) }

func (t timeline) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].turn < t[j].turn
}

func (t timeline) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

func (t *timeline) Push(e any) { *t = append(*t, e.(event)) }

func (t *timeline) Pop() any {
	last := len(*t) - 1
	e := (*t)[last]
	(*t)[last] = event{}
	*t = (*t)[:last]
	return e
}

func (w *world) after(d time.Duration, do func()) {
	w.turns++
	heap.Push(&w.events, event{w.now + d, w.turns, do})
}

// loop does something for ever, with pauses in between.
func (w *world) loop(pause func() time.Duration, do func()) {
	w.after(pause(), func() {
		do()
		w.loop(pause, do)
	})
}

func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.random.Int64N(int64(most-least)))
}

// chance reports true with a probability, while faults happen.
func (w *world) chance(p float64) bool { return w.faulty && w.random.Float64() < p }

// run lets time pass until an instant, or until a promise is broken.
func (w *world) run(until time.Duration) {
	for w.violation == "" && len(w.events) > 0 && w.events[0].at <= until {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		w.steps++
		e.do()
		w.check()
	}
	w.now = max(w.now, until)
}

func (w *world) fail(format string, args ...any) {
	if w.violation == "" {
		w.violation = fmt.Sprintf("%v: ", w.now) + fmt.Sprintf(format, args...)
	}
}

// check holds what must hold at each instant: of the processes that live, also of those that are
// stopped, one at most trusts itself with a shard, and the slots that they believe to have of a
// shared limit are not more than there are. One that seals its register has no engine that uses them.
func (w *world) check() {
	var owner [worldShards]*process
	slots := make(map[string]int, len(worldLimits))
	for _, p := range w.processes {
		if p.n == nil || !p.n.isTrusted(p.clock()) {
			continue
		}
		for _, h := range p.n.held {
			if h.engine != running && h.engine != draining {
				continue
			}
			if other := owner[h.shard]; other != nil {
				w.fail("processes %d and %d both own shard %d", other.i, p.i, h.shard)
			}
			owner[h.shard] = p
		}
		for _, a := range p.n.allowances {
			if p.clock() < a.until && p.n.self.leave != sealing {
				slots[a.key] += a.slots
			}
		}
	}
	for key, limit := range worldLimits {
		if slots[key] > limit.Slots {
			w.fail("%d slots of %q", slots[key], key)
		}
	}
}

// stale returns the newest of so many versions, or sometimes an older one.
func (w *world) stale(versions int) int {
	if w.chance(0.2) {
		return w.random.IntN(versions)
	}
	return versions - 1
}

func (w *world) writeKey(p *process, life int, a WriteKey) {
	versions := w.keys[a.Node]
	var newest keyVersion
	if len(versions) > 0 {
		newest = versions[len(versions)-1]
	}
	written := newest.seq == a.Expected
	if written {
		w.last++
		newest = keyVersion{w.last, a.Key, w.chance(0.002)} // that of another version, maybe a seal
		w.keys[a.Node] = append(versions, newest)
		w.publish(func(n *Node, now Instant) { newest.seen(n, now, a.Node) })
	}
	if p.life == life {
		p.answer(func(n *Node, now Instant) { n.KeyAnswer(now, a.Node, a.ID, newest.seq, written) })
	}
}

func (w *world) writeEpoch(p *process, life int, a WriteEpoch) {
	versions := w.epochs[a.Shard]
	var newest epochVersion
	if len(versions) > 0 {
		newest = versions[len(versions)-1]
	}
	written := newest.seq == a.Expected
	if written {
		w.last++
		newest = epochVersion{w.last, a.Epoch}
		w.epochs[a.Shard] = append(versions, newest)
		w.publish(func(n *Node, now Instant) { n.EpochSeen(now, a.Shard, newest.seq, a.Epoch) })
	}
	if p.life == life {
		p.answer(func(n *Node, now Instant) { n.EpochAnswer(now, a.Shard, a.ID, newest.seq, written) })
	}
}

// scribble writes what nobody can read to the register of a process.
func (w *world) scribble() {
	if !w.faulty || w.down {
		return
	}
	w.last++
	name, v := w.processes[w.random.IntN(len(w.processes))].name, keyVersion{seq: w.last, opaque: true}
	w.keys[name] = append(w.keys[name], v)
	w.publish(func(n *Node, now Instant) { v.seen(n, now, name) })
}

// publish brings a message to the watches of all processes.
func (w *world) publish(f func(n *Node, now Instant)) {
	for _, p := range w.processes {
		if p.n != nil {
			p.answer(f)
		}
	}
}

// endFaults ends all faults. No two processes of a name and none that was drained are left, and in some
// clusters one more is dead for good, or all begin again.
func (w *world) endFaults() {
	w.faulty, w.down = false, false
	last := len(w.processes) - 1
	for i, p := range w.processes {
		p.cut, p.mute = false, false
		p.resume(p.life)
		p.setClock(p.rate, 0)
		dead := i == last || i == 0 && last > 2 && w.random.IntN(2) == 0
		if p.closing || dead || w.turns%4 == 0 {
			p.kill()
		}
		p.mayRestart = 0
		if dead {
			p.mayRestart = never
		}
	}
	for _, p := range w.processes {
		p.start()
		p.resync()
	}
}

// recovered holds what must be true some time after the last fault: each shard has an owner that may
// make requests.
func (w *world) recovered() {
	for s := range Shard(worldShards) {
		owners := 0
		for _, p := range w.processes {
			if p.n != nil && p.n.MayStart(p.clock(), s) {
				owners++
			}
		}
		if owners != 1 {
			w.fail("shard %d has %d owners", s, owners)
		}
	}
}

// served holds that each shard has made a request under each limit since an instant. For the limit with
// rare turns, somebody has.
func (w *world) served(since time.Duration) {
	if w.begun["rare"] < since {
		w.fail("nobody has made a request under the limit with rare turns")
	}
	for s := range worldShards {
		for _, kind := range worldKinds {
			if kind != "rare" && w.lastStart[fmt.Sprint(s, kind)] < since {
				w.fail("shard %d has not made a request under %q", s, kind)
			}
		}
	}
}
