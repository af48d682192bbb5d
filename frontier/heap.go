package frontier

// hostHeap is a binary heap of hosts by their key, the earliest first; equal
// keys by id. Each host knows its index, so that it can leave from anywhere.
// It holds pointers and allocates only when it grows.
type hostHeap []*host

func (h hostHeap) less(a, b *host) bool { return a.key < b.key || a.key == b.key && a.id < b.id }

func (h hostHeap) top() *host {
	if len(h) == 0 {
		return nil
	}
	return h[0]
}

func (h *hostHeap) push(x *host) {
	x.index = int32(len(*h))
	*h = append(*h, x)
	h.up(int(x.index))
}

func (h *hostHeap) remove(x *host) {
	i, last := int(x.index), len(*h)-1
	(*h)[i] = (*h)[last]
	(*h)[i].index = int32(i)
	(*h)[last] = nil
	*h = (*h)[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
}

func (h hostHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(h[i], h[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h hostHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h.less(h[child+1], h[child]) {
			child++
		}
		if !h.less(h[child], h[i]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

func (h hostHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = int32(i), int32(j)
}
