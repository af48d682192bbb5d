// Package domains counts the hosts of registrable domains in bounded memory.
package domains

import (
	"context"
	"errors"
	"hash/maphash"
	"math"
	"sync/atomic"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Hosts counts the hosts of each registrable domain, for crawls without a scope: whoever has a wildcard in the
// DNS has any number of hosts, each with its own delay and budget. Hosts are in a Bloom filter and domains in a
// count-min sketch, so the memory is bounded; a count may be wrong by a few, or too small with many millions of
// hosts. Its methods may be called concurrently.
type Hosts struct {
	most     uint32 // of a domain
	seed     maphash.Seed
	known    sparse[atomic.Uint64]             // bits of hosts
	count    [sketchRows]sparse[atomic.Uint32] // by domain
	last     storage.HostID                    // that Restore counts
	restored chan struct{}                     // closed when Restore returns
}

// sparse is an array whose parts take memory once they are used: most crawls have few hosts.
type sparse[T any] []atomic.Pointer[[sparsePart]T]

const sparsePart = 64

func newSparse[T any](n int) sparse[T] { return make(sparse[T], n/sparsePart) }

func (s sparse[T]) at(i uint64) *T {
	part := &s[i/sparsePart]
	if part.Load() == nil {
		part.CompareAndSwap(nil, new([sparsePart]T))
	}
	return &part.Load()[i%sparsePart]
}

const (
	knownWords  = 1 << 19 // 4 MiB: 2 % of 4 million hosts look known that are not
	knownHashes = 4
	sketchRows  = 4
	sketchCells = 1 << 16
)

// New returns counts of no host, until Restore adds those of the store up to last; nil if there is no limit.
func New(most int, last storage.HostID) *Hosts {
	if most <= 0 {
		return nil
	}
	d := &Hosts{
		most: uint32(min(most, math.MaxUint32)), seed: maphash.MakeSeed(),
		known: newSparse[atomic.Uint64](knownWords), restored: make(chan struct{}), last: last,
	}
	for row := range d.count {
		d.count[row] = newSparse[atomic.Uint32](sketchCells)
	}
	return d
}

// Add counts a host, if it is not known. It reports false, and counts nothing, if its domain has the most already.
// It waits for Restore.
func (d *Hosts) Add(host string) bool {
	if d == nil || d.isKnown(host) {
		return true
	}
	h := maphash.String(d.seed, weburl.RegistrableDomain(host))
	n := uint32(math.MaxUint32)
	for row := range d.count {
		n = min(n, d.cell(row, h).Load())
	}
	if n >= d.most {
		return false
	}
	d.countHost(host, h)
	return true
}

// Restore counts the hosts of the store, whatever their domains have, or stops when ctx ends. It is called once, when
// the crawl makes requests already: the first of them do not wait for it.
func (d *Hosts) Restore(ctx context.Context, hosts func(func(*storage.Host) error) error) error {
	if d == nil {
		return nil
	}
	defer close(d.restored)
	err := hosts(func(h *storage.Host) error {
		if h.ID > d.last || ctx.Err() != nil {
			return storage.ErrStop
		}
		d.countHost(h.Name, maphash.String(d.seed, weburl.RegistrableDomain(h.Name)))
		return nil
	})
	if errors.Is(err, storage.ErrStop) {
		return nil
	}
	return err
}

// countHost counts a host of a domain, which is given by its hash.
func (d *Hosts) countHost(host string, domain uint64) {
	for row := range d.count {
		d.cell(row, domain).Add(1)
	}
	d.bits(host, func(word *atomic.Uint64, bit uint64) { word.Or(bit) })
}

func (d *Hosts) cell(row int, h uint64) *atomic.Uint32 {
	return d.count[row].at(h >> (16 * row) % sketchCells)
}

// isKnown reports whether a host is counted, once those of the store are.
func (d *Hosts) isKnown(host string) bool {
	<-d.restored
	known := true
	d.bits(host, func(word *atomic.Uint64, bit uint64) { known = known && word.Load()&bit != 0 })
	return known
}

// bits calls each for the bits of a host (Kirsch and Mitzenmacher, Less Hashing, Same Performance, 2006).
func (d *Hosts) bits(host string, each func(word *atomic.Uint64, bit uint64)) {
	h := maphash.String(d.seed, host)
	for i := range uint64(knownHashes) {
		at := (h + i*(h>>32|1)) % (64 * knownWords)
		each(d.known.at(at/64), 1<<(at%64))
	}
}
