package frontier

// hostHeap is a heap of hosts by their key, the earliest first; equal keys by
// id. Each host knows its index, so that it can leave from anywhere. It
// allocates only when it grows. With a million hosts in it almost every look at
// one misses the processor's caches: so keys are kept beside the hosts, and a
// parent has four children, which are neighbours in memory.
type hostHeap []heapItem

type heapItem struct {
	key  instant
	host *host
}

// children is how many a parent has.
const children = 4

func (i heapItem) before(j heapItem) bool {
	return i.key < j.key || i.key == j.key && i.host.id < j.host.id
}

func (h hostHeap) top() *host {
	if len(h) == 0 {
		return nil
	}
	return h[0].host
}

// push adds a host under its key, which must not change while it is in the heap.
func (h *hostHeap) push(x *host) {
	*h = append(*h, heapItem{})
	h.up(len(*h)-1, heapItem{x.key, x})
}

func (h *hostHeap) remove(x *host) {
	i, end := int(x.index), len(*h)-1
	last := (*h)[end]
	(*h)[end] = heapItem{}
	*h = (*h)[:end]
	switch {
	case i == end:
	case i > 0 && last.before((*h)[(i-1)/children]):
		h.up(i, last)
	default:
		h.down(i, last)
	}
}

// up puts an item where it belongs, from the empty place i on towards the top.
func (h hostHeap) up(i int, x heapItem) {
	for i > 0 {
		parent := (i - 1) / children
		if !x.before(h[parent]) {
			break
		}
		h.set(i, h[parent])
		i = parent
	}
	h.set(i, x)
}

// down puts an item where it belongs, from the empty place i on towards the
// bottom.
func (h hostHeap) down(i int, x heapItem) {
	for {
		first := children*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for child := first + 1; child < min(first+children, len(h)); child++ {
			if h[child].before(h[least]) {
				least = child
			}
		}
		if !h[least].before(x) {
			break
		}
		h.set(i, h[least])
		i = least
	}
	h.set(i, x)
}

func (h hostHeap) set(i int, x heapItem) {
	h[i] = x
	x.host.index = int32(i)
}
