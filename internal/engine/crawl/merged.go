//go:build !core

package crawl

import (
	"errors"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/storage"
)

// Merged is the database of a crawl that was joined of shards, to which it adds what no shard had yet. It must not be
// used concurrently.
type Merged struct {
	*offline
	o     *Options
	scope *frontier.Scope
}

// OpenMerged opens the database in o.DataDir. changes are those of seeds that were published, which the database
// records.
func OpenMerged(o Options, changes []storage.SeedRow) (*Merged, error) {
	if o.IgnoreRobots { // as in Open
		o.Storage.MaxQueries, o.Storage.MaxSameDigest = 0, 0
	}
	f, err := openOffline(&o)
	if err != nil {
		return nil, err
	}
	if b := (storage.Batch{Seeds: changes}); !b.Empty() {
		_, err = f.commit(&b)
	}
	var initial *initialScope
	if err == nil {
		initial, err = newInitialScope(f.store, &o, nil)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Merged{f, &o, initial.scope}, nil
}

// Counters returns the counters of the database.
func (j *Merged) Counters() storage.Counters { return j.store.Counters() }

// Add adds URLs that were on their way to their shard, judged as the engine of the shard would.
func (j *Merged) Add(urls []storage.Discovery) error {
	var b storage.Batch
	for i := range urls {
		if f, ok := j.o.admitIncoming(j.scope, j.store, &urls[i]); ok {
			b.Found = append(b.Found, f)
		}
	}
	if b.Empty() {
		return nil
	}
	_, err := j.commit(&b)
	return err
}
