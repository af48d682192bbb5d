package frontier

import (
	"container/heap"

	"github.com/amble-crawler/amble/storage"
)

// register holds the hosts that the frontier knows by their ids, which are dense, and where each of them is in
// the heap that it is in. With a million hosts almost every look at one misses the processor's caches; the
// places of hosts that a heap moves are looked up in an array of numbers instead.
type register struct {
	hosts []*host
	known int     // how many there are
	index []int32 // in the items of the host's heap
}

// get is a host; nil: it is not known.
func (r *register) get(id storage.HostID) *host {
	if int(id) >= len(r.hosts) {
		return nil
	}
	return r.hosts[id]
}

// put adds a host.
func (r *register) put(h *host) {
	for int(h.id) >= len(r.hosts) {
		r.hosts, r.index = append(r.hosts, nil), append(r.index, 0)
	}
	r.hosts[h.id] = h
	r.known++
}

// all calls each for every host.
func (r *register) all(yield func(*host) bool) {
	for _, h := range r.hosts {
		if h != nil && !yield(h) {
			return
		}
	}
}

// hostHeap is a heap of hosts by their key, the earliest first; equal keys by priority, then by id. A host can leave
// from anywhere. It allocates only when it grows. All that is compared lies in the items, and a parent has four
// children, which are neighbours in memory: with the root at 3 they share a line of the processor's cache.
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

// due counts the hosts with a key up to now, up to a number.
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

// push adds a host under its key, which must not change while it is in the heap.
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

// up puts an item where it belongs, from the empty place i on towards the top.
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

// down puts an item where it belongs, from the empty place i on towards the
// bottom.
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

// renewalHeap orders hosts by the instant at which a renewal may be made, the earliest first.
type recrawlHeap []*host

func (h recrawlHeap) Len() int { return len(h) }

func (h recrawlHeap) Less(i, j int) bool {
	return h[i].recrawlAt < h[j].recrawlAt || h[i].recrawlAt == h[j].recrawlAt && h[i].id < h[j].id
}

func (h recrawlHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].recrawlIndex, h[j].recrawlIndex = int32(i), int32(j)
}

// Push is heap.Push's.
func (h *recrawlHeap) Push(x any) {
	x.(*host).recrawlIndex = int32(len(*h))
	*h = append(*h, x.(*host))
}

// Pop is heap.Pop's.
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

// Where a host's renewals stand.
const (
	inNoHeap      uint8 = iota
	inDormantHeap       // the host is not active
	inActiveHeap        // the host is active
)

// renewals is the heap that a host is in.
func (f *Frontier) recrawlHeap(h *host) *recrawlHeap {
	if h.recrawlList == inDormantHeap {
		return &f.dormantRecrawls
	}
	return &f.activeRecrawls[h.recrawlLane]
}

// enterRenewals puts a host into one of the heaps.
func (f *Frontier) pushRecrawl(h *host, which uint8, key instant) {
	h.recrawlList, h.recrawlAt, h.recrawlLane = which, key, h.lane
	heap.Push(f.recrawlHeap(h), h)
}

// leaveRenewals takes a host out of the heap it is in, if it is in one.
func (f *Frontier) removeRecrawl(h *host) {
	if h.recrawlList != inNoHeap {
		heap.Remove(f.recrawlHeap(h), int(h.recrawlIndex))
		h.recrawlList = inNoHeap
	}
}
