package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/disk"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/storage"
)

// offline is the store of a crawl that does not run.
type offline struct {
	store store
	space *disk.Space
	now   func() time.Time
}

func openOffline(o *Options) (*offline, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s, err := openStore(o)
	if err != nil {
		return nil, err
	}
	o.fill()
	return &offline{store: s, space: newDiskSpace(o), now: o.Now}, nil
}

// commit commits if there is enough space on the disk.
func (f *offline) commit(b *storage.Batch) (storage.Result, error) {
	if err := f.space.Check(); err != nil {
		return storage.Result{}, err
	}
	result, err := f.store.Commit(b)
	return result, f.space.Explain(err)
}

// Close closes the store.
func (f *offline) Close() error { return f.store.Close() }

// Retrier puts URLs of a crawl that does not run back into their queues, or leaves them out.
type Retrier struct {
	*offline
	most  int               // URLs put back in one transaction
	seeds func() *seeds.Set // in force
}

// OpenRetrier opens the store in o.DataDir, which has to exist. given are the seeds of the settings. The errors of
// storage.Open come through.
func OpenRetrier(o Options, given []Seed) (*Retrier, error) {
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
	set := sync.OnceValue(func() *seeds.Set { // there may be many
		initial, err := newInitialScope(f.store, &o, given)
		if err != nil {
			return nil
		}
		return initial.Set
	})
	return &Retrier{f, sweep.MostChanged, set}, nil
}

// Retry puts the URLs of a selection back into their queues, or leaves them out, in transactions of bounded size, and
// calls each with its progress after every one. When it returns, all that it counts is on disk. A
// process that is killed leaves the rest to the next run; if the context ends, or each returns an
// error, the rest is not done. The errors are those of Engine.Retry; with too little space on the
// disk it is storage.ErrNoSpace.
func (r *Retrier) Retry(
	ctx context.Context, s sweep.Selection, each func(sweep.Retried) error,
) (sweep.Retried, error) {
	w, err := s.Begin(r.store, r.seeds)
	if err != nil {
		return sweep.Retried{}, err
	}
	w.Limit(r.most)
	last, err := sweep.LastRetry(r.store)
	if err != nil {
		return sweep.Retried{}, err
	}
	mark := sweep.RetryMark(last + 1)
	for end := false; !end; {
		var page []storage.Done
		if page, end, err = w.Walk(ctx, r.store, slog.Default(), r.now()); err != nil {
			break
		}
		if len(page) > 0 {
			w.Add(len(page))
			b := storage.Batch{Done: page, Marks: map[string][]byte{mark: w.Encode()}}
			if err = r.forget(w.Forgotten(), b.Marks); err == nil {
				_, err = r.commit(&b)
			}
			if err != nil {
				w.Add(-len(page))
				err = fmt.Errorf("put URLs back: %w", err)
				break
			}
		}
		if err = each(w.Progress()); err != nil {
			break
		}
	}
	if p := w.Progress(); p.Back+p.Dropped > 0 {
		_, removed := r.commit(&storage.Batch{Marks: map[string][]byte{mark: nil}})
		if err == nil && removed != nil {
			err = fmt.Errorf("put URLs back: %w", removed)
		}
	}
	return w.Progress(), err
}

// forget takes pages off the recrawl plan.
func (r *Retrier) forget(pages []sweep.PlannedPage, to map[string][]byte) error {
	plan, err := r.store.Mark(marks.Plan)
	if err != nil || plan == nil || len(pages) == 0 {
		return err
	}
	to[marks.Plan], err = recrawl.Without(plan, func(remove func(recrawl.History, recrawl.Importance)) error {
		for _, p := range pages {
			remove(p.History, p.Importance)
		}
		return nil
	})
	return err
}

// Time returns the time by the clock of the options.
func (o Options) Time() time.Time {
	o.fill()
	return o.Now()
}

// ErasureFile is the name of the file under the data directory that exists while hosts are erased.
// Until the erasure has ended, Open and the functions for a crawl that does not run refuse the
// directory with ErrErasing.
const ErasureFile = "erasing.json"

// ErrErasing says that hosts are being erased, or that this was interrupted.
var ErrErasing = errors.New("an erasure of hosts has not ended")

// openStore opens the store in o.DataDir, unless hosts are being erased there.
func openStore(o *Options) (*storage.Store, error) {
	s, err := storage.Open(o.DataDir, o.Storage)
	if err != nil {
		return nil, err
	}
	if err := checkErasure(o.DataDir); err != nil { // nobody begins one from here on
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// checkErasure returns ErrErasing while an erasure has not ended.
func checkErasure(dir string) error {
	path := filepath.Join(dir, ErasureFile)
	if _, err := os.Stat(path); err != nil {
		return nil // nor is there one if the directory cannot be read
	}
	return fmt.Errorf("%w: %s is there; amble run goes on with it and then crawls, amble erase --resume goes on "+
		"with it alone", ErrErasing, path)
}
