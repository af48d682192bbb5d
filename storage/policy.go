package storage

import (
	"fmt"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/amble-crawler/amble/internal/weburl"
)

// Policy returns the stored robots record of an origin, nil if there is none.
func (s *Store) Policy(o weburl.Origin) (record []byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		record = append(record, tx.Bucket(bucketRobots).Get([]byte(o.String()))...)
		return nil
	})
	return record, err
}

// RobotsHistory returns the stored earlier versions of the robots.txt of an origin, nil if there
// are none.
func (s *Store) RobotsHistory(o weburl.Origin) (encoded []byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		if b := tx.Bucket(bucketRobotsHistory); b != nil { // else no commit has stored one yet
			encoded = append(encoded, b.Get([]byte(o.String()))...)
		}
		return nil
	})
	return encoded, err
}

// Mark returns a mark as last committed, nil if it was never set.
func (s *Store) Mark(name string) (mark []byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		mark = append(mark, tx.Bucket(bucketMark).Get([]byte(name))...)
		return nil
	})
	return mark, err
}

// Marks returns the marks whose names begin with a prefix, by name.
func (s *Store) Marks(prefix string) (marks map[string][]byte, err error) {
	marks = make(map[string][]byte)
	err = s.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketMark).Cursor()
		for k, v := c.Seek([]byte(prefix)); k != nil && strings.HasPrefix(string(k), prefix); k, v = c.Next() {
			marks[string(k)] = append([]byte(nil), v...)
		}
		return nil
	})
	return marks, err
}

// ScopeSeeds returns the scope seeds: URLs that redirects of seeds led to.
func (s *Store) ScopeSeeds() (urls []string, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketScope).ForEach(func(k, _ []byte) error {
			urls = append(urls, string(k))
			return nil
		})
	})
	return urls, err
}

func (w *writer) putPolicies(policies []Policy) error {
	if len(policies) == 0 {
		return nil
	}
	bucket := w.tx.Bucket(bucketRobots)
	for _, p := range policies {
		key := []byte(p.Origin.String())
		if bucket.Get(key) == nil {
			w.counters.Policies++
		}
		if err := bucket.Put(key, p.Record); err != nil {
			return fmt.Errorf("robots record of %s: %w", p.Origin, err)
		}
	}
	return nil
}

// putRobotsHistory writes earlier versions of robots.txt files.
func (w *writer) putRobotsHistory(history []Policy) error {
	if len(history) == 0 {
		return nil
	}
	bucket, err := w.tx.CreateBucketIfNotExists(bucketRobotsHistory)
	if err != nil {
		return err
	}
	for _, p := range history {
		if err := bucket.Put([]byte(p.Origin.String()), p.Record); err != nil {
			return fmt.Errorf("earlier robots.txt files of %s: %w", p.Origin, err)
		}
	}
	return nil
}

func (w *writer) putMeta(b *Batch) error {
	for _, seed := range b.ScopeSeeds {
		if err := w.tx.Bucket(bucketScope).Put([]byte(seed), []byte{1}); err != nil {
			return fmt.Errorf("scope seed %s: %w", seed, err)
		}
	}
	for _, name := range []string{markLog, markView} {
		if _, is := b.Marks[name]; is {
			return fmt.Errorf("mark %s belongs to the store", name)
		}
	}
	if err := putMarks(w.tx.Bucket(bucketMark), b.Marks); err != nil {
		return err
	}
	return w.tx.Bucket(bucketMeta).Put(metaCounters, appendCounters(nil, w.counters))
}

// putMarks sets marks; nil removes one.
func putMarks(marks *bolt.Bucket, all map[string][]byte) error {
	for name, mark := range all {
		put := func() error { return marks.Put([]byte(name), mark) }
		if mark == nil {
			put = func() error { return marks.Delete([]byte(name)) }
		}
		if err := put(); err != nil {
			return fmt.Errorf("mark %s: %w", name, err)
		}
	}
	return nil
}
