// Package bodies remembers which bodies a crawl that keeps them has lately had of its hosts.
package bodies

import (
	"sync"
	"sync/atomic"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/storage"
)

// Recent are the bodies whose responses wait for a commit or are with the committer: the store does not know of them
// yet, and the next response of the host may have the same. A response that points to one of them is added to the same
// batch or a later one, so it is never committed without it. The dispatcher adds and removes; workers find. It is safe
// for concurrent use.
type Recent struct {
	mu        sync.Mutex
	originals map[Key]archive.Original // guarded by mu
	// stored has every body of the output, so that a body that no page had before is not looked up
	// in the store. Nil: the run began with a store that has bodies, and any may be there.
	stored *filter
}

// Key is a body of a host.
type Key struct {
	Host   storage.HostID
	Digest uint64
}

// hash is as random as digests are.
func (k Key) hash() uint64 { return (k.Digest ^ uint64(k.Host)) * 0x9e3779b97f4a7c15 }

// New returns the bodies of a run. isNew says that the run keeps bodies and the store has none.
func New(isNew bool) *Recent {
	b := &Recent{originals: make(map[Key]archive.Original)}
	if isNew {
		b.stored = new(filter)
	}
	return b
}

// Add takes note of the body that the response of a URL brings; nil: it brings none.
func (b *Recent) Add(url string, p *storage.Payload) {
	if p == nil {
		return
	}
	key := Key{p.Host, p.Digest}
	if b.stored != nil {
		b.stored.add(key)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.originals[key] = archive.Original{URL: url, At: p.At, Payload: p.SHA256}
}

// Find returns the response with a body. If that is nil, mayBeStored says whether the store may know
// one.
func (b *Recent) Find(key Key) (o *archive.Original, mayBeStored bool) {
	if b.stored != nil && !b.stored.has(key) {
		return nil, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if original, ok := b.originals[key]; ok {
		return &original, true
	}
	return nil, true
}

// Committed forgets bodies that the store knows of from now on.
func (b *Recent) Committed(payloads []storage.Payload) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range payloads {
		delete(b.originals, Key{payloads[i].Host, payloads[i].Digest})
	}
}

// filter is a Bloom filter of 1 MiB: of a million bodies in it, some 3 in 100 others seem to be
// there too. It is safe for concurrent use.
type filter [1 << 17]atomic.Uint64

// bits returns the word of a body, and the four bits of it that the body sets. Digests are random.
func (f *filter) bits(key Key) (word *atomic.Uint64, mask uint64) {
	h := key.hash()
	return &f[h>>47], 1<<(h&63) | 1<<(h>>6&63) | 1<<(h>>12&63) | 1<<(h>>18&63)
}

func (f *filter) add(key Key) {
	word, mask := f.bits(key)
	word.Or(mask)
}

func (f *filter) has(key Key) bool {
	word, mask := f.bits(key)
	return word.Load()&mask == mask
}
