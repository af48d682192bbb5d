// Package stamp says which pages need not be read again: all that would be read out of them is known. The body is that
// of the last response, and so are the header fields that count, the settings and the scope. The stamp of an outcome
// stands for all of them, the whole digest of the body included.
package stamp

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/storage"
)

// version goes into each stamp. It is raised when other links are taken out of the same page.
const version = 1

// readEvery is the part of unchanged pages that are read all the same: links that were refused then, because a budget
// was used up or because they led to a URL that was deleted later, may be taken now.
const readEvery = 32

// Maker makes the stamps of pages. It is safe for concurrent use.
type Maker struct {
	settings uint64                   // a sum of those that count
	scope    atomic.Pointer[scopeSum] // of the scope that was asked for last
}

// scopeSum is the sum of a scope.
type scopeSum struct {
	of  *frontier.Scope
	sum uint64
}

// NewMaker returns a Maker. The settings are all that decides about links but the scope, as JSON has it.
func NewMaker(settings ...any) *Maker {
	text, err := json.Marshal(append(settings, version))
	if err != nil {
		panic(err) // numbers and strings can be encoded
	}
	return &Maker{settings: sum(text)}
}

func sum(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b) // it never fails
	return h.Sum64()
}

// ofScope returns the sum of a scope.
func (m *Maker) ofScope(scope *frontier.Scope) uint64 {
	last := m.scope.Load()
	if last == nil || last.of != scope {
		last = &scopeSum{scope, scope.Sum()}
		m.scope.Store(last)
	}
	return last.sum
}

// Of returns the stamp of a page with this body and header, which is never 0.
func (m *Maker) Of(head *storage.Head, scope *frontier.Scope, header http.Header, body digest.Digest) uint32 {
	facts := append(make([]byte, 0, 256), body[:]...)
	facts = binary.BigEndian.AppendUint64(facts, m.settings)
	facts = binary.BigEndian.AppendUint64(facts, m.ofScope(scope))
	facts = append(binary.BigEndian.AppendUint16(facts, head.Depth), head.Redirects)
	for _, field := range extract.HeaderFields() {
		facts = append(append(facts, strings.Join(header.Values(field), "\n")...), 0)
	}
	s := sum(facts)
	return max(1, uint32(s^s>>32))
}

// IsKnown reports whether all that could be read out of a page with this digest and stamp, which may be 0, was read
// when it was fetched the last time.
func IsKnown(head *storage.Head, digest uint64, stamp uint32) bool {
	last := &head.Last
	if stamp == 0 || last.State != storage.Fetched || stamp != last.Stamp || digest != last.Digest {
		return false
	}
	visit := uint64(storage.Seconds(last.At)) + uint64(head.Ordinal)
	return visit*0x9e3779b97f4a7c15>>32%readEvery != 0
}
