package storage

// arena holds the values of one transaction: bbolt keeps referring to them
// until the commit, after which the memory is used again by the next.
type arena struct {
	chunks [][]byte
	used   int // chunks in use; the last of them is being filled
}

const arenaChunk = 1 << 20

// copy returns a copy of b that stays as it is until reset.
func (a *arena) copy(b []byte) []byte {
	if len(b) > arenaChunk/4 {
		return append([]byte(nil), b...)
	}
	if a.used == 0 || len(a.chunks[a.used-1])+len(b) > arenaChunk {
		if a.used == len(a.chunks) {
			a.chunks = append(a.chunks, make([]byte, 0, arenaChunk))
		}
		a.used++
	}
	chunk := &a.chunks[a.used-1]
	at := len(*chunk)
	*chunk = append(*chunk, b...)
	return (*chunk)[at:len(*chunk):len(*chunk)]
}

// reset makes the memory free for the next transaction. What the last one had no use for is let go of, so that one large transaction does not stay in memory.
func (a *arena) reset() {
	clear(a.chunks[a.used:])
	a.chunks = a.chunks[:a.used]
	for i := range a.chunks {
		a.chunks[i] = a.chunks[i][:0]
	}
	a.used = 0
}
