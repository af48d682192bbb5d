// Package arena has memory for values that are all dropped at the same time.
package arena

// Arena holds the values of one transaction. bbolt refers to them until the commit; then the next
// transaction uses the memory again. The zero value is ready for use, by one goroutine at a time.
type Arena struct {
	chunks [][]byte
	used   int // chunks in use, the last of them not yet full
}

// The size of the chunks of an arena: each is twice as large as the one before, up to chunk. So a
// database with small transactions takes little memory.
const first, chunk = 16 << 10, 1 << 20

// Take returns room for size bytes that is valid until Reset.
func (a *Arena) Take(size int) []byte {
	if size > chunk/4 {
		return make([]byte, 0, size)
	}
	for a.used == 0 || len(a.chunks[a.used-1])+size > cap(a.chunks[a.used-1]) {
		if n := len(a.chunks); a.used == n {
			a.chunks = append(a.chunks, make([]byte, 0, max(min(first<<min(n, 8), chunk), size)))
		}
		a.used++
	}
	c := &a.chunks[a.used-1]
	at := len(*c)
	*c = (*c)[:at+size]
	return (*c)[at : at : at+size]
}

// Reset makes the memory free for the next transaction. It releases what the last one did not use,
// so that one large transaction does not keep its memory for ever.
func (a *Arena) Reset() {
	clear(a.chunks[a.used:])
	a.chunks = a.chunks[:a.used]
	for i := range a.chunks {
		a.chunks[i] = a.chunks[i][:0]
	}
	a.used = 0
}
