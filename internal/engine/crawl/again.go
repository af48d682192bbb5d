package crawl

import (
	"context"
	"fmt"

	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/storage"
)

// fetchAgain begins, on disk, the retry of Options.Older; the dispatcher finds it there. Given again with a later
// time, as by the next owner of a shard, it puts back nothing that was fetched meanwhile.
func (e *Engine) fetchAgain(ctx context.Context) error {
	if e.o.Older.IsZero() || e.store.Counters().URLs == 0 {
		return nil
	}
	last, err := sweep.LastRetry(e.store)
	if err != nil {
		return err
	}
	old := sweep.Selection{
		States: storage.In(storage.Fetched, storage.Redirected, storage.Failed), Before: e.o.Older,
	}
	b := storage.Batch{Marks: map[string][]byte{sweep.RetryMark(last + 1): sweep.Command{Selection: &old}.Encode()}}
	if _, err := e.commitAtStart(ctx, &b); err != nil {
		return fmt.Errorf("put back what is due: %w", err)
	}
	return nil
}
