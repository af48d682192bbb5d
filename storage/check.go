package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// Finding is one thing that Check found wrong.
type Finding struct{ Text string }

// Check reads the whole database in one long read transaction and reports
// everything that contradicts FORMAT.md: bbolt's own page structure, rows that
// cannot be read or belong to nothing, URLs without a fingerprint or the other
// way round, URLs that are there twice, outcomes and due rows that do not match,
// and counters that are not a full count. It is for a database that no daemon
// writes. The error is the context's, or ErrCorrupt where pages are damaged: then
// the rows are not looked at.
func (s *Store) Check(ctx context.Context, report func(Finding)) error {
	return guard(func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			if err := s.checkPages(ctx, tx, report); err != nil {
				return err
			}
			c := checker{store: s, tx: tx, report: report, rows: make(map[string]int)}
			cursor := tx.Bucket(bucketHost).Cursor()
			for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
				if err := ctx.Err(); err != nil {
					return err
				}
				c.host(k, v)
			}
			c.totals()
			for err := range tx.Check() {
				c.found("pages: %v", err)
			}
			return nil
		})
	})
}

// checkPages makes sure that bbolt can follow all pages that a transaction sees.
func (s *Store) checkPages(ctx context.Context, tx *bolt.Tx, report func(Finding)) error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	metas := validMetas(f)
	i := slices.IndexFunc(metas, func(m boltMeta) bool { return m.tx == uint64(tx.ID()) })
	if i < 0 {
		return errors.New("the database was written to while it was checked")
	}
	damaged := false
	err = walkPages(ctx, f, metas[i], func(text string) {
		damaged = true
		report(Finding{text})
	})
	if err == nil && damaged {
		err = fmt.Errorf("%w: its pages are damaged, and the rows in them were not looked at", ErrCorrupt)
	}
	return err
}

type checker struct {
	store  *Store
	tx     *bolt.Tx
	report func(Finding)
	sum    Counters
	rows   map[string]int // by bucket: rows that belong to a URL or a host
}

func (c *checker) found(format string, args ...any) {
	c.report(Finding{fmt.Sprintf(format, args...)})
}

// totals compares the store's counters and row counts with the sums.
func (c *checker) totals() {
	counters, ok := decodeCounters(c.tx.Bucket(bucketMeta).Get(metaCounters))
	if !ok {
		c.found("counters cannot be read")
	}
	c.sum.Policies = uint64(c.tx.Bucket(bucketRobots).Stats().KeyN)
	if ok && counters != c.sum {
		c.found("counters are %+v, a full count gives %+v", counters, c.sum)
	}
	c.rows[string(bucketName)] = int(c.sum.Hosts)
	for _, name := range [][]byte{bucketName, bucketURL, bucketSeen, bucketState, bucketDue, bucketRenew, bucketTrap, bucketPayload} {
		b := c.tx.Bucket(name)
		if b == nil {
			continue // a file of version 1 has no traps
		}
		if n, want := b.Stats().KeyN, c.rows[string(name)]; n != want {
			c.found("bucket %s has %d rows, %d belong to a host", name, n, want)
		}
	}
}
