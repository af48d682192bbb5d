package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Position is a position in the walk over all URLs: by host, then by ordinal. The zero value is the beginning.
type Position struct {
	Host    HostID
	Ordinal uint32
}

// String returns the form that ParsePosition reads: "12.340".
func (p Position) String() string {
	return strconv.FormatUint(uint64(p.Host), 10) + "." + strconv.FormatUint(uint64(p.Ordinal), 10)
}

// ParsePosition is the inverse of Position.String. The empty string is the beginning.
func ParsePosition(s string) (p Position, err error) {
	if s == "" {
		return p, nil
	}
	var rest string
	n, _ := fmt.Sscanf(s, "%d.%d%s", &p.Host, &p.Ordinal, &rest)
	if n != 2 || strings.ContainsAny(s, "+- ") {
		return Position{}, fmt.Errorf("%q is not a position (like 12.340)", s)
	}
	return p, nil
}

// Located is a URL with its host and its position. It is valid only during the call that gets it.
type Located struct {
	At   Position
	Host *Host
	Head
	Metadata Metadata // nil: it has none
}

// URL returns the URL.
func (l *Located) URL() weburl.URL { return l.Host.Queues[l.Origin].Origin.URL(l.RequestURI) }

// ErrStop ends a walk that then returns no error.
var ErrStop = errors.New("stop the walk")

// walkPage is how many URLs a walk reads in one transaction.
const walkPage = 500

// Walk calls f for the URLs of the store from a position on, in the order of hosts and ordinals, until f returns an
// error. Hosts without URLs in the given states are skipped unread; f gets all URLs of the others. Walk reads in short
// transactions, so it sees hosts as of different moments and does not delay a crawl. After every WalkPassed skipped
// hosts it calls f with no Host, so that f can end the walk. It returns the position to go on from: behind the last URL
// that f accepted, or that of the URL for which f returned an error. It does not return ErrStop.
func (s *rows) Walk(ctx context.Context, from Position, states States, f func(*Located) error) (Position, error) {
	at := from
	for {
		if err := ctx.Err(); err != nil {
			return at, err
		}
		page, host, next, err := s.walkPage(at, states)
		if err != nil || next == at {
			return at, err
		}
		if host == nil {
			if err := f(&Located{At: next}); err != nil {
				return next, passedOn(err)
			}
		}
		for i := range page {
			at = Position{host.ID, page[i].Ordinal}
			err := f(&Located{At: at, Host: host, Head: page[i].Head, Metadata: page[i].metadata})
			if err != nil {
				return at, passedOn(err)
			}
		}
		at = next
	}
}

func passedOn(err error) error {
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// WalkPassed is how many hosts a walk skips in one read transaction.
const WalkPassed = 2000

// walked is what a walk reads of a URL.
type walked struct {
	Head
	metadata Metadata
}

// walkPage reads the next URLs of one host that has some in the given states. If host is nil, it
// has only skipped others or, if next is the given position, there are no more.
func (s *rows) walkPage(at Position, states States) (page []walked, host *Host, next Position, err error) {
	next = at
	err = s.db.View(func(tx *txn) error {
		var rd reader
		rd.tx = tx
		c := tx.Bucket(bucketHost).Cursor()
		k, v := c.Seek(appendHostKey(nil, at.Host))
		for passed := 0; ; k, v = c.Next() {
			if k == nil {
				return nil
			}
			id := hostOfKey(k)
			if id != at.Host {
				at = Position{Host: id}
			}
			if _, ok := rd.row.decodeHead(id, v); !ok {
				return fmt.Errorf("host %d: %w: its row cannot be read", id, ErrCorrupt)
			}
			at.Ordinal = max(at.Ordinal, rd.row.first)
			if at.Ordinal < rd.row.next && rd.row.has(states) {
				break
			}
			if passed++; passed > WalkPassed {
				next = at
				return nil
			}
		}
		if !rd.row.decode(at.Host, v) {
			return fmt.Errorf("host %d: %w: its row cannot be read", at.Host, ErrCorrupt)
		}
		h := rd.row.host()
		host = &h
		page, err = rd.heads(at.Ordinal, min(rd.row.next, at.Ordinal+walkPage))
		next = Position{h.ID, at.Ordinal + uint32(len(page))}
		return err
	})
	return page, host, next, err
}

// has reports whether a URL of the host is in one of the given states.
func (r *hostRow) has(states States) bool {
	for s, n := range r.counts {
		if n > 0 && states.Has(State(s)) {
			return true
		}
	}
	return false
}

// heads reads the URLs of a range of ordinals.
func (rd *reader) heads(from, to uint32) ([]walked, error) {
	page := make([]walked, 0, to-from)
	for n := from; n < to; n++ {
		e, err := rd.entry(n)
		if err != nil {
			return page, err
		}
		if int(e.Origin) >= len(rd.row.origins) {
			return page, fmt.Errorf("host %d: %w: URL %d has no origin", rd.row.id, ErrCorrupt, n)
		}
		o, err := rd.outcome(n)
		if err != nil {
			return page, err
		}
		page = append(page, walked{Head: Head{Entry: e, Last: o}})
	}
	return page, rd.metadata(from, to, page)
}

// metadata reads the metadata of a range of ordinals.
func (rd *reader) metadata(from, to uint32, page []walked) error {
	b := rd.tx.Bucket(bucketMetadata)
	if b == nil { // the file is of an older version
		return nil
	}
	c := b.Cursor()
	k, v := c.Seek(appendURLKey(nil, rd.row.id, from))
	for ; len(k) == urlKeySize && hostOfKey(k) == rd.row.id; k, v = c.Next() {
		ordinal := binary.BigEndian.Uint32(k[4:])
		if ordinal >= to {
			return nil
		}
		var ok bool
		if page[ordinal-from].metadata, ok = DecodeMetadata(v); !ok {
			return fmt.Errorf("host %d: %w: metadata of URL %d cannot be read", rd.row.id, ErrCorrupt, ordinal)
		}
	}
	return nil
}
