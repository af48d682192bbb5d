package storage

import (
	"maps"
	"slices"
)

// rowSink takes the rows of a database, bucket by bucket.
type rowSink interface {
	begin(bucket []byte) error
	put(k, v []byte) error
}

// discard is a rowSink for those who only count.
type discard struct{}

func (discard) begin([]byte) error { return nil }

func (discard) put(_, _ []byte) error { return nil }

// rowWriter writes rows to a new database, in transactions of bounded size.
type rowWriter struct {
	db     *database
	tx     *txn
	name   []byte
	bucket *bucket
	size   int
}

func (w *rowWriter) begin(bucket []byte) error {
	w.name = bucket
	return w.open()
}

// open opens the bucket at hand in the transaction at hand.
func (w *rowWriter) open() (err error) {
	if w.tx == nil {
		if w.tx, err = w.db.begin(); err != nil {
			return err
		}
	}
	if w.bucket, err = w.tx.makeBucket(w.name); err == nil {
		w.bucket.fill(appendFill)
	}
	return err
}

func (w *rowWriter) put(k, v []byte) error {
	if w.size += len(k) + len(v); w.size > compactTransaction {
		if err := w.end(); err != nil {
			return err
		}
		if err := w.open(); err != nil {
			return err
		}
		w.size = len(k) + len(v)
	}
	return w.bucket.put(k, v)
}

// end commits the transaction at hand.
func (w *rowWriter) end() error {
	if w.tx == nil {
		return nil
	}
	tx := w.tx
	w.tx = nil
	return tx.commit()
}

// drop ends the transaction at hand without a commit.
func (w *rowWriter) drop() error {
	if w.tx == nil {
		return nil
	}
	return w.tx.rollback()
}

// putSorted passes rows on in the order of their keys.
func putSorted(to rowSink, rows map[string][]byte) error {
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if err := to.put([]byte(key), rows[key]); err != nil {
			return err
		}
	}
	return nil
}
