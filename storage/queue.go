package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// maxScan bounds how many ordinals one Heads call looks at, for hosts where most of them belong to
// other origins or have an outcome.
const maxScan = 2048

// HeadsRequest selects the next URLs of one queue.
type HeadsRequest struct {
	Host     HostID
	Origin   uint8
	From     uint32    // first ordinal
	Queued   int       // the most queued URLs
	Due      int       // the most due URLs
	Recrawls int       // the most recrawls
	Now      time.Time // URLs with a later due time are not due
}

// Heads are the next URLs of one queue.
type Heads struct {
	Queued []Head // without an outcome, of priority 0, in the order of discovery
	// Due is ordered by falling priority, then due time, then ordinal. URLs without an outcome come
	// before the others of their priority.
	Due      []Head
	NextDue  uint32 // Unix seconds of the earliest that is due later; 0: none, or there are more in Due than wanted
	Recrawls []Head // by the time of their recrawl
	Next     uint32 // where the next request goes on
	Tail     uint32 // ordinals below this existed at the time
}

// Heads reads the next URLs of a queue: queued ones from an ordinal on, due ones and recrawls. It
// skips queued URLs that have an outcome.
func (s *rows) Heads(q HeadsRequest) (h Heads, err error) {
	err = s.db.View(func(tx *txn) error {
		rd := reader{tx: tx}
		if err := getRow(tx, q.Host, &rd.row); err != nil {
			return err
		}
		q.From = max(q.From, rd.row.first)
		h.Tail, h.Next = rd.row.next, q.From
		if err := rd.queued(q, &h); err != nil {
			return err
		}
		if err := rd.due(q, &h); err != nil {
			return err
		}
		return rd.recrawls(q, &h)
	})
	return h, err
}

func (rd *reader) queued(q HeadsRequest, h *Heads) error {
	if q.From >= rd.row.next {
		return nil
	}
	end := q.From + min(maxScan, rd.row.next-q.From)
	for h.Next < end && len(h.Queued) < q.Queued {
		e, err := rd.entry(h.Next)
		if err != nil {
			return err
		}
		h.Next++
		if e.Origin != q.Origin || rd.row.prioritized(e.Ordinal, e.Priority) {
			continue
		}
		o, err := rd.outcome(e.Ordinal)
		if err != nil {
			return err
		}
		if o.State == Queued {
			h.Queued = append(h.Queued, Head{Entry: e})
		}
	}
	return nil
}

func (rd *reader) due(q HeadsRequest, h *Heads) error {
	if q.Due == 0 || int(q.Origin) >= len(rd.row.origins) || rd.row.origins[q.Origin].Due == 0 {
		return nil
	}
	now := Seconds(q.Now)
	c := rd.tx.Bucket(bucketDue).Cursor()
	k, _ := c.Seek(append(appendHostKey(nil, q.Host), q.Origin))
	for len(k) == dueKeySize && hostOfKey(k) == q.Host && k[4] == q.Origin && len(h.Due) < q.Due {
		if due := binary.BigEndian.Uint32(k[6:]); due > now {
			if h.NextDue == 0 || due < h.NextDue {
				h.NextDue = due
			}
			if k[5] == 255 {
				break
			}
			k, _ = c.Seek(append(appendHostKey(nil, q.Host), q.Origin, k[5]+1))
			continue
		}
		e, err := rd.entry(binary.BigEndian.Uint32(k[10:]))
		if err != nil {
			return err
		}
		o, err := rd.outcome(e.Ordinal)
		if err != nil {
			return err
		}
		h.Due = append(h.Due, Head{Entry: e, Last: o})
		k, _ = c.Next()
	}
	return nil
}

// A recrawl fetches a page again because it may have changed. Recrawls have rows of their own, ordered by time alone.
// So new URLs and retries are found as fast with any number of overdue recrawls as without, and the other way round.

// plan returns the time of the URL's row in the due bucket, and that of its row in the bucket of
// recrawls, in Unix seconds; 0 if it has none.
func (o *Outcome) plan() (due, recrawl uint32) {
	if o.State == Retrying {
		return secondsUp(o.Due), 0
	}
	return 0, secondsUp(o.Due)
}

// moveRecrawl moves the URL's recrawl from one time to another; 0 is none.
func (w *hostWork) moveRecrawl(r *hostRow, d *Done, from, to uint32) error {
	if from == to {
		return nil
	}
	origin := &r.origins[d.Origin]
	if from != 0 {
		key := appendRecrawlKey(w.key[:0], r.id, d.Origin, from, d.Ordinal)
		if k, _ := w.recrawlCursor.Seek(key); !bytes.Equal(k, key) {
			return fmt.Errorf("%w: URL %d of origin %d has no row in bucket %s", ErrCorrupt, d.Ordinal, d.Origin,
				bucketRecrawl)
		}
		if err := w.recrawlCursor.Delete(); err != nil {
			return err
		}
		origin.Recrawls--
	}
	if to != 0 {
		if err := w.recrawl.Put(appendRecrawlKey(w.key[:0], r.id, d.Origin, to, d.Ordinal), nil); err != nil {
			return err
		}
		origin.Recrawls++
	}
	w.recrawls |= 1 << d.Origin
	return nil
}

// findRecrawls finds the earliest recrawl of each origin of the host at hand that had one moved.
func (w *hostWork) findRecrawls(r *hostRow) {
	for i := range r.origins {
		if w.recrawls&(1<<i) == 0 {
			continue
		}
		r.origins[i].NextRecrawl = 0
		prefix := append(appendHostKey(w.key[:0], r.id), uint8(i))
		if k, _ := w.recrawlCursor.Seek(prefix); bytes.HasPrefix(k, prefix) {
			r.origins[i].NextRecrawl = binary.BigEndian.Uint32(k[5:])
		}
	}
	w.recrawls = 0
}

// recrawls reads the recrawls of a queue that are due, the earliest first.
func (rd *reader) recrawls(q HeadsRequest, h *Heads) error {
	if q.Recrawls == 0 || int(q.Origin) >= len(rd.row.origins) || rd.row.origins[q.Origin].Recrawls == 0 {
		return nil
	}
	now := Seconds(q.Now)
	return rd.eachRecrawl(q.Origin, func(due, ordinal uint32) (bool, error) {
		if due > now || len(h.Recrawls) == q.Recrawls {
			return false, nil
		}
		head, err := rd.head(ordinal)
		h.Recrawls = append(h.Recrawls, head)
		return true, err
	})
}

// eachRecrawl calls f for the recrawls of a queue by time, until it returns false.
func (rd *reader) eachRecrawl(origin uint8, f func(due, ordinal uint32) (bool, error)) error {
	bucket := rd.tx.Bucket(bucketRecrawl)
	if bucket == nil { // the file is of an older version
		return nil
	}
	prefix := append(appendHostKey(nil, rd.row.id), origin)
	c := bucket.Cursor()
	for k, _ := c.Seek(prefix); len(k) == recrawlKeySize && bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		more, err := f(binary.BigEndian.Uint32(k[5:]), binary.BigEndian.Uint32(k[9:]))
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// Recrawls calls f for at most max recrawls of a queue, by time, in one short read.
func (s *rows) Recrawls(host HostID, origin uint8, max int, f func(Head)) error {
	return s.db.View(func(tx *txn) error {
		rd := reader{tx: tx}
		if err := getRow(tx, host, &rd.row); err != nil {
			return err
		}
		return rd.eachRecrawl(origin, func(_, ordinal uint32) (bool, error) {
			if max--; max < 0 {
				return false, nil
			}
			head, err := rd.head(ordinal)
			if err == nil {
				f(head)
			}
			return true, err
		})
	})
}

// Noticed is a known URL that a sitemap or a feed lists.
type Noticed struct {
	Host     string
	Site     []byte // as HostUpdate.Site
	URI      string // path and query
	Last     Outcome
	Modified time.Time     // time of the last change, if it is listed; zero: it is not, and the last request failed
	Claimed  time.Duration // listed time between changes; 0: none
	At       time.Time     // when the listing was read
}

// noticed calls Options.Notice to find out whether a listing changes the time of a known URL's recrawl.
func (w *writer) noticed(r *hostRow, f *Found, ordinal uint32, e *Entry) error {
	if w.effects.onListed == nil && len(w.effects.decided) == 0 || f.Modified.IsZero() && !f.Listed {
		return nil
	}
	last, err := w.outcome(r, ordinal)
	if err != nil || last.State == Queued || f.Modified.IsZero() && last.State != Failed {
		return err
	}
	due, history, ok := w.notice(&Noticed{
		Host: string(r.name), Site: r.site, URI: e.RequestURI, Last: last, Modified: f.Modified,
		Claimed: f.Frequency.Every(), At: f.At,
	})
	if !ok || last.State == Retrying {
		return nil
	}
	last.Due, last.History = due, history
	return w.done(r, &Done{Host: r.id, Ordinal: ordinal, Origin: e.Origin, Outcome: last})
}

// notice returns what Options.Notice says of a listed URL, or what it said when the record of the log was written.
func (w *hostWork) notice(n *Noticed) (due time.Time, history [8]byte, ok bool) {
	call := w.calls
	w.calls++
	if w.effects.onListed == nil {
		decided := w.effects.decided
		if len(decided) == 0 || decided[0].Call != call {
			return due, history, false
		}
		w.effects.decided = decided[1:]
		return FromSeconds(decided[0].Due), decided[0].History, true
	}
	if due, history, ok = w.effects.onListed(*n); ok {
		w.notices = append(w.notices, Notice{call, secondsUp(due), history})
	}
	return due, history, ok
}
