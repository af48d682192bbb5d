package storage

import (
	"fmt"

	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Head is a URL with its last outcome.
type Head struct {
	Entry
	Last Outcome // zero: none
}

// reader reads URLs of one host.
type reader struct {
	tx       *txn
	row      hostRow
	entries  lastBlock // of bucketURL, as outcomes of bucketState
	outcomes lastBlock
}

// lastBlock is the block of a bucket that was read last.
type lastBlock struct {
	at    uint32 // ordinal of its first URL
	block []byte
}

// of returns the block of a bucket with a URL of the reader's host.
func (b *lastBlock) of(rd *reader, bucket []byte, ordinal uint32) []byte {
	if at := blockOf(ordinal); b.block == nil || b.at != at {
		b.at, b.block = at, rd.tx.Bucket(bucket).Get(appendBlockKey(nil, rd.row.id, ordinal))
	}
	return b.block
}

// entry decodes one URL of the host, from its block or from the tail.
func (rd *reader) entry(ordinal uint32) (Entry, error) {
	if ordinal < rd.row.first || ordinal >= rd.row.next {
		return Entry{}, fmt.Errorf("host %d: URL %d: %w", rd.row.id, ordinal, ErrNotFound)
	}
	index := int(ordinal - rd.row.spilled)
	block := rd.row.tail
	if ordinal < rd.row.spilled {
		index, block = int(ordinal%blockSize), rd.entries.of(rd, bucketURL, ordinal)
	}
	b, ok := nthEntry(block, index)
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
		body, ok = findSlot(rd.outcomes.of(rd, bucketState, ordinal), uint8(ordinal%blockSize))
	}
	if !ok {
		return Outcome{}, nil
	}
	o, _, ok := DecodeOutcome(body)
	if !ok {
		return Outcome{}, fmt.Errorf("host %d: %w: outcome of URL %d cannot be read", rd.row.id, ErrCorrupt, ordinal)
	}
	return o, nil
}

// head reads a URL of the host with its outcome.
func (rd *reader) head(ordinal uint32) (h Head, err error) {
	if h.Entry, err = rd.entry(ordinal); err == nil {
		h.Last, err = rd.outcome(ordinal)
	}
	return h, err
}

// Lookup finds a URL by its text. If there is none, it finds a URL with a session id whose text
// without is the given one. It returns ErrNotFound if the store has neither.
func (s *rows) Lookup(u weburl.URL) (head Head, host Host, err error) {
	return s.lookup(u, u)
}

func (s *rows) lookup(u, identity weburl.URL) (head Head, host Host, err error) {
	if host, err = s.HostByName(u.Host()); err != nil {
		return head, host, err
	}
	err = s.db.View(func(tx *txn) error {
		rd := reader{tx: tx}
		if err := getRow(tx, host.ID, &rd.row); err != nil {
			return err
		}
		ordinal, err := rd.find(identity, u.RequestURI(), s.Fingerprint(identity))
		if err != nil {
			return fmt.Errorf("%s: %w", u, err)
		}
		head, err = rd.head(ordinal)
		return err
	})
	return head, host, err
}

// find returns the ordinal of a URL of the reader's host whose identifying text is that of u: the
// one with the given full path and query, or else the first with another session id.
func (rd *reader) find(u weburl.URL, full string, fingerprint uint64) (uint32, error) {
	origins := len(rd.row.origins)
	origin, ok := rd.row.originIndex(u.Origin())
	if !ok || len(rd.row.origins) != origins {
		rd.row.origins = rd.row.origins[:origins]
		return 0, ErrNotFound
	}
	text := u.RequestURI()
	block := readSeen(rd.tx.Bucket(bucketSeen).Cursor(), rd.row.id, fingerprint, nil)
	candidates := seenOrdinals(block.items, fingerprint, nil)
	tail := wire.NewDecoder(rd.row.tail)
	for ordinal := rd.row.spilled; tail.Len() > 0; ordinal++ {
		if sameURL(tail.Rest(), origin, text) {
			candidates = append(candidates, ordinal)
		}
		skipEntry(&tail)
	}
	if !tail.OK() {
		return 0, ErrCorrupt
	}
	other, err := uint32(0), ErrNotFound
	for _, ordinal := range candidates {
		if ordinal < rd.row.first {
			continue
		}
		e, failed := rd.entry(ordinal)
		switch {
		case failed != nil:
			return 0, failed
		case e.Origin != origin || e.identity() != text:
		case e.RequestURI == full:
			return ordinal, nil
		case err != nil:
			other, err = ordinal, nil
		}
	}
	return other, err
}

// identity returns the identifying text: the path and query that distinguish a URL from others.
func (e *Entry) identity() string {
	if e.Stripped != "" {
		return e.Stripped
	}
	return e.RequestURI
}

// url returns a URL of the host, identity the one with the identifying text.
func (r *hostRow) url(e *Entry) weburl.URL {
	return r.origins[e.Origin].origin(string(r.name)).URL(e.RequestURI)
}

// URL returns the text of a URL by host and ordinal.
func (s *rows) URL(host HostID, ordinal uint32) (u weburl.URL, err error) {
	err = s.db.View(func(tx *txn) error {
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
		u = rd.row.url(&e)
		return nil
	})
	return u, err
}

// URLs calls f for at most most URLs of a host from an ordinal on, in one short read. It returns the
// ordinal to go on from, which is the host's tail if there are no more.
func (s *rows) URLs(host HostID, from uint32, most int, f func(Head)) (next uint32, err error) {
	next = from
	err = s.db.View(func(tx *txn) error {
		rd := reader{tx: tx}
		if err := getRow(tx, host, &rd.row); err != nil {
			return err
		}
		for next = max(from, rd.row.first); next < rd.row.next && most > 0; most-- {
			head, err := rd.head(next)
			if err != nil {
				return err
			}
			f(head)
			next++
		}
		return nil
	})
	return next, err
}
