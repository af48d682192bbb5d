//go:build !core

package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// MostPurged is how many URLs a commit should delete, and mostPurgedRows how many rows of
// fingerprints and of payloads it should clear of deleted URLs.
const (
	MostPurged     = 10_000
	mostPurgedRows = 2_000
)

// PurgeRange returns the end of the rows from a key on that one commit should clear of deleted
// URLs. It is math.MaxUint64 if there are no more rows behind it.
func (s *Store) PurgeRange(host HostID, from uint64) (to uint64, err error) {
	to = math.MaxUint64
	err = s.db.View(func(tx *txn) error {
		for _, name := range [][]byte{bucketSeen, bucketPayload} {
			b := tx.Bucket(name)
			if b == nil {
				continue // the file is of an older version
			}
			c, n := b.Cursor(), 0
			k, _ := c.Seek(appendSeenKey(nil, host, from))
			for ; len(k) == seenKeySize && hostOfKey(k) == host; k, _ = c.Next() {
				if at := binary.BigEndian.Uint64(k[4:]); n == mostPurgedRows {
					to = min(to, at-1)
					break
				}
				n++
			}
		}
		return nil
	})
	return to, err
}

// purge deletes URLs of the host at hand.
func (w *writer) purge(r *hostRow, p *Purge) error {
	if below := min(p.Below, r.next); below > r.first {
		if err := w.purgeURLs(r, below); err != nil {
			return fmt.Errorf("delete URLs below %d: %w", below, err)
		}
	}
	if p.From|p.To == 0 {
		return nil
	}
	if err := w.purgeSeen(r, p.From, p.To); err != nil {
		return fmt.Errorf("delete fingerprints: %w", err)
	}
	if err := w.purgePayloads(r, p.From, p.To); err != nil {
		return fmt.Errorf("delete payloads: %w", err)
	}
	return nil
}

// purgeURLs deletes the URLs below an ordinal.
func (w *writer) purgeURLs(r *hostRow, below uint32) error {
	for n := r.first; n < below; n++ {
		if err := w.uncount(r, n); err != nil {
			return err
		}
	}
	rows, last := blockOf(below), below
	if below == r.next { // nothing is left in the last block
		rows, last = math.MaxUint32, math.MaxUint32
	}
	for _, span := range []struct {
		bucket   *bucket
		from, to uint32
	}{
		{w.url, blockOf(r.first), rows},
		{w.state, blockOf(r.first), rows},
		{w.tx.Bucket(bucketMetadata), r.first, last},
	} {
		from := binary.BigEndian.AppendUint32(appendHostKey(nil, r.id), span.from)
		to := binary.BigEndian.AppendUint32(appendHostKey(nil, r.id), span.to)
		if err := deleteRows(span.bucket, from, to); err != nil {
			return err
		}
	}
	r.recent = slices.DeleteFunc(r.recent, func(o recentOutcome) bool { return o.ordinal < below })
	if err := w.cutTail(r, below); err != nil {
		return err
	}
	r.first = below
	w.payloads = w.livePayloads(r)
	if r.urls() > 0 {
		return nil
	}
	r.queries, r.digests, r.errors, w.refusals = r.queries[:0], r.digests[:0], r.errors[:0], w.refusals[:0]
	return w.trap.Delete(appendHostKey(w.key[:0], r.id))
}

// uncount takes a URL out of the counts of its host and out of the rows of due URLs and recrawls.
func (w *hostWork) uncount(r *hostRow, ordinal uint32) error {
	e, err := w.entry(r, ordinal)
	if err != nil {
		return err
	}
	o, err := w.outcome(r, ordinal)
	if err != nil {
		return err
	}
	due, recrawl := o.plan()
	if o.State == Queued && r.prioritized(ordinal, e.Priority) {
		due = dueAtOnce
	} else if o.State == Queued {
		r.origins[e.Origin].Queued--
	}
	w.count(r, e.Priority, o.State, -1)
	w.counters.URLs--
	d := Done{Host: r.id, Ordinal: ordinal, Origin: e.Origin, Priority: e.Priority}
	if err := w.moveDue(r, &d, due, 0); err != nil {
		return err
	}
	return w.moveRecrawl(r, &d, recrawl, 0)
}

// deleteRows deletes the rows with keys from one to below another.
func deleteRows(b *bucket, from, to []byte) error {
	c := b.Cursor()
	for k, _ := c.Seek(from); k != nil && bytes.Compare(k, to) < 0; k, _ = c.Seek(from) {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// cutTail removes the URLs below an ordinal from the tail. Those of a block that has others keep
// their places, without their contents.
func (w *hostWork) cutTail(r *hostRow, below uint32) error {
	if below <= r.spilled {
		return nil
	}
	if err := w.indexTail(r); err != nil {
		return err
	}
	end := len(w.tail)
	if i := below - r.spilled; int(i) < len(w.index) {
		end = w.index[i].start
	}
	r.spilled = blockOf(below)
	var tail []byte
	for range below - r.spilled {
		tail = appendEntry(tail, r.id, &Entry{})
	}
	w.tails = append(tail, w.tail[end:]...)
	w.tail, w.ownTail = w.tails, true
	w.index = w.index[:0]
	return nil
}

// livePayloads returns the payloads of the row whose URLs are not deleted.
func (w *hostWork) livePayloads(r *hostRow) (live recentPayloads) {
	for item := range slices.Chunk(w.payloads, payloadItemSize) {
		if p, ok := decodePayload(item[8:]); ok && p.Ordinal >= r.first {
			live = append(live, item...)
		}
	}
	return live
}

// purgeSeen removes the fingerprints of deleted URLs from rows.
func (w *writer) purgeSeen(r *hostRow, from, to uint64) error {
	return w.purgeRows(w.seen, r.id, from, to, func(v []byte) []byte {
		kept := make([]byte, 0, len(v))
		for item := range slices.Chunk(v, seenItemSize) {
			if len(item) < seenItemSize || binary.BigEndian.Uint32(item[8:]) >= r.first {
				kept = append(kept, item...)
			}
		}
		return kept
	})
}

// purgePayloads removes the payloads of deleted URLs.
func (w *writer) purgePayloads(r *hostRow, from, to uint64) error {
	b := w.tx.Bucket(bucketPayload)
	if b == nil {
		return nil
	}
	return w.purgeRows(b, r.id, from, to, func(v []byte) []byte {
		if p, ok := decodePayload(v); ok && p.Ordinal < r.first {
			return nil
		}
		return v
	})
}

// purgeRows replaces the rows of a host in a bucket whose keys end in a number from one to another.
// Rows without anything kept are deleted.
func (w *writer) purgeRows(b *bucket, host HostID, from, to uint64, keep func(v []byte) []byte) error {
	type row struct{ key, value []byte }
	var changed []row
	c := b.Cursor()
	k, v := c.Seek(appendSeenKey(nil, host, from))
	for ; len(k) == seenKeySize && hostOfKey(k) == host && binary.BigEndian.Uint64(k[4:]) <= to; k, v = c.Next() {
		if kept := keep(v); len(kept) < len(v) {
			changed = append(changed, row{bytes.Clone(k), kept})
		}
	}
	for _, row := range changed {
		put := func() error { return b.Put(row.key, row.value) }
		if len(row.value) == 0 {
			put = func() error { return b.Delete(row.key) }
		}
		if err := put(); err != nil {
			return err
		}
	}
	return nil
}
