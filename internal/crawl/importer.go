package crawl

import (
	"context"
	"errors"
	"fmt"

	"github.com/amble-crawler/amble/storage"
)

// Importer adds URLs to the store of a crawl that does not run.
type Importer struct {
	engine *Engine
	found  []storage.Found // one batch, used again
}

// OpenImporter opens the store in o.DataDir, and makes one where there is none. The scope is that of the seeds given and of those that
// earlier runs have recorded. The errors of storage.Open come through.
func OpenImporter(o Options, seeds []Seed) (*Importer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s, err := storage.Open(o.DataDir, o.Storage)
	if err != nil {
		return nil, err
	}
	e := &Engine{o: o, store: s, free: storage.FreeBytes}
	e.put(o.Live())
	scope, _, err := e.initialScope(seeds)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	e.scope.Store(scope)
	return &Importer{engine: e}, nil
}

// Add commits URLs, all of them in one transaction. With too little room on the disk the error is storage.ErrNoSpace.
func (i *Importer) Add(ctx context.Context, urls []Addition) (Added, error) {
	if err := ctx.Err(); err != nil {
		return Added{}, err
	}
	a, err := i.engine.sift(urls, i.found[:0])
	if err != nil {
		return Added{}, fmt.Errorf("add URLs: %w", err)
	}
	i.found = a.found
	if len(a.found)+len(a.again) == 0 {
		return settle(urls, nil, true), nil
	}
	if err := i.engine.checkRoom(); err != nil {
		return Added{}, fmt.Errorf("add URLs: %w", err)
	}
	b := storage.Batch{Found: a.found, Fates: make([]storage.Fate, len(a.found)), Done: a.again}
	if _, err := i.engine.store.Commit(&b); err != nil {
		return Added{}, fmt.Errorf("add URLs: %w", i.engine.roomError(err))
	}
	return settle(urls, b.Fates, true), nil
}

// Close closes the store.
func (i *Importer) Close() error { return i.engine.store.Close() }
