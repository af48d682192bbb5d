package cluster

import (
	"maps"
	"slices"
	"time"
)

// process is a process of a node. It may be dead, stopped by a signal, or cut off from the log.
type process struct {
	w           *world
	i           int
	name        string
	n           *Node // nil: dead
	life        int   // grows with each start, so that messages to an earlier one are lost
	incarnation Sequence
	paused      bool
	waiting     []func() // what reaches it while it is paused
	cut         bool
	mute        bool // cut off from the log only
	closing     bool
	base        time.Duration // the clock showed offset then
	offset      Instant
	rate        float64
	stepped     time.Duration // when the clock was last set
	mayRestart  time.Duration
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
		if r.p == p {
			r.watch() // with the rate that the clock has now
		}
	}
}

// start starts the process, if it is dead. It may know that its predecessor has ended.
func (p *process) start() {
	w := p.w
	if p.n != nil || w.now < p.mayRestart {
		return
	}
	o := DefaultOptions()
	o.Node, o.Process, o.Shards, o.FaultPause = p.name, w.random.Uint64(), worldShards, 2*time.Second
	if w.random.IntN(2) == 0 {
		o.Predecessor = p.incarnation
	}
	if w.alter != nil {
		w.alter(&o, p.i)
	}
	p.life++
	p.paused, p.closing, p.waiting = false, false, nil
	p.n = newNode(p.clock(), o)
	if !w.chance(0.5) {
		p.resync()
	}
	w.after(w.between(0, time.Second), p.tick)
}

// replace kills the process. The next one knows that, begins at once, and leaves in an orderly way soon.
func (p *process) replace() {
	p.kill()
	p.mayRestart = 0
	p.start()
	p.n.o.Predecessor = p.incarnation
	p.leaveSoon(p.life, p.w.random.IntN(2)*p.w.random.IntN(40))
}

// leaveSoon makes the process leave so many tenths of a second after it has become a member.
func (p *process) leaveSoon(life, after int) {
	p.w.after(100*time.Millisecond, func() {
		switch {
		case p.life != life || p.n == nil:
		case p.n.Incarnation() == 0:
			p.leaveSoon(life, after)
		case after > 0:
			p.leaveSoon(life, after-1)
		default:
			p.leave()
		}
	})
}

// kill ends the process. The system closes its connections.
func (p *process) kill() {
	if p.n == nil {
		return
	}
	p.incarnation = max(p.incarnation, p.n.self.incarnation, p.n.self.ended)
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

// leave makes the process leave in an orderly way. It comes back.
func (p *process) leave() {
	if p.n != nil {
		p.closing = true
		p.n.Drain(p.clock(), true)
		p.act()
	}
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

// send brings a message from the process to the log, or an answer back.
func (p *process) send(do func()) { p.transmit(p.cut || p.mute || p.w.down, do) }

// transmit brings a message somewhere: late, more than once, or never.
func (p *process) transmit(away bool, do func()) {
	w := p.w
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
			if w.forgeKey != nil {
				w.forgeKey(&a.Key)
			}
			p.send(func() { w.writeKey(p, life, a) })
		case WriteEpoch:
			if w.forge != nil {
				w.forge(&a.Epoch)
			}
			p.send(func() { w.writeEpoch(p, life, a) })
		case ReadKey:
			p.send(func() {
				if versions := w.keys[a.Node]; len(versions) > 0 && p.life == life {
					v := versions[w.stale(len(versions))]
					p.answer(func(n *Node, now Instant) { v.seen(n, now, a.Node) })
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
			s := GranterOf(a.Request.Key, worldShards)
			p.tell(func(to *process) bool { return to.n.byShard[s] != nil },
				func(n *Node, now Instant) { n.GrantRequested(now, a.Request) })
		case SendGrant:
			if w.lend != nil {
				w.lend(&a.Grant)
			}
			p.tell(func(to *process) bool { return to.name == a.Grant.User.Node },
				func(n *Node, now Instant) { n.Granted(now, a.Grant) })
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

// tell brings a message to some processes: those that own a shard, or recently did, or have a name.
func (p *process) tell(is func(to *process) bool, f func(n *Node, now Instant)) {
	for _, to := range p.w.processes {
		if to.n != nil && is(to) {
			life := to.life
			p.transmit(p.cut || p.w.down, func() {
				if !to.cut {
					to.deliver(life, f)
				}
			})
		}
	}
}

// resync repeats all registers to a process, as a watch does when it begins again.
func (p *process) resync() {
	if p.n == nil || p.cut || p.mute || p.w.down {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(p.w.keys)) {
		versions := p.w.keys[name]
		v := versions[len(versions)-1]
		p.answer(func(n *Node, now Instant) { v.seen(n, now, name) })
	}
	for s, versions := range p.w.epochs {
		if len(versions) > 0 {
			v := versions[len(versions)-1]
			p.answer(func(n *Node, now Instant) { n.EpochSeen(now, Shard(s), v.seq, v.epoch) })
		}
	}
}

// crawl makes requests to hosts of the shards that the process has, where it may. Those that have
// waited longest come first.
func (p *process) crawl() {
	w := p.w
	if p.n == nil || p.paused {
		return
	}
	now := p.clock()
	turn := newTurn(p, now)
	for _, r := range w.candidates(p) {
		turn.serve(r)
	}
	turn.tell()
	for _, h := range slices.Clone(p.n.held) {
		if h.engine != running {
			continue
		}
		if w.chance(0.001) {
			p.failEngine(h.shard)
			continue
		}
		if epochs := w.epochs[h.shard]; epochs[len(epochs)-1].seq != h.opened || w.chance(0.001) {
			p.n.LogRefused(now, h.shard, h.opened)
		}
	}
	p.act()
}

// failEngine ends an engine for a reason that is not the node's.
func (p *process) failEngine(s Shard) {
	for _, r := range slices.Clone(p.w.inFlight) {
		if r.p == p && r.shard == s {
			r.end()
		}
	}
	p.n.EngineFailed(p.clock(), s, Fault{Reason: "a message"})
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
		if p.life == life &&
			!slices.ContainsFunc(w.inFlight, func(r *webRequest) bool { return r.p == p && r.shard == s }) {
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
	kind := w.random.IntN(12)
	if w.calm {
		kind = 8 // the clock
	}
	switch kind {
	case 0:
		p.kill()
	case 1, 2:
		p.pause(w.between(0, 70*time.Second))
	case 3, 4, 5, 6:
		if !p.cut && !p.mute {
			p.mute = w.random.IntN(2) == 0
			p.cut = !p.mute
			w.after(w.between(0, 60*time.Second), func() { p.cut, p.mute = false, false })
		}
	case 7:
		if p.n != nil && !p.paused {
			if p.closing && w.random.IntN(2) == 0 {
				p.n.Undrain(p.clock())
			} else {
				p.n.Drain(p.clock(), w.random.IntN(2) == 0)
			}
			p.closing = true
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
