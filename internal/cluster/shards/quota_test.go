package shards

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// simulatedRegister is a register whose servers answer late, or never, or with what was there before.
type simulatedRegister struct {
	rng    *rand.Rand
	values [][]byte // by sequence, from 1
	late   []func() // writes without an answer that are still on their way
}

func (r *simulatedRegister) Read(context.Context) ([]byte, uint64, error) {
	r.deliver()
	n := len(r.values)
	if n > 1 && r.rng.IntN(4) == 0 {
		n -= 1 + r.rng.IntN(min(n-1, 3)) // a server that is behind
	}
	if n == 0 {
		return nil, 0, nil
	}
	return r.values[n-1], uint64(n), nil
}

// deliver lets a late write arrive.
func (r *simulatedRegister) deliver() {
	if len(r.late) > 0 && r.rng.IntN(3) == 0 {
		r.late[0]()
		r.late = r.late[1:]
	}
}

func (r *simulatedRegister) Write(_ context.Context, data []byte, expected uint64) (uint64, error) {
	r.deliver()
	write := func() bool {
		if expected != uint64(len(r.values)) {
			return false
		}
		r.values = append(r.values, data)
		return true
	}
	switch r.rng.IntN(10) {
	case 0:
		r.late = append(r.late, func() { write() })
		return 0, errors.New("no answer")
	case 1:
		write()
		return 0, errors.New("no answer")
	}
	if !write() {
		return 0, journal.ErrRefused
	}
	return uint64(len(r.values)), nil
}

func (r *simulatedRegister) Values(context.Context, func([]byte, uint64)) error { return nil }

// TestPageBlocks: whatever the servers answer, and whoever dies, the shards never have more pages than there
// are, and in the end they have all of them.
func TestPageBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(500) {
			testPageBlocks(t, seed)
		}
	})
}

func testPageBlocks(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 20))
	r := &simulatedRegister{rng: rng}
	n, most := 2+rng.IntN(4), uint64(1+rng.IntN(300))
	used := make([]uint64, n)
	owners := make([]*pageBlocks, n)
	var trusted []*bool
	owner := func(s int) *pageBlocks {
		ok := true
		trusted = append(trusted, &ok)
		return newPageBlocks(newPageQuota(r, n, nil), most, cluster.Shard(s), func() error {
			if !ok {
				return membership.ErrNotTrusted
			}
			return nil
		})
	}
	type predecessor struct {
		*pageBlocks
		fetched uint64
	}
	var gone []predecessor
	last := make([]int, n)
	for s := range owners {
		last[s] = len(trusted)
		owners[s] = owner(s)
	}
	sum := func() (sum uint64) {
		for _, u := range used {
			sum += u
		}
		return sum
	}
	for step := 0; sum() < most; step++ {
		s := rng.IntN(n)
		p := owners[s]
		switch rng.IntN(12) {
		case 0: // another owner: the one before has given back the rest, or dies
			if rng.IntN(2) == 0 {
				p.Release(used[s])
				_ = p.returnUnused(t.Context(), <-p.releases)
			}
			*trusted[last[s]] = false
			last[s] = len(trusted)
			owners[s] = owner(s)
			gone = append(gone, predecessor{p, used[s]})
		case 2: // one that has lost its shard comes too late
			if len(gone) > 0 {
				g := gone[rng.IntN(len(gone))]
				g.Release(g.fetched)
				_ = g.returnUnused(t.Context(), <-g.releases)
			}
		case 1:
			p.Release(used[s])
			_ = p.returnUnused(t.Context(), <-p.releases)
		default:
			if used[s] >= p.Allowed() && !p.reserve(t.Context(), used[s]) {
				if part := getsNoMore(t, p, used[s]); part > max(used[s], p.Allowed()) {
					t.Fatalf("seed %d: shard %d has %d pages of %d, and may use %d", seed, s, part, most, p.Allowed())
				}
				other := rng.IntN(n) // has nothing to do
				owners[other].Release(used[other])
				_ = owners[other].returnUnused(t.Context(), <-owners[other].releases)
			}
			for used[s] < p.Allowed() && rng.IntN(8) > 0 {
				used[s]++
			}
		}
		var written parts
		if n := len(r.values); n > 0 {
			written, _ = decodeParts(r.values[n-1], len(owners))
		}
		for s, p := range owners {
			must.True(t, p.Allowed() <= max(used[s], written[cluster.Shard(s)]) && written.sum() <= most,
				"seed %d: shard %d may use %d pages of %v, %d in all", seed, s, p.Allowed(), written, most)
		}
		must.True(t, sum() <= most, "seed %d: %v pages of %d are used", seed, used, most)
		must.True(t, step <= 100_000, "seed %d: %v pages of %d are used, and nobody gets more", seed, used, most)
	}
}

// getsNoMore has a shard ask for pages again, as it does for as long as it needs some. It returns the part that it has
// in the register if it gets none; 0: it gets some.
func getsNoMore(t *testing.T, p *pageBlocks, used uint64) uint64 {
	for range 20 {
		if _ = p.all.read(t.Context()); p.reserve(t.Context(), used) {
			return 0
		}
	}
	all, _, _ := p.all.latest()
	return all[p.shard]
}

// TestGoldenParts: the register is these bytes.
func TestGoldenParts(t *testing.T) {
	p := parts{3: 300, 0: 1}
	assert.Equal(t, fmt.Sprintf("%x", p.encode()), "0102000103ac02", "parts")
	got, err := decodeParts(p.encode(), 4)
	assert.True(t, err == nil && maps.Equal(got, p), "%v, %v", got, err)
	for _, b := range [][]byte{{2}, {1, 1}, {1, 2, 3, 1, 0, 1}, {1, 1, 4, 1}, {1, 0, 0}} {
		assert.Fails(decodeParts(b, 4))(t, nil, b)
	}
}

// FuzzParts: whatever a register has, it is refused or means what is encoded the same.
func FuzzParts(f *testing.F) {
	f.Add(parts{3: 300, 0: 1}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodeParts(b, 4)
		if err != nil {
			return
		}
		if again, err := decodeParts(p.encode(), 4); err != nil || !maps.Equal(again, p) {
			t.Errorf("%v, %v, want %v", again, err, p)
		}
	})
}
