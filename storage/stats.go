package storage

import (
	"context"
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"
)

// BucketStats is what one bucket takes.
type BucketStats struct {
	Name   string
	Rows   int
	Bytes  int64 // of its pages
	InUse  int64 // bytes of those that hold rows
	Levels int   // of its tree
}

// Stats is what the file consists of.
type Stats struct {
	FileBytes int64
	PageSize  int
	FreePages int // pages that hold nothing and are free for new rows; the file does not shrink
	Buckets   []BucketStats
	Counters  Counters
}

// overheadPages are those that every file has: two for bbolt's meta, and one each for the list of free pages and of buckets. The
// list of free pages grows with it, which is neglected.
const overheadPages = 4

// Stats walks all pages of the database, in one read transaction for each
// bucket. It is for people who want to know, not for a running crawl's status.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	st := Stats{Counters: s.Counters()}
	info, err := os.Stat(s.path)
	if err != nil {
		return st, fmt.Errorf("database statistics: %w", err)
	}
	st.FileBytes = info.Size()
	used := 0
	for _, name := range buckets() {
		if err := ctx.Err(); err != nil {
			return st, err
		}
		err := s.db.View(func(tx *bolt.Tx) error {
			st.PageSize = tx.DB().Info().PageSize
			bucket := tx.Bucket(name)
			if bucket == nil { // the file is of an older version
				return nil
			}
			b := bucket.Stats()
			used += b.BranchPageN + b.BranchOverflowN + b.LeafPageN + b.LeafOverflowN
			st.Buckets = append(st.Buckets, BucketStats{
				Name: string(name), Rows: b.KeyN, Levels: b.Depth,
				Bytes: int64(b.BranchAlloc + b.LeafAlloc), InUse: int64(b.BranchInuse + b.LeafInuse),
			})
			return nil
		})
		if err != nil {
			return st, fmt.Errorf("statistics of bucket %s: %w", name, err)
		}
	}
	st.FreePages = max(int(st.FileBytes/int64(st.PageSize))-overheadPages-used, 0)
	return st, nil
}
