//go:build !core

package shards

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// crawl.max_pages is a quota of all shards: the part of a shard is how many pages may be fetched there in all. The
// owner takes a block at a time, and gives back what it does not need. What is used of a part stands in the
// log of the shard, so a new owner goes on with the rest.

// maxBlock is the largest block.
const maxBlock = 1000

// retryReserve is how long to wait for pages that others give back, before it is tried again.
const retryReserve = time.Second

// blockOf returns how many pages a shard takes of those that are left: so few at the end that they are not
// all in the blocks of some shards.
func blockOf(left uint64, shards int) uint64 {
	return min(left, max(1, min(left/uint64(4*shards), maxBlock)))
}

// pageBlocks are those of the engine of a shard: it implements crawl.Pages.
type pageBlocks struct {
	all      *pageQuota
	most     uint64
	shard    cluster.Shard
	mayWrite func() error // whether this node still owns the shard

	allowed  atomic.Uint64 // no more than the part that this owner has written
	wants    chan struct{} // holds one
	releases chan uint64   // holds the newest
}

func newPageBlocks(all *pageQuota, most uint64, s cluster.Shard, mayWrite func() error) *pageBlocks {
	return &pageBlocks{
		all: all, most: most, shard: s, mayWrite: mayWrite, wants: make(chan struct{}, 1),
		releases: make(chan uint64, 1),
	}
}

// Allowed is part of crawl.Pages.
func (p *pageBlocks) Allowed() uint64 { return p.allowed.Load() }

// Want is part of crawl.Pages.
func (p *pageBlocks) Want() {
	select {
	case p.wants <- struct{}{}:
	default:
	}
}

// Unused is part of crawl.Pages.
func (p *pageBlocks) Unused(fetched uint64) bool {
	used, _, _ := p.isUsed(fetched)
	return !used
}

// Release is part of crawl.Pages.
func (p *pageBlocks) Release(fetched uint64) {
	p.allowed.Store(fetched)
	select {
	case <-p.releases:
	default:
	}
	p.releases <- fetched // the dispatcher is the only one that sends
}

// run takes blocks and gives them back until the context ends.
func (p *pageBlocks) run(ctx context.Context, e *crawl.Engine) {
	select {
	case <-e.Ready():
	case <-ctx.Done():
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case fetched := <-p.releases:
			_ = p.returnUnused(ctx, fetched) // it fails only when the shard is lost
		case <-p.wants:
			_, _, changed := p.all.latest()
			if !p.reserve(ctx, e.Fetched()) {
				select {
				case <-changed:
				case <-time.After(retryReserve): // the node may have been without trust for a moment
				case <-ctx.Done():
				}
			}
			_ = e.Wake(ctx) // else it ends
		}
	}
}

// reserve takes a block, or what the part has beyond what may be used: this owner's predecessor has left it, or a write
// had no answer. It returns false if there is none.
func (p *pageBlocks) reserve(ctx context.Context, fetched uint64) bool {
	part, err := p.all.assign(ctx, p.shard, p.mayWrite, func(all parts) (uint64, error) {
		part := max(all[p.shard], fetched)
		if part > max(p.allowed.Load(), fetched) {
			return part, nil
		}
		others := all.sum() - all[p.shard]
		if others+part >= p.most {
			return 0, errUnchanged
		}
		return part + blockOf(p.most-others-part, p.all.shards), nil
	})
	if err != nil {
		return false
	}
	p.allowed.Store(part)
	return true
}

// returnUnused gives back what is beyond so many pages, unless the engine may use it again. Nobody else raises
// what it may use.
func (p *pageBlocks) returnUnused(ctx context.Context, fetched uint64) error {
	if p.allowed.Load() > fetched {
		return nil
	}
	_, err := p.all.assign(ctx, p.shard, p.mayWrite, func(all parts) (uint64, error) {
		if all[p.shard] <= fetched {
			return 0, errUnchanged
		}
		return fetched, nil
	})
	return err
}

// isUsed reports whether all of the part of the shard is used, and whether all pages are allotted. The
// sequence is that of the register.
func (p *pageBlocks) isUsed(fetched uint64) (used, all bool, sequence uint64) {
	parts, sequence, _ := p.all.latest()
	return parts[p.shard] <= fetched, parts.sum() >= p.most, sequence
}
