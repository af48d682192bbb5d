package crawl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

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

// commit commits if there is enough space on the disk. doing names the work in the error.
func (f *offline) commit(doing string, b *storage.Batch) error {
	if err := f.space.check(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if _, err := f.store.Commit(b); err != nil {
		return fmt.Errorf("%s: %w", doing, f.space.explain(err))
	}
	return nil
}

// Close closes the store.
func (f *offline) Close() error { return f.store.Close() }

// Importer adds URLs to the store of a crawl that does not run.
type Importer struct {
	*offline
	sifter sifter
	found  []storage.Found // one batch, used again
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
	return &Importer{offline: f, sifter: sifter{o: &o, store: f.store, scope: initial.scope}}, nil
}

// Add commits URLs, all of them in one transaction. With too little space on the disk the error is
// storage.ErrNoSpace.
func (i *Importer) Add(ctx context.Context, urls []Addition) (Added, error) {
	if err := ctx.Err(); err != nil {
		return Added{}, err
	}
	a, err := i.sifter.sift(urls, i.found[:0])
	if err != nil {
		return Added{}, fmt.Errorf("add URLs: %w", err)
	}
	i.found = a.found
	if len(a.found)+len(a.again) == 0 {
		return count(urls, nil, true), nil
	}
	b := storage.Batch{Found: a.found, InsertResults: make([]storage.InsertResult, len(a.found)), Done: a.again}
	if err := i.commit("add URLs", &b); err != nil {
		return Added{}, err
	}
	return count(urls, b.InsertResults, true), nil
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
	return &Retrier{f, retryPage}, nil
}

// Retry puts the URLs of a selection back into their queues, in transactions of bounded size, and
// calls each with its progress after every one. When it returns, all that it counts is on disk. A
// process that is killed leaves the rest to the next run; if the context ends, or each returns an
// error, the rest is not done. The errors are those of Engine.Retry; with too little space on the
// disk it is storage.ErrNoSpace.
func (r *Retrier) Retry(ctx context.Context, s Selection, each func(Retried) error) (Retried, error) {
	const doing = "put URLs back"
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
		if page, end, err = w.step(ctx, r.store, r.now()); err != nil {
			break
		}
		if len(page) > 0 {
			b := storage.Batch{Done: page, Marks: map[string][]byte{mark: w.encode()}}
			if err = r.commit(doing, &b); err != nil {
				break
			}
			w.back.Add(uint64(len(page)))
		}
		if err = each(w.progress()); err != nil {
			break
		}
	}
	if w.back.Load() > 0 {
		if removed := r.commit(doing, &storage.Batch{Marks: map[string][]byte{mark: nil}}); err == nil {
			err = removed
		}
	}
	return w.progress(), err
}
