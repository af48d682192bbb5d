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

// OpenMerged opens the database in o.DataDir. The seeds given are those of the settings of the cluster. changes are
// those that were published, which the database records.
func OpenMerged(o Options, given []Seed, changes []storage.SeedRow) (*Merged, error) {
	if o.IgnoreRobots { // as in Open
		o.Storage.MaxQueries, o.Storage.MaxSameDigest = 0, 0
	}
	f, err := openOffline(&o)
	if err != nil {
		return nil, err
	}
	j := &Merged{offline: f, o: &o}
	if b := (storage.Batch{Seeds: changes}); !b.Empty() {
		_, err = j.commit(&b)
	}
	var initial *initialScope
	if err == nil {
		initial, err = newInitialScope(f.store, &o, given)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	j.scope = initial.scope
	return j, nil
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
