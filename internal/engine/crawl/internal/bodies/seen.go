package bodies

import (
	"sync"
	"time"
)

// Seen remembers which bodies hosts have had lately, so that the store is read only for one that may have come
// before. It is safe for concurrent use.
type Seen struct {
	mu         sync.Mutex
	young, old generation // old is forgotten when young is full
	latest     time.Time  // the latest response
}

// generation has all bodies of responses that ended after an instant, and maybe others.
type generation struct {
	since  time.Time
	bits   [1 << 13]uint64 // of the hash of a body; 64 KiB
	bodies int
}

// mostBodies of a generation set an eighth of its bits.
const mostBodies = 1 << 16

// NewSeen returns a Seen that will be told of all responses after an instant.
func NewSeen(since time.Time) *Seen {
	s := &Seen{latest: since}
	s.young.since, s.old.since = since, since
	return s
}

// Add takes note of the body of a response that ended at an instant.
func (s *Seen) Add(key Key, at time.Time) {
	h := key.hash()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.young.bodies == mostBodies {
		s.old = s.young // neither is copied by way of the stack, which would have to grow
		s.young.since, s.young.bodies = s.latest, 0
		clear(s.young.bits[:])
	}
	if at.After(s.latest) {
		s.latest = at
	}
	s.young.bodies++
	s.young.bits[h>>51] |= 1 << (h & 63)
}

// MayHave reports whether a response that ended at an instant, or later, may have had a body.
func (s *Seen) MayHave(key Key, at time.Time) bool {
	h := key.hash()
	s.mu.Lock()
	defer s.mu.Unlock()
	return !at.After(s.old.since) || (s.young.bits[h>>51]|s.old.bits[h>>51])>>(h&63)&1 != 0
}
