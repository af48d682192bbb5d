package frontier

import (
	"container/heap"

	"github.com/amble-crawler/amble/storage"
)

// register holds the known hosts by their ids, which are dense, and the position of each in its
// heap. With a million hosts almost every access to one misses the processor's caches, so the heaps
// keep the positions in an array of numbers instead.
type register struct {
	hosts []*host
	known int     // number of hosts
	index []int32 // in the items of the host's heap
	room  []host  // for hosts to come
}

// get returns a host; nil if it is unknown.
func (r *register) get(id storage.HostID) *host {
	if int(id) >= len(r.hosts) {
		return nil
	}
	return r.hosts[id]
}

// ensure returns the entry of a host, and makes one if there is none.
func (r *register) ensure(id storage.HostID) *host {
	h := r.get(id)
	if h == nil {
		if len(r.room) == 0 {
			r.room = make([]host, 1)
		}
		h, r.room = &r.room[0], r.room[1:]
		*h = host{id: id, ready: always, workAt: always, failingSince: never}
		r.put(h)
	}
	return h
}

// put adds a host.
func (r *register) put(h *host) {
	for int(h.id) >= len(r.hosts) {
		r.hosts, r.index = append(r.hosts, nil), append(r.index, 0)
	}
	r.hosts[h.id] = h
	r.known++
}

// all iterates over the hosts.
func (r *register) all(yield func(*host) bool) {
	for _, h := range r.hosts {
		if h != nil && !yield(h) {
			return
		}
	}
}

// hostHeap is a heap of hosts by readyAt, the earliest first; equal ones by priority, then by id. A
// host can leave from any position. The heap allocates only when it grows. Everything that is
// compared lies in the items. A parent has four children, which are neighbours in memory: with the
// root at 3 they share a cache line.
type hostHeap struct {
	of    *register
	items []heapItem // from root on
}

type heapItem struct {
	key      instant
	id       storage.HostID
	priority int8
}

const (
	root     = 3
	children = 4
)

func firstChild(i int) int { return children * (i - root + 1) }

func parentOf(i int) int { return i/children + root - 1 }

func newHeap(of *register) hostHeap { return hostHeap{of: of, items: make([]heapItem, root)} }

func (i *heapItem) before(j *heapItem) bool {
	switch {
	case i.key != j.key:
		return i.key < j.key
	case i.priority != j.priority:
		return i.priority > j.priority
	}
	return i.id < j.id
}

func (h *hostHeap) size() int { return len(h.items) - root }

func (h *hostHeap) top() *host {
	if h.size() == 0 {
		return nil
	}
	return h.of.hosts[h.items[root].id]
}

// nextAt is the key of the top; never: there is none.
func (h *hostHeap) nextAt() instant {
	if h.size() == 0 {
		return never
	}
	return h.items[root].key
}

// due counts the hosts with a key of at most now; it stops at most.
func (h *hostHeap) due(now instant, most int) int { return h.dueFrom(root, now, most) }

func (h *hostHeap) dueFrom(i int, now instant, most int) int {
	if most <= 0 || i >= len(h.items) || h.items[i].key > now {
		return 0
	}
	n := 1
	for child := firstChild(i); child < min(firstChild(i)+children, len(h.items)); child++ {
		n += h.dueFrom(child, now, most-n)
	}
	return n
}

// push adds a host under its readyAt, which must not change while it is in the heap.
func (h *hostHeap) push(x *host, priority int8) {
	h.items = append(h.items, heapItem{})
	h.up(len(h.items)-1, heapItem{x.readyAt, x.id, priority})
}

func (h *hostHeap) remove(x *host) {
	i, end := int(h.of.index[x.id]), len(h.items)-1
	last := h.items[end]
	h.items = h.items[:end]
	switch {
	case i == end:
	case i > root && last.before(&h.items[parentOf(i)]):
		h.up(i, last)
	default:
		h.down(i, last)
	}
}

// up moves an item from the empty position i towards the top.
func (h *hostHeap) up(i int, x heapItem) {
	for i > root {
		parent := parentOf(i)
		if !x.before(&h.items[parent]) {
			break
		}
		h.set(i, h.items[parent])
		i = parent
	}
	h.set(i, x)
}

// down moves an item from the empty position i towards the bottom.
func (h *hostHeap) down(i int, x heapItem) {
	for {
		first := firstChild(i)
		if first >= len(h.items) {
			break
		}
		least := first
		for child := first + 1; child < min(first+children, len(h.items)); child++ {
			if h.items[child].before(&h.items[least]) {
				least = child
			}
		}
		if !h.items[least].before(&x) {
			break
		}
		h.set(i, h.items[least])
		i = least
	}
	h.set(i, x)
}

func (h *hostHeap) set(i int, x heapItem) {
	h.items[i] = x
	h.of.index[x.id] = int32(i)
}

// recrawlHeap is a heap of hosts by the instant at which they may be recrawled, the earliest first.
type recrawlHeap []*host

// Len implements heap.Interface.
func (h recrawlHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h recrawlHeap) Less(i, j int) bool {
	return h[i].recrawlAt < h[j].recrawlAt || h[i].recrawlAt == h[j].recrawlAt && h[i].id < h[j].id
}

// Swap implements heap.Interface.
func (h recrawlHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].recrawlIndex, h[j].recrawlIndex = int32(i), int32(j)
}

// Push implements heap.Interface.
func (h *recrawlHeap) Push(x any) {
	x.(*host).recrawlIndex = int32(len(*h))
	*h = append(*h, x.(*host))
}

// Pop implements heap.Interface.
func (h *recrawlHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}

func (h recrawlHeap) top() *host {
	if len(h) == 0 {
		return nil
	}
	return h[0]
}

// The heap of recrawls that a host is in.
const (
	inNoHeap      uint8 = iota
	inDormantHeap       // the host is not active
	inActiveHeap        // the host is active; plus the lane of the heap
)

// recrawlHeap is the heap of recrawls that a host is in.
func (q *laneQueues) recrawlHeap(h *host) *recrawlHeap {
	if h.recrawlList == inDormantHeap {
		return &q.dormantRecrawls
	}
	return &q.activeRecrawls[h.recrawlList-inActiveHeap]
}

// pushRecrawl adds a host to one of the heaps.
func (q *laneQueues) pushRecrawl(h *host, which uint8, key instant) {
	if h.recrawlList, h.recrawlAt = which, key; which == inActiveHeap {
		h.recrawlList += uint8(h.lane)
	}
	heap.Push(q.recrawlHeap(h), h)
}

// removeRecrawl removes a host from its heap, if it is in one.
func (q *laneQueues) removeRecrawl(h *host) {
	if h.recrawlList != inNoHeap {
		heap.Remove(q.recrawlHeap(h), int(h.recrawlIndex))
		h.recrawlList = inNoHeap
	}
}
