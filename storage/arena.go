package storage

// arena holds the values of one transaction. bbolt refers to them until the commit; then the next
// transaction uses the memory again.
type arena struct {
	chunks [][]byte
	used   int // chunks in use, the last of them not yet full
}

// The size of the chunks of an arena: each is twice as large as the one before, up to arenaChunk. So a
// database with small transactions takes little memory.
const arenaFirst, arenaChunk = 16 << 10, 1 << 20

// take returns room for size bytes that is valid until reset.
func (a *arena) take(size int) []byte {
	if size > arenaChunk/4 {
		return make([]byte, 0, size)
	}
	for a.used == 0 || len(a.chunks[a.used-1])+size > cap(a.chunks[a.used-1]) {
		if n := len(a.chunks); a.used == n {
			a.chunks = append(a.chunks, make([]byte, 0, max(min(arenaFirst<<min(n, 8), arenaChunk), size)))
		}
		a.used++
	}
	chunk := &a.chunks[a.used-1]
	at := len(*chunk)
	*chunk = (*chunk)[:at+size]
	return (*chunk)[at : at : at+size]
}

// reset makes the memory free for the next transaction. It releases what the last one did not use,
// so that one large transaction does not keep its memory for ever.
func (a *arena) reset() {
	clear(a.chunks[a.used:])
	a.chunks = a.chunks[:a.used]
	for i := range a.chunks {
		a.chunks[i] = a.chunks[i][:0]
	}
	a.used = 0
}
