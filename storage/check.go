//go:build !core

package storage

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage/internal/boltfile"
)

// Check reads the whole database in one long read transaction and reports everything that
// contradicts FORMAT.md: defects of bbolt's page structure, rows without their checksums, rows that
// cannot be read or belong to nothing, URLs without a fingerprint and fingerprints without a URL, URLs that are stored
// twice, outcomes without their due rows and due rows without an outcome, and counters that differ from a
// full count. No process may write the database meanwhile. Check returns the context's error, or
// ErrCorrupt if pages are damaged; then it does not look at the rows.
func (s *Store) Check(ctx context.Context, report func(Finding)) error {
	return s.db.View(func(tx *txn) error {
		if err := s.checkPages(ctx, tx, report); err != nil {
			return err
		}
		c := checker{store: s, tx: tx, report: report, rows: make(map[string]int)}
		cursor := tx.Bucket(bucketHost).Cursor()
		for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
			if err := ctx.Err(); err != nil {
				return err
			}
			c.host(k, v)
		}
		c.totals()
		return nil
	})
}

// checkPages checks that bbolt can follow all pages that a transaction sees, and the checksums of all rows.
func (s *Store) checkPages(ctx context.Context, tx *txn, report func(Finding)) error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	metas := boltfile.Metas(f)
	i := slices.IndexFunc(metas, func(m boltfile.Meta) bool { return m.TX == uint64(tx.ID()) })
	if i < 0 {
		return errors.New("the database was written to while it was checked")
	}
	w := boltfile.Walk{Ctx: ctx, File: f, Meta: metas[i]}
	if damaged, err := checkWalk(&w, s.db.Summed, report); err != nil || damaged {
		return cmp.Or(err, fmt.Errorf("%w: its rows were not compared", ErrCorrupt))
	}
	w.Lost(func(id uint64) { report(Finding{fmt.Sprintf("page %d is neither used nor free", id)}) })
	return nil
}

type checker struct {
	store  *Store
	tx     *txn
	report func(Finding)
	sum    Counters
	rows   map[string]int // by bucket: rows that belong to a URL or a host
}

func (c *checker) found(format string, args ...any) {
	c.report(Finding{fmt.Sprintf(format, args...)})
}

// totals compares the counters of the store and the numbers of rows with the sums.
func (c *checker) totals() {
	counters, ok := decodeCounters(c.tx.Bucket(bucketMeta).Get(metaCounters))
	if !ok {
		c.found("counters cannot be read")
	}
	c.sum.Policies = uint64(c.tx.Bucket(bucketRobots).Keys())
	if ok && counters != c.sum {
		c.found("counters are %+v, a full count gives %+v", counters, c.sum)
	}
	c.rows[string(bucketName)] = int(c.sum.Hosts)
	for _, name := range [][]byte{
		bucketName, bucketURL, bucketSeen, bucketState, bucketDue, bucketRecrawl, bucketTrap, bucketPayload,
		bucketMetadata,
	} {
		b := c.tx.Bucket(name)
		if b == nil {
			continue // the file is of an older version
		}
		if n, want := b.Keys(), c.rows[string(name)]; n != want {
			c.found("bucket %s has %d rows, %d belong to a host", name, n, want)
		}
	}
}

// host checks a host's row and all the rows of other buckets that belong to it.
func (c *checker) host(k, v []byte) {
	id := hostOfKey(k)
	rd := reader{tx: c.tx}
	if len(k) != hostKeySize || !rd.row.decode(id, v) {
		c.found("host %d: row cannot be read", id)
		return
	}
	r := &rd.row
	c.sum.Hosts++
	c.sum.URLs += uint64(r.urls())
	c.sum.Requests += uint64(r.requests)
	c.sum.Bytes += r.bytes
	if uint64(id) != c.sum.Hosts {
		c.found("host %d has row number %d", id, c.sum.Hosts)
	}
	got := c.tx.Bucket(bucketName).Get([]byte(weburl.ReverseHost(string(r.name))))
	if len(got) != hostKeySize || hostOfKey(got) != id {
		c.found("host %d: bucket name has another host or none for %s", id, r.name)
	}
	if r.spilled > r.next || r.spilled%blockSize != 0 || r.first > r.next {
		c.found("host %d: %d URLs of %d in blocks", id, r.spilled, r.next)
		return
	}
	if n, ok := countEntries(r.tail); !ok || n != int(r.next-r.spilled) {
		c.found("host %d: tail holds %d URLs, should hold %d", id, n, r.next-r.spilled)
		return
	}
	if c.urls(&rd) {
		c.seen(&rd)
	}
	c.states(r)
	c.traps(id)
	c.metadata(r)
	c.payloads(r)
}

// urls reads the host's URLs and compares the counts in the row with a full count. It reports
// whether all texts can be read.
func (c *checker) urls(rd *reader) bool {
	r := &rd.row
	var counts, requisites [numStates]uint32
	queues := make([]Backlog, len(r.origins))
	for n := r.first; n < r.next; n++ {
		e, err := rd.entry(n)
		if err != nil {
			c.found("%v", err)
			return false
		}
		if int(e.Origin) >= len(r.origins) {
			c.found("host %d: URL %d of origin %d, which is unknown", r.id, n, e.Origin)
			return false
		}
		o, err := rd.outcome(n)
		if err != nil {
			c.found("%v", err)
			continue
		}
		counts[o.State]++
		c.sum.States[o.State]++
		if e.IsRequisite() {
			requisites[o.State]++
			c.sum.Requisites[o.State]++
		}
		c.queue(r, &queues[e.Origin], &e, &o)
	}
	if counts != r.counts {
		c.found("host %d: counts are %v, a full count gives %v", r.id, r.counts, counts)
	}
	if requisites != r.requisites {
		c.found("host %d: counts of requisites are %v, a full count gives %v", r.id, r.requisites, requisites)
	}
	for i, o := range r.origins {
		if got := o.Backlog; got != queues[i] {
			c.found("host %d: origin %d says %+v, a full count gives %+v", r.id, i, got, queues[i])
		}
	}
	c.rows[string(bucketURL)] += int(r.spilled-min(blockOf(r.first), r.spilled)) / blockSize
	return true
}

// queue counts one URL and looks for its due row.
func (c *checker) queue(r *hostRow, q *Backlog, e *Entry, o *Outcome) {
	due, recrawl := o.plan()
	c.recrawl(r, q, e, recrawl)
	if o.State == Queued && r.prioritized(e.Ordinal, e.Priority) {
		due = dueAtOnce
	} else if o.State == Queued {
		q.Queued++
		if e.Ordinal < r.origins[e.Origin].cursor {
			c.found("host %d: URL %d is queued but behind the cursor", r.id, e.Ordinal)
		}
	}
	if due == 0 {
		return
	}
	q.Due++
	q.NextDue = earlier(q.NextDue, due)
	key := appendDueKey(nil, r.id, e.Origin, e.Priority, due, e.Ordinal)
	if k, _ := c.tx.Bucket(bucketDue).Cursor().Seek(key); string(k) != string(key) {
		c.found("host %d: URL %d is due but has no due row", r.id, e.Ordinal)
		return
	}
	c.rows[string(bucketDue)]++
}

// seen checks that each URL outside the row has its fingerprint, once, in the block that a search
// reads, and that no text is stored twice.
func (c *checker) seen(rd *reader) {
	r := &rd.row
	items, last := 0, uint64(0)
	texts := make(map[string]bool) // of the URLs that share the last fingerprint
	cursor := c.tx.Bucket(bucketSeen).Cursor()
	for k, v := cursor.Seek(appendHostKey(nil, r.id)); k != nil && hostOfKey(k) == r.id; k, v = cursor.Next() {
		c.rows[string(bucketSeen)]++
		if len(k) != seenKeySize || len(v)%seenItemSize != 0 || len(v) == 0 {
			c.found("host %d: fingerprint block of %d bytes", r.id, len(v))
			return
		}
		first := binary.BigEndian.Uint64(k[4:])
		for ; len(v) > 0; v = v[seenItemSize:] {
			fp, ordinal := binary.BigEndian.Uint64(v), binary.BigEndian.Uint32(v[8:])
			if fp < first || fp < last {
				c.found("host %d: fingerprints out of order", r.id)
			}
			if fp != last {
				clear(texts)
			}
			if last = fp; ordinal >= r.first { // else it is removed some time after its URL
				items++
				c.fingerprint(rd, fp, ordinal, texts)
			}
		}
	}
	if want := int(r.spilled - min(r.first, r.spilled)); items != want {
		c.found("host %d: %d fingerprints for %d URLs in blocks", r.id, items, want)
	}
	c.tail(rd)
}

func (c *checker) fingerprint(rd *reader, fp uint64, ordinal uint32, texts map[string]bool) {
	r := &rd.row
	e, err := rd.entry(ordinal)
	if err != nil || ordinal >= r.spilled {
		c.found("host %d: fingerprint of URL %d, which is not in a block", r.id, ordinal)
		return
	}
	u := r.url(&e)
	if c.store.Fingerprint(r.identity(&e)) != fp {
		c.found("host %d: URL %d does not have the fingerprint of its text", r.id, ordinal)
	}
	if texts[u.String()] {
		c.found("host %d: URL %d is stored twice", r.id, ordinal)
	}
	texts[u.String()] = true
}

// tail checks that the URLs in the row are not stored elsewhere too.
func (c *checker) tail(rd *reader) {
	r := &rd.row
	for n := max(r.spilled, r.first); n < r.next; n++ {
		e, err := rd.entry(n)
		if err != nil {
			c.found("%v", err)
			return
		}
		id := r.identity(&e)
		if at, err := rd.find(id, e.RequestURI, c.store.Fingerprint(id)); err != nil || at != n {
			c.found("host %d: URL %d is stored twice", r.id, n)
		}
	}
}

// states checks the rows of the state bucket.
func (c *checker) states(r *hostRow) {
	cursor := c.tx.Bucket(bucketState).Cursor()
	for k, v := cursor.Seek(appendHostKey(nil, r.id)); k != nil && hostOfKey(k) == r.id; k, v = cursor.Next() {
		s, ok := decodeSlots(v)
		if len(k) != blockKeySize || !ok || len(s.index) == 0 {
			c.found("host %d: a row of outcomes cannot be read", r.id)
			continue
		}
		block := binary.BigEndian.Uint32(k[4:])
		last := block + uint32(s.index[len(s.index)-1])
		if block%blockSize != 0 || block >= r.stateTop || last >= r.next {
			c.found("host %d: outcomes of URLs %d to %d, but there are %d", r.id, block, last, r.next)
		}
		for i, body := range s.body {
			if o, rest, ok := DecodeOutcome(body); !ok || len(rest) != 0 || o.State == Queued {
				c.found("host %d: outcome of URL %d cannot be read", r.id, block+uint32(s.index[i]))
			}
		}
		c.rows[string(bucketState)]++
	}
}
