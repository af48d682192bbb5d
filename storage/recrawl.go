package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// A renewal is a visit to come of a URL with which nothing is wrong: it was fetched, and is to be asked again
// because it may have changed. Renewals have rows of their own, by time alone, so that however many of them are
// overdue, new URLs and those that are tried again are found as fast as without them, and the other way round.

// plan is when a URL has a row in the due bucket, and when one in the renew bucket, in Unix seconds; 0: it has none.
func (o *Outcome) plan() (due, renewal uint32) {
	if o.State == Retrying {
		return secondsUp(o.Due), 0
	}
	return 0, secondsUp(o.Due)
}

// renewal moves the URL's renew row from one instant to another; 0 is none.
func (w *writer) renewal(r *hostRow, d *Done, from, to uint32) error {
	if from == to {
		return nil
	}
	origin := &r.origins[d.Origin]
	if from != 0 {
		key := appendRenewKey(w.key[:0], r.id, d.Origin, from, d.Ordinal)
		if k, _ := w.renewCursor.Seek(key); !bytes.Equal(k, key) {
			return fmt.Errorf("%w: URL %d of origin %d has no renew row", ErrCorrupt, d.Ordinal, d.Origin)
		}
		if err := w.renew.Delete(key); err != nil {
			return err
		}
		origin.renewals--
	}
	if to != 0 {
		if err := w.renew.Put(appendRenewKey(w.key[:0], r.id, d.Origin, to, d.Ordinal), nil); err != nil {
			return err
		}
		origin.renewals++
	}
	origin.nextRenewal = 0
	prefix := append(appendHostKey(w.key[:0], r.id), d.Origin)
	if k, _ := w.renewCursor.Seek(prefix); bytes.HasPrefix(k, prefix) {
		origin.nextRenewal = binary.BigEndian.Uint32(k[5:])
	}
	return nil
}

// renewals reads the renewals of a queue that are due, the longest overdue first.
func (rd *reader) renewals(q HeadsRequest, h *Heads) error {
	if q.Renewals == 0 || int(q.Origin) >= len(rd.row.origins) || rd.row.origins[q.Origin].renewals == 0 {
		return nil
	}
	now := seconds(q.Now)
	return rd.eachRenewal(q.Origin, func(due, ordinal uint32) (bool, error) {
		if due > now || len(h.Renewals) == q.Renewals {
			return false, nil
		}
		e, err := rd.entry(ordinal)
		if err != nil {
			return false, err
		}
		o, err := rd.outcome(ordinal)
		h.Renewals = append(h.Renewals, Head{Entry: e, Last: o})
		return true, err
	})
}

// eachRenewal calls f for the renewals of a queue by time, until it returns false.
func (rd *reader) eachRenewal(origin uint8, f func(due, ordinal uint32) (bool, error)) error {
	bucket := rd.tx.Bucket(bucketRenew)
	if bucket == nil { // the file is of an older version
		return nil
	}
	prefix := append(appendHostKey(nil, rd.row.id), origin)
	c := bucket.Cursor()
	for k, _ := c.Seek(prefix); len(k) == renewKeySize && bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		more, err := f(binary.BigEndian.Uint32(k[5:]), binary.BigEndian.Uint32(k[9:]))
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// renewal looks for the renew row of a URL.
func (c *checker) renewal(r *hostRow, q *queueCount, e *Entry, at uint32) {
	if at == 0 {
		return
	}
	q.renewals++
	if q.nextRenewal == 0 || at < q.nextRenewal {
		q.nextRenewal = at
	}
	key := appendRenewKey(nil, r.id, e.Origin, at, e.Ordinal)
	if bucket := c.tx.Bucket(bucketRenew); bucket != nil {
		if k, _ := bucket.Cursor().Seek(key); bytes.Equal(k, key) {
			c.rows[string(bucketRenew)]++
			return
		}
	}
	c.found("host %d: URL %d is to be renewed but has no renew row", r.id, e.Ordinal)
}

// Renewals calls f for the renewals of one queue by time, at most max of them, in one short read.
func (s *Store) Renewals(host HostID, origin uint8, max int, f func(Head)) error {
	return s.db.View(func(tx *bolt.Tx) error {
		rd := reader{tx: tx}
		if err := getRow(tx, host, &rd.row); err != nil {
			return err
		}
		return rd.eachRenewal(origin, func(_, ordinal uint32) (bool, error) {
			if max--; max < 0 {
				return false, nil
			}
			e, err := rd.entry(ordinal)
			if err != nil {
				return false, err
			}
			o, err := rd.outcome(ordinal)
			f(Head{Entry: e, Last: o})
			return true, err
		})
	})
}

// Noticed is a known URL that a sitemap or a feed names.
type Noticed struct {
	Host     string
	Site     []byte // as HostUpdate.Site
	URI      string // path and query
	Last     Outcome
	Modified time.Time     // when it is said to have changed; zero: nothing is said, and the last visit failed
	Claimed  time.Duration // between changes, as is said; 0: nothing is
	At       time.Time     // when that was read
}

// noticed asks Options.Notice whether what is said of a known URL changes when it is renewed.
func (w *writer) noticed(r *hostRow, f *Found, ordinal uint32, e *Entry) error {
	if w.store.notice == nil || f.Modified.IsZero() && !f.Listed {
		return nil
	}
	last, err := w.outcome(r, ordinal)
	if err != nil || last.State == Queued || f.Modified.IsZero() && last.State != Failed {
		return err
	}
	due, history, ok := w.store.notice(Noticed{
		Host: string(r.name), Site: r.site, URI: e.RequestURI, Last: last, Modified: f.Modified,
		Claimed: f.Frequency.Every(), At: f.At,
	})
	if !ok || last.State == Retrying {
		return nil
	}
	last.Due, last.History = due, history
	return w.done(r, &Done{Host: r.id, Ordinal: ordinal, Origin: e.Origin, Outcome: last})
}
