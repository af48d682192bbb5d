package storage

import (
	"encoding/binary"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// maxScan bounds how many ordinals one Heads call looks at, for hosts where most
// of them belong to other origins or were touched before.
const maxScan = 2048

// HeadsRequest asks for the next URLs of one queue.
type HeadsRequest struct {
	Host     HostID
	Origin   uint8
	From     uint32    // first ordinal wanted
	Queued   int       // at most so many queued URLs
	Due      int       // at most so many due URLs
	Renewals int       // at most so many URLs that are to be renewed
	Now      time.Time // URLs whose due time is not after this are due
}

// Head is a URL whose turn may have come, with its last outcome.
type Head struct {
	Entry
	Last Outcome // zero for a URL that was never touched
}

// Heads are the next URLs of one queue.
type Heads struct {
	Queued   []Head // never touched, of priority 0, in the order of discovery
	Due      []Head // by falling priority, then due time, then ordinal; those never touched of priorities other than 0 come before the others of their priority
	Renewals []Head // by the time at which they were to be renewed
	Next     uint32 // where the next request goes on
	Tail     uint32 // ordinals below this existed at the time
}

// Heads reads the next URLs of a queue: queued ones from a given ordinal on,
// and the due ones. Queued URLs that were touched before are passed over.
func (s *Store) Heads(q HeadsRequest) (h Heads, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		rd := reader{tx: tx}
		if err := getRow(tx, q.Host, &rd.row); err != nil {
			return err
		}
		h.Tail, h.Next = rd.row.next, q.From
		if err := rd.queued(q, &h); err != nil {
			return err
		}
		if err := rd.due(q, &h); err != nil {
			return err
		}
		return rd.renewals(q, &h)
	})
	return h, err
}

// reader reads URLs of one host, keeping the last block at hand.
type reader struct {
	tx    *bolt.Tx
	row   hostRow
	block []byte
	at    uint32 // ordinal of block's first entry
	have  bool
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
	now := seconds(q.Now)
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

// entry decodes one URL of the host, from its block or from the tail.
func (rd *reader) entry(ordinal uint32) (Entry, error) {
	if ordinal >= rd.row.next {
		return Entry{}, fmt.Errorf("host %d: URL %d: %w", rd.row.id, ordinal, ErrNotFound)
	}
	place := int(ordinal - rd.row.spilled)
	block := rd.row.tail
	if ordinal < rd.row.spilled {
		place = int(ordinal % blockSize)
		if !rd.have || rd.at != blockOf(ordinal) {
			rd.at, rd.have = blockOf(ordinal), true
			rd.block = rd.tx.Bucket(bucketURL).Get(appendBlockKey(nil, rd.row.id, ordinal))
		}
		block = rd.block
	}
	b, ok := nthEntry(block, place)
	if ok {
		if e, _, ok := decodeEntry(b, rd.row.id, ordinal); ok {
			return e, nil
		}
	}
	return Entry{}, fmt.Errorf("host %d: %w: URL %d cannot be read", rd.row.id, ErrCorrupt, ordinal)
}

func (rd *reader) outcome(ordinal uint32) (Outcome, error) {
	body, ok := rd.row.recentOutcome(ordinal)
	if !ok && ordinal < rd.row.stateTop {
		body, ok = findSlot(rd.tx.Bucket(bucketState).Get(appendBlockKey(nil, rd.row.id, ordinal)), uint8(ordinal%blockSize))
	}
	if !ok {
		return Outcome{}, nil
	}
	o, _, ok := decodeOutcome(body)
	if !ok {
		return Outcome{}, fmt.Errorf("host %d: %w: outcome of URL %d cannot be read", rd.row.id, ErrCorrupt, ordinal)
	}
	return o, nil
}

// URLs calls f for the URLs of a host from an ordinal on, at most max of them,
// in one short read. It returns the ordinal to go on from; that is the host's
// tail when there are no more.
func (s *Store) URLs(host HostID, from uint32, max int, f func(Head)) (next uint32, err error) {
	next = from
	err = s.db.View(func(tx *bolt.Tx) error {
		rd := reader{tx: tx}
		if err := getRow(tx, host, &rd.row); err != nil {
			return err
		}
		for ; next < rd.row.next && max > 0; max-- {
			e, err := rd.entry(next)
			if err != nil {
				return err
			}
			o, err := rd.outcome(next)
			if err != nil {
				return err
			}
			f(Head{Entry: e, Last: o})
			next++
		}
		return nil
	})
	return next, err
}
