package cluster

import (
	"cmp"
	"slices"
	"strings"
)

// worldKinds are the limits that requests of the model are under, in the order in which they are
// taken. Each shard has a request of each kind to make at all times, unless the world is calm.
var worldKinds = []string{"", "slots", "delay", "another", "delay another", "rare"}

var worldKeys = []string{"slots", "delay", "another", "rare"}

// isWanted reports whether a shard has a request of a kind to make. In a calm world, while faults happen,
// one shard at a time has one, for some seconds. So users come and go, and keep slots that they do not use.
func (w *world) isWanted(kind int, s Shard) bool {
	return !w.calm || !w.faulty || mix(uint64(w.now/w.wanted)<<8|uint64(kind))%worldShards == uint64(s)
}

// candidates returns the requests that a process could make, those of the shard and kind that have not
// been made for longest first.
func (w *world) candidates(p *process) (all []*webRequest) {
	for _, h := range p.n.held {
		for i, kind := range worldKinds {
			if h.engine == running && w.isWanted(i, h.shard) && !w.chance(0.7) {
				all = append(all,
					&webRequest{p: p, life: p.life, shard: h.shard, kind: kind, keys: strings.Fields(kind)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *webRequest) int {
		return cmp.Compare(w.lastStart[a.name()], w.lastStart[b.name()])
	})
	return all
}

// limit returns the limit by the settings of a process.
func (p *process) limit(key string) Limit {
	l := worldLimits[key]
	if p.w.lax != nil {
		p.w.lax(&l, p.i)
	}
	return l
}

// turn is a moment at which a process makes requests. It finds out what it needs of each limit: a
// request that waits for its second limit holds the first.
type turn struct {
	p    *process
	now  Instant
	need map[string]Need
}

func newTurn(p *process, now Instant) *turn {
	t := &turn{p, now, make(map[string]Need)}
	for _, key := range worldKeys {
		if !p.w.chance(0.3) {
			t.need[key] = Need{Limit: p.limit(key)}
		}
	}
	return t
}

// serve makes a request if it may be made now.
func (t *turn) serve(r *webRequest) {
	p, free := t.p, 0
	for free < len(r.keys) && t.isFree(r.keys[free]) {
		free++
	}
	if free < len(r.keys) {
		t.wait(r.keys[free], false)
		for _, key := range r.keys[:free] {
			t.wait(key, true)
		}
		return
	}
	if !p.n.MayStart(t.now, r.shard) {
		return
	}
	for _, key := range r.keys {
		if !p.n.Start(t.now, key) {
			p.w.fail("process %d may start under %q and cannot", p.i, key)
		}
	}
	p.w.begin(r)
}

// isFree reports whether a request may start under a limit, by what the process has of it and by its
// own requests.
func (t *turn) isFree(key string) bool {
	if t.need[key].Hold {
		return false
	}
	ended, known := t.p.w.lastEnd[t.p.limitName(key)]
	have := t.p.n.Turn(t.now, key)
	return have.Free > 0 && have.After == 0 && (!known || t.p.w.now-ended >= worldLimits[key].Delay)
}

func (t *turn) wait(key string, hold bool) {
	n := t.need[key]
	n.Limit, n.Waiting, n.Hold = t.p.limit(key), n.Waiting+1, n.Hold || hold
	t.need[key] = n
}

// tell tells the node what is needed.
func (t *turn) tell() {
	for _, key := range worldKeys {
		if need, is := t.need[key]; is {
			t.p.n.Need(t.now, key, need)
		}
	}
}
