//go:build !core

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

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/disk"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/optouts"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/seedbook"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/records/hostsort"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/internal/web/weburl"
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
	return &Importer{offline: f, o: &o, scope: initial.scope, room: newSortSpace(pool, f.space)}, nil
}

// Importer adds URLs to the store of a crawl that does not run.
type Importer struct {
	*offline
	o     *Options
	scope *frontier.Scope
	room  *hostsort.Workspace
}

// NewImport begins the import of a list. With too little space on the disk, the error of its Commit
// is storage.ErrNoSpace.
func (i *Importer) NewImport(o ImportOptions) Import { return i.newImport(o, i.commitRows) }

func (i *Importer) newImport(
	o ImportOptions, commit func(context.Context, lists.Rows) (lists.Added, error),
) *lists.Import {
	scope := func() *frontier.Scope { return i.scope }
	return lists.NewImport(i.o.listRules(), o.Results, 0, scope, i.o.Now, i.room, i.store, commit)
}

// commitRows commits rows in one transaction. It does not say how long that took: nobody waits for the
// database meanwhile, so bytes alone bound the batches.
func (i *Importer) commitRows(ctx context.Context, rows lists.Rows) (lists.Added, error) {
	if err := ctx.Err(); err != nil {
		return lists.Added{}, err
	}
	b := storage.Batch{Found: rows.Found, Done: rows.Again}
	b.InsertResults = make([]storage.InsertResult, len(rows.Found))
	result, err := i.commit(&b)
	return lists.Added{Results: b.InsertResults, Changed: result.Changed}, err
}

// OpenOptOuts opens the store in o.DataDir, and makes one if there is none. The errors of storage.Open
// come through.
func OpenOptOuts(o Options) (*OptOutKeeper, error) {
	f, err := openOffline(&o)
	if err != nil {
		return nil, err
	}
	return &OptOutKeeper{f}, nil
}

// OptOutKeeper records opt-outs of a crawl that does not run.
type OptOutKeeper struct{ *offline }

// AddOptOut is Engine.AddOptOut.
func (k *OptOutKeeper) AddOptOut(_ context.Context, e optout.Entry) error {
	b := storage.Batch{Marks: map[string][]byte{marks.OptOut(e.Scope, e.Value): optouts.Encode(e)}}
	if _, err := k.commit(&b); err != nil {
		return fmt.Errorf("record the opt-out: %w", err)
	}
	return nil
}

// RemoveOptOut is Engine.RemoveOptOut; the next run puts the URLs back.
func (k *OptOutKeeper) RemoveOptOut(_ context.Context, scope optout.Scope, value string) error {
	name := marks.OptOut(scope, value)
	if encoded, err := k.store.Mark(name); err != nil || encoded == nil {
		return errors.Join(err, optouts.ErrUnknown(optout.Entry{Scope: scope, Value: value}))
	}
	if _, err := k.commit(&storage.Batch{Marks: map[string][]byte{name: nil}}); err != nil {
		return fmt.Errorf("remove the opt-out: %w", err)
	}
	return nil
}

// StoredOptOuts is Engine.OptOuts for a crawl that does not run.
func StoredOptOuts(s *storage.Store, o Options) ([]OptOut, error) {
	return optouts.All(s, o.OptOuts, nil, time.Now())
}

// OpenSeeds opens the store in o.DataDir, and makes one if there is none. The errors of storage.Open come through.
func OpenSeeds(o Options) (*SeedKeeper, error) {
	f, err := openOffline(&o)
	if err != nil {
		return nil, err
	}
	return &SeedKeeper{f}, nil
}

// SeedKeeper changes the seeds of a crawl that does not run.
type SeedKeeper struct{ *offline }

// ChangeSeeds is Engine.ChangeSeeds; the next run fetches the seeds, and drops what is of no seed any more.
func (k *SeedKeeper) ChangeSeeds(_ context.Context, w SeedWish) (SeedCounts, error) {
	all, err := StoredSeeds(k.store)
	if err != nil {
		return SeedCounts{}, err
	}
	set := seeds.NewSet(0).With(all)
	c, err := seedbook.Plan(set, &w)
	b := storage.Batch{Seeds: c.Rows(set)}
	if err != nil || b.Empty() {
		return c.Counts, err
	}
	if c.Removed > 0 {
		b.Marks = map[string][]byte{sweep.MarkExclude: []byte(storage.Position{}.String())}
	}
	if _, err := k.commit(&b); err != nil {
		return SeedCounts{}, fmt.Errorf("change seeds: %w", err)
	}
	return c.Counts, nil
}

// StoredSeeds is Engine.Seeds of a crawl that does not run.
func StoredSeeds(s seedbook.Store) ([]Seed, error) { return seedbook.Read(s) }

// StoredScope puts the scope of a crawl that does not run into view: that of the seeds given and of
// those that earlier runs have recorded, without what opted out.
func StoredScope(s *storage.Store, o Options, given []Seed, view *inspect.Options) error {
	o.fill()
	initial, err := newInitialScope(s, &o, given)
	if err != nil {
		return err
	}
	view.Scope = func(u weburl.URL, head *storage.Entry) (bool, string) { return isInScope(initial.scope, u, head) }
	view.Seeds = initial.scope.Seeds
	view.OptOut = func(host, address string) string { return optouts.OfHost(initial.scope, host, address) }
	return nil
}
