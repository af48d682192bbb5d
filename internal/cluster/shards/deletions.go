//go:build !core

package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
)

// Deletion is a command to delete URLs for shards that did not answer. Each of them carries it out when its
// engine is open, and strikes itself out. It may do so twice: what is younger than the command stays.
type Deletion struct {
	Host   string          `json:"host,omitempty"` // canonical name; empty: all
	Before time.Time       `json:"before"`         // only URLs that were discovered before its second
	Shards []cluster.Shard `json:"shards"`         // that have not carried it out
}

// maxDeletions bounds how many the register holds.
const maxDeletions = 64

// is reports whether two are the same but for their shards.
func (d *Deletion) is(other *Deletion) bool {
	return d.Host == other.Host && d.Before.Equal(other.Before)
}

func cloneDeletions(list []Deletion) []Deletion {
	list = slices.Clone(list)
	for i := range list {
		list[i].Shards = slices.Clone(list[i].Shards)
	}
	return list
}

// AddDeletion has shards carry out a deletion that could not: they do as soon as somebody crawls them. When it
// returns this is durable. The errors are those of SetPaused.
func (n *Node) AddDeletion(ctx context.Context, o crawl.Deletion, shards []cluster.Shard) error {
	added := Deletion{Host: o.Host, Before: o.Before.UTC(), Shards: slices.Clone(shards)}
	_, err := n.command(ctx, func(d *Desired) error {
		for i := range d.Deletions {
			if one := &d.Deletions[i]; one.Host == added.Host && slices.Equal(one.Shards, added.Shards) {
				if !added.Before.After(one.Before) {
					return errUnchanged
				}
				one.Before = added.Before
				return nil
			}
		}
		if len(d.Deletions) == maxDeletions {
			return fmt.Errorf("%d deletions wait for shards that nobody crawls: look at amble cluster status --shards",
				maxDeletions)
		}
		d.Deletions = append(d.Deletions, added)
		return nil
	})
	return err
}

// strike strikes out a shard.
func (d *Desired) strike(done *Deletion, shard cluster.Shard) error {
	for i := range d.Deletions {
		one := &d.Deletions[i]
		at := slices.Index(one.Shards, shard)
		if !one.is(done) || at < 0 {
			continue
		}
		if one.Shards = slices.Delete(one.Shards, at, at+1); len(one.Shards) == 0 {
			d.Deletions = slices.Delete(d.Deletions, i, i+1)
		}
		return nil
	}
	return errUnchanged
}

// carryOut carries out the deletions that wait for the shard, until ctx ends.
func (r *run) carryOut(ctx context.Context, e *crawl.Engine) {
	shard := r.holding.Shard()
	for {
		t, moved := r.desired.current()
		for i := range t.Deletions {
			if d := &t.Deletions[i]; slices.Contains(d.Shards, shard) && ctx.Err() == nil {
				r.delete(ctx, e, d)
			}
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// delete carries out a deletion. If that fails, it is done again.
func (r *run) delete(ctx context.Context, e *crawl.Engine, d *Deletion) {
	shard := r.holding.Shard()
	n, err := e.Delete(ctx, crawl.Deletion{Host: d.Host, Before: d.Before})
	if err == nil || errors.Is(err, inspect.ErrUnknown) {
		r.log.Warn("URLs are deleted that a command for all shards has named", "host", d.Host, "before",
			d.Before, "urls", n)
		_, err = r.desired.command(ctx, r.o.Timeout, func(now *Desired) error { return now.strike(d, shard) })
	}
	if err != nil && ctx.Err() == nil {
		r.log.Warn("a deletion could not be carried out; it is tried again", "host", d.Host, "error", err)
		pause(ctx, retryDown)
		r.desired.aim(func(*target) {})
	}
}
