package storage

import (
	"encoding/binary"
	"time"

	bolt "go.etcd.io/bbolt"
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
	Recrawls []Head // by the time of their recrawl
	Next     uint32 // where the next request goes on
	Tail     uint32 // ordinals below this existed at the time
}

// Heads reads the next URLs of a queue: queued ones from an ordinal on, due ones and recrawls. It
// skips queued URLs that have an outcome.
func (s *Store) Heads(q HeadsRequest) (h Heads, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
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
	if q.Due == 0 || int(q.Origin) >= len(rd.row.origins) || rd.row.origins[q.Origin].due == 0 {
		return nil
	}
	now := Seconds(q.Now)
	c := rd.tx.Bucket(bucketDue).Cursor()
	k, _ := c.Seek(append(appendHostKey(nil, q.Host), q.Origin))
	for len(k) == dueKeySize && hostOfKey(k) == q.Host && k[4] == q.Origin && len(h.Due) < q.Due {
		if binary.BigEndian.Uint32(k[6:]) > now {
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
