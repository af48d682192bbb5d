//go:build !core

package shards

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/records/wire"
)

// recrawl.budget is divided among the shards by a register, which has the part of each shard, and what the
// parts follow from: the price of the shard's recrawl plan, and its weight, which is how many recrawls a day
// its pages need at the mean price of all shards. Parts by these weights bring all plans to one price, so the
// shards make the recrawls that one plan of all pages would make.
//
// Only the owner of a shard changes its entry. It uses less before it has written that, and more when it has
// written it. So the parts that are in use are never more than those in the register, whose sum a conditional
// write keeps within the budget. A part outlives the owner of its shard: the next one takes it up with its
// first write. A node without an answer keeps what it has.

// perRecrawl is the unit of parts and weights: so many are one recrawl a day.
const perRecrawl = 1000

// leastWeight is the weight of a shard without pages on its plan, which may have pages that are gone.
const leastWeight = perRecrawl

// divideEvery is how often a node looks at the weights of its shards.
const divideEvery = 2 * time.Second

// maxSideBySide bounds the shards that are queried at a time.
const maxSideBySide = 16

// recrawlShare is the entry of a shard. A weight of 0 means that there is none.
type recrawlShare struct {
	part, weight uint64
	price        float64 // seconds
}

// recrawlShares are the entries of the shards that have one.
type recrawlShares map[cluster.Shard]recrawlShare

// sharesVersion is the version of the register.
const sharesVersion = 1

// encode encodes the entries: the version, their number, and the shard, the part, the weight and the price of
// each, as IEEE 754 bits, in the order of the shards.
func (all recrawlShares) encode() []byte {
	b := binary.AppendUvarint([]byte{sharesVersion}, uint64(len(all)))
	for _, s := range slices.Sorted(maps.Keys(all)) {
		b = binary.AppendUvarint(b, uint64(s))
		b = binary.AppendUvarint(binary.AppendUvarint(b, all[s].part), all[s].weight)
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(all[s].price))
	}
	return b
}

// decodeShares is the inverse of encode, for so many shards.
func decodeShares(b []byte, shards int) (recrawlShares, error) {
	all := make(recrawlShares)
	if len(b) == 0 {
		return all, nil
	}
	d := wire.NewDecoder(b)
	if version := d.Byte(); version != sharesVersion {
		return nil, fmt.Errorf("its version is %d, not %d: use the same amble on all nodes", version, sharesVersion)
	}
	last := -1
	for n := d.UvarintMax(uint64(shards)); n > 0 && d.OK(); n-- {
		s := int(d.UvarintMax(uint64(shards - 1)))
		d.Require(s > last)
		last = s
		e := recrawlShare{d.UvarintMax(maxPart), d.UvarintMax(maxPart), math.Float64frombits(d.Uint64())}
		d.Require(e.price >= leastPrice && e.price <= mostPrice)
		all[cluster.Shard(s)] = e
	}
	return all, d.End()
}

// sums returns the sums of the parts and of the weights.
func (all recrawlShares) sums() (parts, weights uint64) {
	for _, e := range all {
		parts, weights = parts+e.part, weights+e.weight
	}
	return parts, weights
}

// price returns the mean price by weight, on the scale of logarithms; 1: there is none.
func (all recrawlShares) price() float64 {
	sum, weights := 0.0, 0.0
	for _, s := range slices.Sorted(maps.Keys(all)) { // so that all nodes compute the same
		sum, weights = sum+float64(all[s].weight)*math.Log(all[s].price), weights+float64(all[s].weight)
	}
	return math.Exp(sum / max(weights, 1))
}

// divide gives some shards their parts of a budget by weight, as far as the others leave room.
func (all recrawlShares) divide(own []cluster.Shard, budget uint64) {
	parts, weights := all.sums()
	fair := func(e recrawlShare) uint64 { return uint64(float64(budget) * (float64(e.weight) / float64(weights))) }
	for _, s := range own { // what one gives up another may have
		e := all[s]
		less := min(e.part, fair(e))
		parts -= e.part - less
		e.part = less
		all[s] = e
	}
	for _, s := range own {
		e := all[s]
		more := min(max(fair(e), e.part)-e.part, max(budget, parts)-parts)
		parts += more
		e.part += more
		all[s] = e
	}
}

// recrawlPart is what the engine of a shard may use of the budget, for one holding of the shard.
type recrawlPart struct {
	shard    cluster.Shard
	mayWrite func() error  // whether this node still owns the shard
	used     atomic.Uint64 // no more than what this owner has written

	measured recrawlShare // without a part; for the goroutine of divide
}

// inForce returns the recrawls a day that the engine may make. It is crawl.Options.RecrawlBudget.
func (p *recrawlPart) inForce() float64 { return float64(p.used.Load()) / perRecrawl }

// The bounds of a price, in seconds.
const (
	leastPrice = 1e-6
	mostPrice  = 1e18
)

// measure takes note of the price of the shard's plan, and of the recrawls a day that it needs.
func (p *recrawlPart) measure(price, perDay float64) {
	weight := uint64(min(perDay, maxPart/perRecrawl) * perRecrawl)
	p.measured = recrawlShare{weight: max(weight, leastWeight), price: min(max(price, leastPrice), mostPrice)}
}

// recrawlBudget is the register as this node knows it.
type recrawlBudget struct {
	followed[recrawlShares]
	budget uint64
}

func newRecrawlBudget(register register, perDay float64, shards int, log *slog.Logger) *recrawlBudget {
	return &recrawlBudget{followed[recrawlShares]{
		name: "the recrawl budgets of the shards", log: log, register: register, encode: recrawlShares.encode,
		decode: func(b []byte) (recrawlShares, error) { return decodeShares(b, shards) },
		newest: make(recrawlShares), changed: make(chan struct{}),
	}, uint64(perDay * perRecrawl)}
}

// divide brings the parts of this node's shards to what their weights say, as far as the others leave room.
// The error is that of the context, or errUnchanged.
func (b *recrawlBudget) divide(ctx context.Context, own []*recrawlPart) error {
	var written []*recrawlPart
	var now recrawlShares
	_, err := b.change(ctx, func(all recrawlShares) (recrawlShares, error) {
		now, written = maps.Clone(all), own[:0:0]
		var mine []cluster.Shard
		for _, p := range own {
			if p.mayWrite() != nil || p.measured.weight == 0 {
				continue
			}
			written, mine = append(written, p), append(mine, p.shard)
			e := p.measured
			e.part = all[p.shard].part
			now[p.shard] = e
		}
		now.divide(mine, b.budget)
		if !slices.ContainsFunc(written, func(p *recrawlPart) bool { return p.differs(all[p.shard], now[p.shard]) }) {
			return nil, errUnchanged
		}
		for _, p := range written {
			p.used.Store(min(p.used.Load(), now[p.shard].part))
		}
		return now, nil
	})
	if err == nil {
		for _, p := range written {
			p.used.Store(now[p.shard].part)
		}
	}
	return err
}

// differs reports whether an entry has to be replaced by another one.
func (p *recrawlPart) differs(before, after recrawlShare) bool {
	const enough = 0.02
	apart := func(a, b float64) bool { return math.Abs(a-b) > enough*b }
	return p.used.Load() != before.part || apart(before.price, after.price) ||
		apart(float64(before.part), float64(after.part)) || apart(float64(before.weight), float64(after.weight))
}

// divideRecrawls divides the budget among the shards of this node and the others, until the context ends.
func (e *engines) divideRecrawls(ctx context.Context) {
	ticker := time.NewTicker(divideEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if own := e.measureRecrawls(ctx); len(own) > 0 {
			limited, cancel := context.WithTimeout(ctx, e.o.Timeout)
			_ = e.recrawls.divide(limited, own) // what it could not write it writes the next time
			cancel()
		}
	}
}

// measureRecrawls returns the parts of the engines of this node, measured at the mean price. An engine without
// an answer keeps its weight.
func (e *engines) measureRecrawls(ctx context.Context) (own []*recrawlPart) {
	all, _, _ := e.recrawls.latest()
	at := all.price()
	runs := slices.Collect(maps.Values(e.all()))
	ctx, cancel := context.WithTimeout(ctx, divideEvery)
	defer cancel()
	sideBySide(len(runs), func(i int) {
		runs[i].lent.use(ctx, func(ctx context.Context, engine *crawl.Engine) {
			if price, perDay, err := engine.RecrawlDemand(ctx, at); err == nil {
				runs[i].part.measure(price, perDay)
			}
		})
	})
	for _, r := range runs {
		own = append(own, r.part)
	}
	return own
}

// sideBySide calls f for each number below n, some of them at a time.
func sideBySide(n int, f func(i int)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxSideBySide)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
}
