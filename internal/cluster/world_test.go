package cluster

import (
	"container/heap"
	"fmt"
	"maps"
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
	faulty    bool // faults happen
	down      bool // the log answers nobody
	processes []*process
	registers
	inFlight  []*webRequest
	lastEnd   map[string]time.Duration // of the requests under a shared limit
	lastStart map[string]time.Duration // by shard and key
	opened    map[OpenEngine]bool
	violation string                  // the first that was found
	alter     func(o *Options, i int) // breaks the options of a process
	turns     int
}

// registers is the log: conditional writes, and all that ever stood in each register.
type registers struct {
	last   Sequence
	keys   map[string][]keyVersion
	epochs [][]epochVersion
}

type keyVersion struct {
	seq Sequence
	key Key
}

type epochVersion struct {
	seq   Sequence
	epoch Epoch
}

// process is a process of a node. It may be dead, stopped by a signal, or cut off from the log.
type process struct {
	w          *world
	i          int
	name       string
	n          *Node // nil: dead
	life       int   // grows with each start, so that messages to an earlier one are lost
	born       Sequence
	paused     bool
	waiting    []func() // what reaches it while it is paused
	cut        bool
	closing    bool
	base       time.Duration // the clock showed offset then
	offset     Instant
	rate       float64
	stepped    time.Duration // when the clock was last set
	mayRestart time.Duration
}

// webRequest is a request to a host of a shard, perhaps under a shared limit.
type webRequest struct {
	p     *process
	life  int
	shard Shard
	key   string
	ended bool
}

// The limits that all shards share: a number of slots, and a delay.
var worldLimits = map[string]Limit{"slots": {Slots: 3}, "delay": {Slots: 1, Delay: 4 * time.Second}}

const (
	worldShards = 8
	worldDrift  = 0.03                   // how much faster or slower a clock may run
	worldStep   = 100 * time.Millisecond // how far a clock may be set, once in 10 s
)

func newWorld(seed uint64) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 1)), faulty: true,
		registers: registers{keys: make(map[string][]keyVersion), epochs: make([][]epochVersion, worldShards)},
		lastEnd:   make(map[string]time.Duration), lastStart: make(map[string]time.Duration),
		opened: make(map[OpenEngine]bool)}
	return w
}

// populate starts the processes. The last has the name of the one before it.
func (w *world) populate(count int) {
	for i := range count {
		name := fmt.Sprint("node", min(i, count-2))
		w.processes = append(w.processes, &process{w: w, i: i, name: name, rate: 1, offset: Instant(w.between(0, time.Hour))})
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
	w.loop(func() time.Duration { return w.between(30*time.Second, 3*time.Minute) }, func() {
		if w.faulty {
			w.down = true
			w.after(w.between(time.Second, 30*time.Second), func() { w.down = false })
		}
	})
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
func (t *timeline) Push(e any)   { *t = append(*t, e.(event)) }
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
// shared limit are not more than there are.
func (w *world) check() {
	var owner [worldShards]*process
	var slots [2]int
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
			for _, a := range h.allowances {
				if p.clock() < a.until && a.key == "slots" {
					slots[0] += a.slots
				} else if p.clock() < a.until {
					slots[1] += a.slots
				}
			}
		}
	}
	if slots[0] > worldLimits["slots"].Slots || slots[1] > worldLimits["delay"].Slots {
		w.fail("slots %v", slots)
	}
}

// clock is what the clock of a process shows.
func (p *process) clock() Instant {
	return p.offset + Instant(float64(p.w.now-p.base)*p.rate)
}

// setClock changes the rate of the clock, and sets it.
func (p *process) setClock(rate float64, step time.Duration) {
	p.offset, p.base = p.clock().Add(step), p.w.now
	p.rate = rate
	for _, r := range slices.Clone(p.w.inFlight) {
		r.breakOff()
	}
}

// start starts the process, if it is dead. It may know that its predecessor has ended.
func (p *process) start() {
	w := p.w
	if p.n != nil || w.now < p.mayRestart {
		return
	}
	o := DefaultOptions()
	o.Node, o.Process, o.Shards = p.name, w.random.Uint64(), worldShards
	o.Limit = func(key string) Limit { return worldLimits[key] }
	if w.random.IntN(2) == 0 {
		o.Predecessor = p.born
	}
	if w.alter != nil {
		w.alter(&o, p.i)
	}
	p.life++
	p.paused, p.closing, p.waiting = false, false, nil
	p.n = newNode(p.clock(), o)
	p.resync()
	w.after(w.between(0, time.Second), p.tick)
}

// kill ends the process. The system closes its connections.
func (p *process) kill() {
	if p.n == nil {
		return
	}
	p.born = max(p.born, p.n.self.born, p.n.self.ended)
	p.n = nil
	for _, r := range slices.Clone(p.w.inFlight) {
		if r.p == p {
			r.end()
		}
	}
	again := p.w.between(0, time.Second)
	if p.w.faulty {
		again = p.w.between(0, 40*time.Second)
	}
	p.mayRestart = p.w.now + again
	p.w.after(again, p.start)
}

// deliver calls f in the process now, or when it goes on; never if it dies before.
func (p *process) deliver(life int, f func(n *Node, now Instant)) {
	if p.n == nil || p.life != life {
		return
	}
	if p.paused {
		p.waiting = append(p.waiting, func() { p.deliver(life, f) })
		return
	}
	f(p.n, p.clock())
	p.act()
}

func (p *process) tick() {
	if !p.paused {
		p.deliver(p.life, func(n *Node, now Instant) { n.Tick(now) })
	}
}

// send brings a message from the process to the log, or an answer back: late, more than once, or
// never.
func (p *process) send(do func()) {
	w := p.w
	away := p.cut || w.down
	if away && !w.chance(0.4) || w.chance(0.03) {
		return
	}
	for {
		delay := w.between(time.Millisecond, 20*time.Millisecond)
		if away || w.chance(0.03) {
			delay = w.between(0, 30*time.Second)
		}
		w.after(delay, do)
		if !w.chance(0.03) {
			return
		}
	}
}

// answer brings an answer back to the process.
func (p *process) answer(f func(n *Node, now Instant)) {
	life := p.life
	p.send(func() { p.deliver(life, f) })
}

// act carries out the actions of the node.
func (p *process) act() {
	w := p.w
	for _, action := range slices.Clone(p.n.Actions()) {
		life := p.life
		switch a := action.(type) {
		case WriteKey:
			p.send(func() { w.writeKey(p, life, a) })
		case WriteEpoch:
			p.send(func() { w.writeEpoch(p, life, a) })
		case ReadKey:
			p.send(func() {
				if versions := w.keys[a.Node]; len(versions) > 0 && p.life == life {
					v := versions[w.stale(len(versions))]
					p.answer(func(n *Node, now Instant) { n.KeySeen(now, a.Node, v.seq, v.key) })
				}
			})
		case ReadEpoch:
			p.send(func() {
				if versions := w.epochs[a.Shard]; len(versions) > 0 && p.life == life {
					v := versions[w.stale(len(versions))]
					p.answer(func(n *Node, now Instant) { n.EpochSeen(now, a.Shard, v.seq, v.epoch) })
				}
			})
		case OpenEngine:
			if w.opened[a] {
				w.fail("process %d opens shard %d with epoch %d again", p.i, a.Shard, a.Epoch)
			}
			w.opened[a] = true
		case StopEngine:
			p.stopEngine(a)
		case SendGrantRequest:
			p.toOwner(GranterOf(a.Request.Key, worldShards), func(n *Node, now Instant) { n.GrantRequested(now, a.Request) })
		case SendGrant:
			p.toOwner(a.Grant.User, func(n *Node, now Instant) { n.Granted(now, a.Grant) })
		case NameTaken:
			p.kill()
			return
		case Left:
			if slices.ContainsFunc(w.inFlight, func(r *webRequest) bool { return r.p == p }) {
				w.fail("process %d left with requests in flight", p.i)
			}
			p.kill()
			return
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

// toOwner brings a message to all processes that own a shard, or that recently did.
func (p *process) toOwner(s Shard, f func(n *Node, now Instant)) {
	for _, to := range p.w.processes {
		if to.n != nil && to.n.byShard[s] != nil {
			life := to.life
			p.send(func() {
				if !to.cut {
					to.deliver(life, f)
				}
			})
		}
	}
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
		newest = keyVersion{w.last, a.Key}
		w.keys[a.Node] = append(versions, newest)
		w.publish(func(n *Node, now Instant) { n.KeySeen(now, a.Node, newest.seq, a.Key) })
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

// publish brings a message to the watches of all processes.
func (w *world) publish(f func(n *Node, now Instant)) {
	for _, p := range w.processes {
		if p.n != nil {
			p.answer(f)
		}
	}
}

// resync repeats all registers to a process, as a watch does when it begins again.
func (p *process) resync() {
	if p.n == nil || p.cut || p.w.down {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(p.w.keys)) {
		versions := p.w.keys[name]
		v := versions[len(versions)-1]
		p.answer(func(n *Node, now Instant) { n.KeySeen(now, name, v.seq, v.key) })
	}
	for s, versions := range p.w.epochs {
		if len(versions) > 0 {
			v := versions[len(versions)-1]
			p.answer(func(n *Node, now Instant) { n.EpochSeen(now, Shard(s), v.seq, v.epoch) })
		}
	}
}

// crawl makes a request to a host of some shard, if the process may.
func (p *process) crawl() {
	w := p.w
	if p.n == nil || p.paused {
		return
	}
	now := p.clock()
	for _, h := range slices.Clone(p.n.held) {
		if h.engine != running {
			continue
		}
		for _, key := range []string{"", "slots", "delay"} {
			if w.chance(0.7) {
				continue
			}
			if key != "" {
				want := 1
				if w.faulty {
					want = w.random.IntN(4)
				}
				p.n.Need(now, h.shard, key, want)
			}
			if own := fmt.Sprint(p.i, p.life, h.shard, key); w.now-w.lastEnd[own] < worldLimits[key].Delay {
				continue // the engine keeps the delay between its own requests
			}
			if key == "" && p.n.MayStart(now, h.shard) || key != "" && p.n.Start(now, h.shard, key) {
				w.begin(&webRequest{p: p, life: p.life, shard: h.shard, key: key})
			}
		}
		if epochs := w.epochs[h.shard]; epochs[len(epochs)-1].seq != h.opened || w.chance(0.001) {
			p.n.LogRefused(now, h.shard, h.opened)
		}
	}
	p.act()
}

// begin begins a request, and holds that no other owner has one in flight to the shard, and that
// the shared limit allows it.
func (w *world) begin(r *webRequest) {
	together := 1
	for _, other := range w.inFlight {
		if other.shard == r.shard && (other.p != r.p || other.life != r.life) {
			w.fail("requests of processes %d and %d to shard %d", other.p.i, r.p.i, r.shard)
		}
		if other.key == r.key {
			together++
		}
	}
	if r.key != "" {
		limit := worldLimits[r.key]
		end, known := w.lastEnd[r.key]
		if together > limit.Slots || known && w.now-end < limit.Delay {
			w.fail("%d requests, %v after the last, under %q", together, w.now-end, r.key)
		}
	}
	w.lastStart[fmt.Sprint(r.shard, r.key)] = w.now
	w.inFlight = append(w.inFlight, r)
	length := w.between(10*time.Millisecond, 500*time.Millisecond)
	if w.chance(0.1) {
		length = w.between(0, 40*time.Second)
	}
	w.after(length, r.end)
	r.watch()
}

// watch breaks off the request when the trust of its process, or its grant, ends.
func (r *webRequest) watch() {
	if r.ended {
		return
	}
	left := r.until().Sub(r.p.clock())
	if left <= 0 {
		r.end()
		return
	}
	r.p.w.after(time.Duration(float64(left)/r.p.rate)+1, r.watch)
}

func (r *webRequest) until() Instant {
	if r.key != "" {
		return r.p.n.Until(r.shard, r.key)
	}
	return r.p.n.Trust()
}

// breakOff ends a request that may not go on.
func (r *webRequest) breakOff() {
	if r.p.n != nil && r.until() <= r.p.clock() {
		r.end()
	}
}

// end ends the request.
func (r *webRequest) end() {
	if r.ended {
		return
	}
	w := r.p.w
	r.ended = true
	w.inFlight = slices.DeleteFunc(w.inFlight, func(other *webRequest) bool { return other == r })
	if r.key != "" {
		w.lastEnd[r.key] = w.now
		w.lastEnd[fmt.Sprint(r.p.i, r.life, r.shard, r.key)] = w.now
	}
	r.p.deliver(r.life, func(n *Node, now Instant) {
		if r.key != "" {
			n.End(now, r.shard, r.key)
		}
		if h := n.byShard[r.shard]; h != nil && h.engine == draining {
			r.p.engineEnds(r.shard)
		}
	})
}

// stopEngine breaks off the requests of an engine, or waits for their end.
func (p *process) stopEngine(a StopEngine) {
	for _, r := range slices.Clone(p.w.inFlight) {
		if r.p == p && r.shard == a.Shard && !a.Orderly {
			r.end()
		}
	}
	p.engineEnds(a.Shard)
}

// engineEnds reports the end of an engine once no request of it is in flight.
func (p *process) engineEnds(s Shard) {
	w, life := p.w, p.life
	w.after(w.between(time.Millisecond, time.Second), func() {
		if p.life == life && !slices.ContainsFunc(w.inFlight, func(r *webRequest) bool { return r.p == p && r.shard == s }) {
			p.deliver(life, func(n *Node, now Instant) { n.EngineStopped(now, s) })
		}
	})
}

// fault makes one fault happen to the process.
func (p *process) fault() {
	w := p.w
	if !w.faulty {
		return
	}
	switch w.random.IntN(12) {
	case 0:
		p.kill()
	case 1, 2:
		p.pause(w.between(0, 70*time.Second))
	case 3, 4, 5, 6:
		if !p.cut {
			p.cut = true
			w.after(w.between(0, 60*time.Second), func() { p.cut = false })
		}
	case 7:
		if p.n != nil && !p.paused {
			p.closing = true
			p.n.Drain(p.clock(), w.random.IntN(2) == 0)
			p.act()
		}
	default:
		rate, step := 1+worldDrift*(2*w.random.Float64()-1), time.Duration(0)
		if w.random.IntN(2) == 0 {
			rate = 1 + worldDrift*float64(1-2*w.random.IntN(2))
		}
		if w.now-p.stepped > 10*time.Second {
			step, p.stepped = w.between(-worldStep, worldStep), w.now
		}
		p.setClock(rate, step)
	}
}

// pause stops the process by a signal for some time. Its requests stay with the servers until it
// goes on, but it sends nothing.
func (p *process) pause(d time.Duration) {
	if p.n == nil || p.paused {
		return
	}
	p.paused = true
	life := p.life
	p.w.after(d, func() { p.resume(life) })
}

func (p *process) resume(life int) {
	if p.n == nil || p.life != life || !p.paused {
		return
	}
	p.paused = false
	waiting := p.waiting
	p.waiting = nil
	for _, f := range waiting {
		f()
	}
}

// endFaults ends all faults. No two processes of a name and none that was drained are left, and in some
// clusters one more is dead for good, or all begin again.
func (w *world) endFaults() {
	w.faulty, w.down = false, false
	last := len(w.processes) - 1
	for i, p := range w.processes {
		p.cut = false
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

// served holds that each shard has made a request under each limit since an instant.
func (w *world) served(since time.Duration) {
	for s := range worldShards {
		for _, key := range []string{"", "slots", "delay"} {
			if w.lastStart[fmt.Sprint(s, key)] < since {
				w.fail("shard %d has not made a request under %q", s, key)
			}
		}
	}
}
