package storage

import (
	"bytes"

	bolt "go.etcd.io/bbolt"
)

// transaction holds the buckets and cursors of bbolt while a batch is written.
type transaction struct {
	tx                                               *bolt.Tx
	host, url, seen, state, due, recrawl, name, trap *bolt.Bucket
	hostRows, urlRows, stateRows                     rows
	seenCursor, dueCursor, recrawlCursor             *bolt.Cursor
}

// appendFill is the fill of the pages of url and state, whose rows arrive in the order of their
// keys within a host. With bbolt's half, the file would be a third larger.
const appendFill = 0.9

func (w *writer) begin(tx *bolt.Tx) {
	w.tx = tx
	w.host, w.url, w.seen = tx.Bucket(bucketHost), tx.Bucket(bucketURL), tx.Bucket(bucketSeen)
	w.state, w.due, w.name = tx.Bucket(bucketState), tx.Bucket(bucketDue), tx.Bucket(bucketName)
	w.recrawl, w.trap = tx.Bucket(bucketRecrawl), tx.Bucket(bucketTrap)
	w.url.FillPercent, w.state.FillPercent = appendFill, appendFill
	w.hostRows, w.urlRows, w.stateRows = rows{w.host.Cursor()}, rows{w.url.Cursor()}, rows{w.state.Cursor()}
	w.seenCursor, w.dueCursor, w.recrawlCursor = w.seen.Cursor(), w.due.Cursor(), w.recrawl.Cursor()
}

// rows finds the values of a bucket by their keys with one cursor, where Bucket.Get makes one for
// every call.
type rows struct{ cursor *bolt.Cursor }

// get returns the value of a key, or nil.
func (r rows) get(key []byte) []byte {
	if k, v := r.cursor.Seek(key); bytes.Equal(k, key) {
		return v
	}
	return nil
}

// arena holds the values of one transaction. bbolt refers to them until the commit; then the next
// transaction uses the memory again.
type arena struct {
	chunks [][]byte
	used   int // chunks in use, the last of them not yet full
}

// The size of the chunks of an arena: each is twice as large as the one before, up to arenaChunk. So a
// database with small transactions takes little memory.
const arenaFirst, arenaChunk = 16 << 10, 1 << 20

// copy returns a copy of b that is valid until reset.
func (a *arena) copy(b []byte) []byte {
	if len(b) > arenaChunk/4 {
		return append([]byte(nil), b...)
	}
	for a.used == 0 || len(a.chunks[a.used-1])+len(b) > cap(a.chunks[a.used-1]) {
		if n := len(a.chunks); a.used == n {
			a.chunks = append(a.chunks, make([]byte, 0, max(min(arenaFirst<<min(n, 8), arenaChunk), len(b))))
		}
		a.used++
	}
	chunk := &a.chunks[a.used-1]
	at := len(*chunk)
	*chunk = append(*chunk, b...)
	return (*chunk)[at:len(*chunk):len(*chunk)]
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
