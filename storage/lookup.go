package storage

import (
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/amble-crawler/amble/internal/weburl"
)

// Lookup finds one URL by its text. ErrNotFound if the store does not have it.
func (s *Store) Lookup(u weburl.URL) (head Head, host Host, err error) {
	if host, err = s.HostByName(u.Host()); err != nil {
		return head, host, err
	}
	err = s.db.View(func(tx *bolt.Tx) error {
		rd := reader{tx: tx}
		if err := getRow(tx, host.ID, &rd.row); err != nil {
			return err
		}
		ordinal, err := rd.find(u, s.Fingerprint(u))
		if err != nil {
			return fmt.Errorf("%s: %w", u, err)
		}
		if head.Entry, err = rd.entry(ordinal); err == nil {
			head.Last, err = rd.outcome(ordinal)
		}
		return err
	})
	return head, host, err
}

// find returns the ordinal of a URL of the reader's host.
func (rd *reader) find(u weburl.URL, fingerprint uint64) (uint32, error) {
	origins := len(rd.row.origins)
	origin, ok := rd.row.originIndex(u.Origin())
	if !ok || len(rd.row.origins) != origins {
		return 0, ErrNotFound
	}
	uri := u.RequestURI()
	_, block, _, _ := seenBlock(rd.tx.Bucket(bucketSeen).Cursor(), rd.row.id, fingerprint, nil)
	for _, ordinal := range seenOrdinals(block, fingerprint, nil) {
		e, err := rd.entry(ordinal)
		if err != nil {
			return 0, err
		}
		if e.Origin == origin && e.RequestURI == uri {
			return ordinal, nil
		}
	}
	for b, ordinal := rd.row.tail, rd.row.spilled; len(b) > 0; ordinal++ {
		if sameURL(b, origin, uri) {
			return ordinal, nil
		}
		if b, ok = skipEntry(b); !ok {
			return 0, ErrCorrupt
		}
	}
	return 0, ErrNotFound
}

// URL returns the text of a URL by host and ordinal.
func (s *Store) URL(host HostID, ordinal uint32) (u weburl.URL, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		rd := reader{tx: tx}
		if err := getRow(tx, host, &rd.row); err != nil {
			return err
		}
		e, err := rd.entry(ordinal)
		if err != nil {
			return err
		}
		if int(e.Origin) >= len(rd.row.origins) {
			return fmt.Errorf("host %d: %w: URL %d has no origin", host, ErrCorrupt, ordinal)
		}
		u = rd.row.origins[e.Origin].origin(string(rd.row.name)).URL(e.RequestURI)
		return nil
	})
	return u, err
}
