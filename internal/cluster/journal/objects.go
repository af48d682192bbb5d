//go:build !core

package journal

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
)

// listPause is the pause before a server that is behind is asked again.
const listPause = 50 * time.Millisecond

// listObjects returns the objects of an object store, at least those that its leader has when asked. It needs no
// consumer, as the library does: a node opens hundreds of shards at once.
func listObjects(ctx context.Context, from *natsconn.Reads, bucket string) (all []*jetstream.ObjectInfo, err error) {
	subjects := "$O." + bucket + ".M.>"
	for {
		last, err := from.Last(ctx, subjects)
		if last == nil || err != nil {
			return nil, err
		}
		all, next, err := copiedObjects(ctx, from, subjects)
		if next > last.Sequence || err != nil {
			return all, err
		}
		if !sleep(ctx, listPause) {
			return nil, ctx.Err()
		}
	}
}

// copiedObjects returns the objects that one server knows, and the first sequence after them.
func copiedObjects(ctx context.Context, from *natsconn.Reads, subjects string) (
	all []*jetstream.ObjectInfo, next uint64, err error) {
	next = 1
	for more := true; more; {
		var batch []*message
		if batch, more, err = from.Batch(ctx, subjects, next); err != nil {
			return nil, 0, err
		}
		for _, m := range batch {
			info := new(jetstream.ObjectInfo)
			if err := json.Unmarshal(m.Data, info); err == nil && !info.Deleted { // as the library does
				info.ModTime = m.Time
				all = append(all, info)
			}
			next = m.Sequence + 1
		}
	}
	return all, next, nil
}
