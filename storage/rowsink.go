//go:build !core

package storage

import (
	"maps"
	"slices"
)

// rowSink takes the rows of a database, bucket by bucket.
type rowSink interface {
	Begin(bucket []byte) error
	Put(k, v []byte) error
}

// discard is a rowSink for those who only count.
type discard struct{}

func (discard) Begin([]byte) error    { return nil }
func (discard) Put(_, _ []byte) error { return nil }

// putSorted passes rows on in the order of their keys.
func putSorted(to rowSink, rows map[string][]byte) error {
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if err := to.Put([]byte(key), rows[key]); err != nil {
			return err
		}
	}
	return nil
}
