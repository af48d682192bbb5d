package crawl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/amble-crawler/amble/storage"
)

// Retrier puts URLs of a crawl that does not run back into their queues.
type Retrier struct {
	engine *Engine
	most   int // URLs put back in one transaction
}

// OpenRetrier opens the store in o.DataDir, which has to be there. The errors of storage.Open come through.
func OpenRetrier(o Options) (*Retrier, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(o.DataDir, storage.FileName)); err != nil {
		return nil, err
	}
	s, err := storage.Open(o.DataDir, o.Storage)
	if err != nil {
		return nil, err
	}
	e := &Engine{o: o, store: s, free: storage.FreeBytes}
	e.put(o.Live())
	return &Retrier{e, retryPage}, nil
}

// Retry puts the URLs of a selection back into their queues, in transactions of bounded size, and tells each how far it has come after every one.
// When it returns, all that it counts is on disk. A process that is killed leaves the rest to the next run; where the context ends, or each has an
// error, the rest is not done. The errors are those of Engine.Retry; with too little room on the disk it is storage.ErrNoSpace.
func (r *Retrier) Retry(ctx context.Context, s Selection, each func(Retried) error) (Retried, error) {
	e := r.engine
	w, err := newRetry(e.store, retryOrder{Selection: &s}, nil)
	if err != nil {
		return Retried{}, err
	}
	w.most = r.most
	last, err := e.lastRetry()
	if err != nil {
		return Retried{}, err
	}
	mark := retryMark(last + 1)
	for end := false; !end; {
		var page []storage.Done
		if page, end, err = w.step(ctx, e.store, e.now()); err != nil {
			break
		}
		if len(page) > 0 {
			if err = r.commit(&storage.Batch{Done: page, Marks: map[string][]byte{mark: w.encode()}}); err != nil {
				break
			}
			w.back.Add(uint64(len(page)))
		}
		if err = each(w.progress()); err != nil {
			break
		}
	}
	if w.back.Load() > 0 {
		if removed := r.commit(&storage.Batch{Marks: map[string][]byte{mark: nil}}); err == nil {
			err = removed
		}
	}
	return w.progress(), err
}

func (r *Retrier) commit(b *storage.Batch) error {
	if err := r.engine.checkRoom(); err != nil {
		return fmt.Errorf("put URLs back: %w", err)
	}
	if _, err := r.engine.store.Commit(b); err != nil {
		return fmt.Errorf("put URLs back: %w", r.engine.roomError(err))
	}
	return nil
}

// Close closes the store.
func (r *Retrier) Close() error { return r.engine.store.Close() }
