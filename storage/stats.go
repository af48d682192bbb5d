//go:build !core

package storage

import (
	"context"
	"fmt"
	"os"
)

// BucketStats is the size of one bucket.
type BucketStats struct {
	Name   string
	Rows   int
	Bytes  int64 // of its pages
	InUse  int64 // bytes of those that hold rows
	Levels int   // of its tree
}

// Stats describes what the file consists of.
type Stats struct {
	FileBytes int64
	PageSize  int
	FreePages int // pages that are free for new rows; the file does not shrink
	Buckets   []BucketStats
	Counters  Counters
}

// overheadPages are the pages that every file has: two meta pages, and one page each for the free
// list and the list of buckets. The free list may take more; that is neglected.
const overheadPages = 4

// Stats walks all pages of the database, in one read transaction for each bucket, which takes long for a large file.
func (s *rows) Stats(ctx context.Context) (Stats, error) {
	st := Stats{Counters: s.Counters()}
	info, err := os.Stat(s.path)
	if err != nil {
		return st, fmt.Errorf("database statistics: %w", err)
	}
	st.FileBytes, st.PageSize = info.Size(), s.db.PageSize()
	used := 0
	for _, name := range buckets() {
		if err := ctx.Err(); err != nil {
			return st, err
		}
		err := s.db.View(func(tx *txn) error {
			if b := tx.Bucket(name); b != nil { // else the file is of an older version
				st.Buckets = append(st.Buckets, statsOf(b, &used))
			}
			return nil
		})
		if err != nil {
			return st, fmt.Errorf("statistics of bucket %s: %w", name, err)
		}
	}
	st.FreePages = max(int(st.FileBytes/int64(st.PageSize))-overheadPages-used, 0)
	return st, nil
}

// statsOf returns the size of a bucket, and adds its pages to used. It reads all pages.
func statsOf(b *bucket, used *int) BucketStats {
	s := b.Bolt.Stats()
	*used += s.BranchPageN + s.BranchOverflowN + s.LeafPageN + s.LeafOverflowN
	return BucketStats{
		Name: string(b.Name), Rows: s.KeyN, Levels: s.Depth,
		Bytes: int64(s.BranchAlloc + s.LeafAlloc), InUse: int64(s.BranchInuse + s.LeafInuse),
	}
}

// Metadata returns the metadata of a URL, nil if it has none.
func (s *rows) Metadata(host HostID, ordinal uint32) (m Metadata, err error) {
	err = s.db.View(func(tx *txn) error {
		b := tx.Bucket(bucketMetadata)
		if b == nil { // the file is of an older version
			return nil
		}
		var ok bool
		if m, ok = DecodeMetadata(b.Get(appendURLKey(nil, host, ordinal))); !ok {
			return fmt.Errorf("host %d: %w: metadata of URL %d cannot be read", host, ErrCorrupt, ordinal)
		}
		return nil
	})
	return m, err
}

// RobotsRecords calls f for each origin with a robots record or earlier versions of its robots.txt, nil for
// what it does not have. It reads all of them in one transaction. They are valid during the call only.
func (s *rows) RobotsRecords(f func(origin string, record, history []byte) error) error {
	return s.db.View(func(tx *txn) error {
		records, past := tx.Bucket(bucketRobots), tx.Bucket(bucketRobotsHistory)
		err := records.Each(func(k, v []byte) error {
			if past == nil {
				return f(string(k), v, nil)
			}
			return f(string(k), v, past.Get(k))
		})
		if err != nil || past == nil {
			return err
		}
		return past.Each(func(k, v []byte) error {
			if records.Has(k) {
				return nil
			}
			return f(string(k), nil, v)
		})
	})
}

// IsLogged reports whether the database is a view of a log.
func (s *Store) IsLogged() bool { return s.position.Number > 0 }

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
