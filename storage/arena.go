package storage

// arena holds the values of one transaction: bbolt keeps referring to them
// until the commit, after which all the memory is used again.
type arena struct {
	chunks [][]byte
	used   int // chunks in use; the last of them is being filled
}

const (
	arenaChunk  = 1 << 20
	arenaChunks = 64 // as many are kept from one transaction to the next
)

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

// reset makes the memory free for the next transaction.
func (a *arena) reset() {
	for i := range a.chunks[:a.used] {
		a.chunks[i] = a.chunks[i][:0]
	}
	if len(a.chunks) > arenaChunks {
		a.chunks = append([][]byte(nil), a.chunks[:arenaChunks]...)
	}
	a.used = 0
}
