//go:build !core

package service

import (
	"context"
	"encoding/binary"
	"io"
	"slices"
	"sync"
)

// budget is the memory for the messages of all streams. It is safe for concurrent use.
type budget struct {
	size int64

	mu      sync.Mutex
	free    int64    // negative: messages turned out to be larger than they seemed
	waiting []*claim // in the order in which they came
}

// claim is one who waits for memory.
type claim struct {
	bytes  int64
	served chan struct{} // closed
}

func newBudget(size int64) *budget { return &budget{size: size, free: size} }

// held returns how many bytes are taken.
func (b *budget) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size - b.free
}

// take waits until there is room for n bytes, and takes them; 0: until what is taken is within the budget. More than
// the budget is served when nobody else has any. The error is that of ctx.
func (b *budget) take(ctx context.Context, n int64) error {
	b.mu.Lock()
	c := &claim{n, make(chan struct{})}
	b.waiting = append(b.waiting, c)
	b.serve()
	b.mu.Unlock()
	select {
	case <-c.served:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, c); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	} else {
		b.free += n
	}
	b.serve()
	return ctx.Err()
}

// release gives n bytes back; a negative number takes them at once.
func (b *budget) release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.serve()
}

// serve gives what there is in the order of the claims. Those of nothing have no turn: what they wait for ends only
// when others give back, and these may wait for them.
func (b *budget) serve() {
	first := true
	b.waiting = slices.DeleteFunc(b.waiting, func(c *claim) bool {
		served := b.free >= 0 && c.bytes == 0 || first && (b.free >= c.bytes || b.free == b.size)
		if first = first && (served || c.bytes == 0); served {
			b.free -= c.bytes
			close(c.served)
		}
		return served
	})
}

// envelope is the prefix of a message in a stream: flags and the length of the payload.
const envelope = 5

// smallPayload is how many bytes of a payload are kept for the next one.
const smallPayload = 64 << 10

// inlet is the body of a stream with puts. It reads a message as a whole before anybody decodes it, so that only
// those that the budget has room for are in memory. One goroutine reads.
type inlet struct {
	body   io.ReadCloser
	buffer []byte // kept for small messages
	rest   []byte // read from the body, and not passed on
	err    error  // of the body
}

// prefix reads the prefix of the next message; false: there is none, and Read says why.
func (i *inlet) prefix() (payload int64, compressed, ok bool) {
	if cap(i.buffer) == 0 {
		i.buffer = make([]byte, envelope, 512)
	}
	i.buffer = i.buffer[:envelope]
	n, err := io.ReadFull(i.body, i.buffer)
	if i.rest = i.buffer[:n]; err != nil {
		i.fail(err)
		return 0, false, false
	}
	return int64(binary.BigEndian.Uint32(i.buffer[1:])), i.buffer[0]&1 != 0, true
}

// load reads the payload of a message, whose prefix was read.
func (i *inlet) load(payload int64) {
	need := envelope + int(payload)
	message := i.buffer
	if cap(message) < need {
		message = make([]byte, need)
		copy(message, i.buffer[:envelope])
	}
	message = message[:need]
	n, err := io.ReadFull(i.body, message[envelope:])
	if i.rest = message[:envelope+n]; err != nil {
		i.fail(err)
	}
	if cap(message) <= smallPayload {
		i.buffer = message
	}
}

// fail takes note of an error of the body, which ends within a message.
func (i *inlet) fail(err error) {
	if i.err = err; err == io.ErrUnexpectedEOF {
		i.err = io.EOF
	}
}

// Read implements io.Reader.
func (i *inlet) Read(p []byte) (n int, err error) {
	if len(i.rest) > 0 {
		n = copy(p, i.rest)
		if i.rest = i.rest[n:]; len(i.rest) == 0 {
			i.rest = nil
		}
		return n, nil
	}
	if i.err != nil {
		return 0, i.err
	}
	return i.body.Read(p)
}

// Close implements io.Closer.
func (i *inlet) Close() error { return i.body.Close() }
