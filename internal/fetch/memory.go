package fetch

import (
	"maps"
	"strings"
	"time"
)

// maxMemory bounds how many servers a memory has.
const maxMemory = 4096

// memory is a set of servers that each leave it after a while. It is bounded: what does not fit is
// not remembered.
type memory struct {
	hold  time.Duration
	until map[connKey]time.Time
}

func newMemory(hold time.Duration) memory {
	return memory{hold: hold, until: make(map[connKey]time.Time)}
}

// has reports whether the set has key.
func (m *memory) has(key connKey, now time.Time) bool { return now.Before(m.until[key]) }

// note puts key into the set, and reports whether it is there now and was not before.
func (m *memory) note(key connKey, now time.Time) (news bool) {
	if m.has(key, now) {
		return false
	}
	if len(m.until) >= maxMemory {
		maps.DeleteFunc(m.until, func(_ connKey, until time.Time) bool { return !now.Before(until) })
	}
	if len(m.until) >= maxMemory {
		return false
	}
	key.host = strings.Clone(key.host) // it may be a part of a long URL
	m.until[key] = now.Add(m.hold)
	return true
}
