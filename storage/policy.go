package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Policy returns the stored robots record of an origin, nil if there is none. One that is damaged counts
// as none: the robots.txt is fetched again before any page of the origin.
func (s *rows) Policy(o weburl.Origin) (record []byte, err error) {
	err = s.db.View(func(tx *txn) error {
		if v, ok := tx.Bucket(bucketRobots).Whole([]byte(o.String())); ok {
			record = append(record, v...)
		}
		return nil
	})
	return record, err
}

// RobotsHistory returns the stored earlier versions of the robots.txt of an origin, nil if there are none.
func (s *rows) RobotsHistory(o weburl.Origin) (encoded []byte, err error) {
	err = s.db.View(func(tx *txn) error {
		if b := tx.Bucket(bucketRobotsHistory); b != nil { // else no commit has stored one yet
			encoded = append(encoded, b.Get([]byte(o.String()))...)
		}
		return nil
	})
	return encoded, err
}

// Mark returns a mark as last committed, nil if it was never set.
func (s *rows) Mark(name string) (mark []byte, err error) {
	err = s.db.View(func(tx *txn) error {
		mark = append(mark, tx.Bucket(bucketMark).Get([]byte(name))...)
		return nil
	})
	return mark, err
}

// Marks returns the marks whose names begin with a prefix, by name.
func (s *rows) Marks(prefix string) (marks map[string][]byte, err error) {
	marks = make(map[string][]byte)
	err = s.db.View(func(tx *txn) error {
		c := tx.Bucket(bucketMark).Cursor()
		for k, v := c.Seek([]byte(prefix)); k != nil && strings.HasPrefix(string(k), prefix); k, v = c.Next() {
			marks[string(k)] = append([]byte(nil), v...)
		}
		return nil
	})
	return marks, err
}

// MarkNames returns the names of the marks that begin with a prefix and come after a name, in rising order, at
// most so many.
func (s *rows) MarkNames(prefix, after string, most int) (names []string, err error) {
	err = s.db.View(func(tx *txn) error {
		c := tx.Bucket(bucketMark).Cursor()
		k, _ := c.Seek([]byte(max(prefix, after)))
		for ; k != nil && len(names) < most && strings.HasPrefix(string(k), prefix); k, _ = c.Next() {
			if string(k) != after {
				names = append(names, string(k))
			}
		}
		return nil
	})
	return names, err
}

// A row of a seed is seedPlain alone, or seedEncoded and what the engine says of the seed.
const seedPlain, seedEncoded = 1, 2

// Seeds returns all seeds, in the order of their URLs.
func (s *rows) Seeds() (all []SeedRow, err error) {
	err = s.db.View(func(tx *txn) error {
		return tx.Bucket(bucketScope).Each(func(k, v []byte) error {
			if len(v) == 0 || v[0] != seedPlain && v[0] != seedEncoded {
				return fmt.Errorf("%w: seed %s cannot be read", ErrCorrupt, k)
			}
			all = append(all, SeedRow{string(k), append([]byte{}, v[1:]...)})
			return nil
		})
	})
	return all, err
}

// putSeeds writes and removes rows of seeds. In the order of their keys each is put at once; in another order a million
// of them would move each other for a quarter of an hour.
func putSeeds(to *bucket, seeds []SeedRow) (err error) {
	seeds = slices.Clone(seeds)
	slices.SortStableFunc(seeds, func(a, b SeedRow) int { return strings.Compare(a.URL, b.URL) })
	for i := 0; i < len(seeds) && err == nil; i++ {
		switch key, value := []byte(seeds[i].URL), seeds[i].Value; {
		case value == nil:
			err = to.Delete(key)
		case len(value) == 0:
			err = to.Put(key, []byte{seedPlain})
		default:
			err = to.Put(key, append([]byte{seedEncoded}, value...))
		}
	}
	return err
}

func (w *writer) putPolicies(policies []Policy) error {
	if len(policies) == 0 {
		return nil
	}
	bucket := w.tx.Bucket(bucketRobots)
	for _, p := range policies {
		key := []byte(p.Origin.String())
		if !bucket.Has(key) {
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
	bucket, err := w.tx.MakeBucket(bucketRobotsHistory)
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
	if err := putSeeds(w.tx.Bucket(bucketScope), b.Seeds); err != nil {
		return err
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
func putMarks(marks *bucket, all map[string][]byte) error {
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
