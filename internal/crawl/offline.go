package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/hostsort"
	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/storage"
)

// offline is the store of a crawl that does not run.
type offline struct {
	store store
	space *diskSpace
	now   func() time.Time
}

func openOffline(o *Options) (*offline, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s, err := storage.Open(o.DataDir, o.Storage)
	if err != nil {
		return nil, err
	}
	if err := checkErasure(o.DataDir); err != nil { // nobody begins one from here on
		return nil, errors.Join(err, s.Close())
	}
	o.fill()
	return &offline{store: s, space: newDiskSpace(o), now: o.Now}, nil
}

// commit commits if there is enough space on the disk.
func (f *offline) commit(b *storage.Batch) (storage.Result, error) {
	if err := f.space.check(); err != nil {
		return storage.Result{}, err
	}
	result, err := f.store.Commit(b)
	return result, f.space.explain(err)
}

// Close closes the store.
func (f *offline) Close() error { return f.store.Close() }

// Importer adds URLs to the store of a crawl that does not run.
type Importer struct {
	*offline
	o     *Options
	scope *frontier.Scope
	room  *hostsort.Room
}

// OpenImporter opens the store in o.DataDir, and makes one if there is none. The scope is that of
// the seeds given and of those that earlier runs have recorded. The errors of storage.Open come
// through.
func OpenImporter(o Options, seeds []Seed) (*Importer, error) {
	f, err := openOffline(&o)
	if err != nil {
		return nil, err
	}
	initial, err := newInitialScope(f.store, &o, seeds)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	pool, err := spool.Open(o.Spool)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Importer{offline: f, o: &o, scope: initial.scope, room: newSortRoom(pool, f.space)}, nil
}

// NewImport begins the import of a list. With too little space on the disk, the error of its Commit
// is storage.ErrNoSpace.
func (i *Importer) NewImport(o ImportOptions) Import {
	return newListImport(i.o, o, func() *frontier.Scope { return i.scope }, i.room, i.store, i.commitAddition)
}

// commitAddition commits an addition in one transaction.
func (i *Importer) commitAddition(ctx context.Context, a *addition) (added, error) {
	if err := ctx.Err(); err != nil {
		return added{}, err
	}
	b := storage.Batch{Found: a.found, InsertResults: make([]storage.InsertResult, len(a.found)), Done: a.again}
	started := i.now()
	result, err := i.commit(&b)
	return added{results: b.InsertResults, changed: result.Changed, took: i.now().Sub(started)}, err
}

// Retrier puts URLs of a crawl that does not run back into their queues.
type Retrier struct {
	*offline
	most int // URLs put back in one transaction
}

// OpenRetrier opens the store in o.DataDir, which has to exist. The errors of storage.Open come
// through.
func OpenRetrier(o Options) (*Retrier, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(o.DataDir, storage.FileName)); err != nil {
		return nil, err
	}
	f, err := openOffline(&o)
	if err != nil {
		return nil, err
	}
	return &Retrier{f, sweepChanged}, nil
}

// Retry puts the URLs of a selection back into their queues, in transactions of bounded size, and
// calls each with its progress after every one. When it returns, all that it counts is on disk. A
// process that is killed leaves the rest to the next run; if the context ends, or each returns an
// error, the rest is not done. The errors are those of Engine.Retry; with too little space on the
// disk it is storage.ErrNoSpace.
func (r *Retrier) Retry(ctx context.Context, s Selection, each func(Retried) error) (Retried, error) {
	w, err := newRetry(r.store, retryCommand{Selection: &s}, nil)
	if err != nil {
		return Retried{}, err
	}
	w.most = r.most
	last, err := lastRetry(r.store)
	if err != nil {
		return Retried{}, err
	}
	mark := retryMark(last + 1)
	for end := false; !end; {
		var page []storage.Done
		if page, end, err = w.step(ctx, r.store, slog.Default(), r.now()); err != nil {
			break
		}
		if len(page) > 0 {
			n := uint64(len(page))
			w.changed.Add(n)
			b := storage.Batch{Done: page, Marks: map[string][]byte{mark: w.encode()}}
			if _, err = r.commit(&b); err != nil {
				w.changed.Add(-n)
				err = fmt.Errorf("put URLs back: %w", err)
				break
			}
		}
		if err = each(w.progress()); err != nil {
			break
		}
	}
	if w.changed.Load() > 0 {
		_, removed := r.commit(&storage.Batch{Marks: map[string][]byte{mark: nil}})
		if err == nil && removed != nil {
			err = fmt.Errorf("put URLs back: %w", removed)
		}
	}
	return w.progress(), err
}
