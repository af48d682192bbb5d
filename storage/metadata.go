package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/storage/internal/rowfile"
)

// Metadata are what clients attach to a URL: lists of strings by key. The order of a list counts.
type Metadata map[string][]string

// MaxMetadata is the most bytes that the encoded metadata of a URL may have.
const MaxMetadata = 16 << 10

// ErrMetadata says that the metadata of a URL are too large.
var ErrMetadata = errors.New("metadata of a URL are longer than 16 KiB")

// Encode returns the form of metadata that Found has; nil for no metadata. The error is ErrMetadata.
func (m Metadata) Encode() ([]byte, error) {
	if len(m) == 0 {
		return nil, nil
	}
	size := 0
	for key, values := range m {
		size += len(key) + 2
		for _, v := range values {
			size += len(v) + 1
		}
	}
	if size > MaxMetadata {
		return nil, ErrMetadata
	}
	text := func(b []byte, s string) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	b := make([]byte, 0, size+16)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		b = binary.AppendUvarint(text(b, key), uint64(len(m[key])))
		for _, v := range m[key] {
			b = text(b, v)
		}
	}
	if len(b) > MaxMetadata {
		return nil, ErrMetadata
	}
	return b, nil
}

// DecodeMetadata is the inverse of Encode, and false if b is not encoded metadata.
func DecodeMetadata(b []byte) (Metadata, bool) {
	d := wire.NewDecoder(b)
	if d.Len() == 0 {
		return nil, true
	}
	m := make(Metadata)
	for last := ""; d.Len() > 0; {
		key := string(d.Long())
		values := make([]string, 0, 1)
		for n := d.UvarintMax(uint64(d.Len())); n > 0 && d.OK(); n-- {
			values = append(values, string(d.Long()))
		}
		d.Require(len(m) == 0 || key > last)
		m[key], last = values, key
		if !d.OK() {
			return nil, false
		}
	}
	return m, d.OK() && len(b) <= MaxMetadata
}

// MetadataOf returns the metadata of some URLs, which are few: one transaction reads them. It is nil for one without.
func (s *rows) MetadataOf(urls []Position) (all []Metadata, err error) {
	all = make([]Metadata, len(urls))
	err = s.db.View(func(tx *txn) error {
		b := tx.Bucket(bucketMetadata)
		if b == nil { // the file is of an older version
			return nil
		}
		var key []byte
		for i, at := range urls {
			key = appendURLKey(key[:0], at.Host, at.Ordinal)
			var ok bool
			if all[i], ok = DecodeMetadata(b.Get(key)); !ok {
				return fmt.Errorf("host %d: %w: metadata of URL %d cannot be read", at.Host, ErrCorrupt, at.Ordinal)
			}
		}
		return nil
	})
	return all, err
}

// putMetadata replaces the metadata of a URL.
func (w *hostWork) putMetadata(host HostID, ordinal uint32, encoded []byte) error {
	if len(encoded) > MaxMetadata {
		return ErrMetadata
	}
	b, key := w.tx.Bucket(bucketMetadata), appendURLKey(w.key[:0], host, ordinal)
	if len(encoded) == 0 {
		return b.Delete(key)
	}
	b.Fill(rowfile.AppendFill)
	return b.Put(key, encoded)
}

// set gives a URL the outcome and the metadata that a client has put with it.
func (w *writer) set(r *hostRow, f *Found, ordinal uint32, e *Entry) error {
	o := *f.Outcome
	last, err := w.outcome(r, ordinal)
	if err != nil {
		return err
	}
	o.Status, o.Bytes, o.Digest, o.ETag, o.Modified = last.Status, last.Bytes, last.Digest, last.ETag, last.Modified
	o.History, o.Simhash, o.Usage, o.Stamp = last.History, last.Simhash, last.Usage, last.Stamp
	d := Done{Host: r.id, Ordinal: ordinal, Origin: e.Origin, Priority: e.Priority, Outcome: o}
	if err := w.done(r, &d); err != nil {
		return err
	}
	if due, _ := o.plan(); due != 0 && (w.putDue == 0 || due < w.putDue) {
		w.putDue = due
	}
	return w.putMetadata(r.id, ordinal, f.Metadata)
}
