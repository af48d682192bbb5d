package storage

import (
	"context"
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/amble-crawler/amble/internal/weburl"
)

// Finding is one thing that Check found wrong.
type Finding struct{ Text string }

// Check reads the whole database in one long read transaction and reports
// everything that contradicts FORMAT.md: bbolt's own page structure, rows that
// cannot be read, URLs without a fingerprint or the other way round, outcomes
// and due rows that do not match, and counters that are not a full count. It
// is for a database that no daemon writes.
func (s *Store) Check(ctx context.Context, report func(Finding)) error {
	return s.db.View(func(tx *bolt.Tx) error {
		c := checker{store: s, tx: tx, report: report}
		for err := range tx.Check() {
			c.found("pages: %v", err)
		}
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

type checker struct {
	store  *Store
	tx     *bolt.Tx
	report func(Finding)
	sum    Counters
	rows   struct{ url, seen, state, due int }
}

func (c *checker) found(format string, args ...any) {
	c.report(Finding{fmt.Sprintf(format, args...)})
}

func (c *checker) host(k, v []byte) {
	if len(k) != 4 {
		c.found("host bucket: key of %d bytes", len(k))
		return
	}
	id := hostOfKey(k)
	rd := reader{tx: c.tx}
	if !rd.row.decode(id, v) {
		c.found("host %d: row cannot be read", id)
		return
	}
	r := &rd.row
	c.sum.Hosts++
	c.sum.URLs += uint64(r.next)
	c.sum.Requests += uint64(r.requests)
	c.sum.Bytes += r.bytes
	if got := c.tx.Bucket(bucketName).Get([]byte(weburl.ReverseHost(string(r.name)))); len(got) != 4 || hostOfKey(got) != id {
		c.found("host %d: name bucket does not lead %s to it", id, r.name)
	}
	if r.spilled > r.next || r.spilled%blockSize != 0 {
		c.found("host %d: %d URLs of %d in blocks", id, r.spilled, r.next)
		return
	}
	if n, ok := countEntries(r.tail); !ok || n != int(r.next-r.spilled) {
		c.found("host %d: tail holds %d URLs, should hold %d", id, n, r.next-r.spilled)
		return
	}
	c.urls(&rd)
	c.seen(&rd)
}

// urls walks the host's URLs and compares the row's counts with what is there.
func (c *checker) urls(rd *reader) {
	r := &rd.row
	var counts [numStates]uint32
	queued, due := make([]uint32, len(r.origins)), make([]uint32, len(r.origins))
	for n := range r.next {
		e, err := rd.entry(n)
		if err != nil {
			c.found("%v", err)
			return
		}
		o, err := rd.outcome(n)
		if err != nil {
			c.found("%v", err)
			return
		}
		if int(e.Origin) >= len(r.origins) {
			c.found("host %d: URL %d of origin %d, which is unknown", r.id, n, e.Origin)
			return
		}
		counts[o.State]++
		c.sum.States[o.State]++
		if o.State == Queued {
			queued[e.Origin]++
			if n < r.origins[e.Origin].cursor {
				c.found("host %d: URL %d is queued but behind the cursor", r.id, n)
			}
		}
		if !o.Due.IsZero() {
			due[e.Origin]++
			key := appendDueKey(nil, r.id, e.Origin, e.Priority, secondsUp(o.Due), n)
			if k, _ := c.tx.Bucket(bucketDue).Cursor().Seek(key); string(k) != string(key) {
				c.found("host %d: URL %d has a due time but no due row", r.id, n)
			}
			c.rows.due++
		}
	}
	if counts != r.counts {
		c.found("host %d: counts are %v, a full count gives %v", r.id, r.counts, counts)
	}
	for i, o := range r.origins {
		if o.queued != queued[i] || o.due != due[i] {
			c.found("host %d: origin %d says %d queued and %d due, a full count gives %d and %d", r.id, i, o.queued, o.due, queued[i], due[i])
		}
	}
	c.rows.url += int(r.spilled / blockSize)
}

// seen checks that each URL outside the row has its fingerprint, once, in the
// block that a search would look in.
func (c *checker) seen(rd *reader) {
	r := &rd.row
	items, last := 0, uint64(0)
	cursor := c.tx.Bucket(bucketSeen).Cursor()
	for k, v := cursor.Seek(appendHostKey(nil, r.id)); k != nil && hostOfKey(k) == r.id; k, v = cursor.Next() {
		c.rows.seen++
		first := binary.BigEndian.Uint64(k[4:])
		if len(v)%seenItemSize != 0 || len(v) == 0 {
			c.found("host %d: fingerprint block of %d bytes", r.id, len(v))
			return
		}
		for ; len(v) > 0; v = v[seenItemSize:] {
			fp, ordinal := binary.BigEndian.Uint64(v), binary.BigEndian.Uint32(v[8:])
			if fp < first || fp < last {
				c.found("host %d: fingerprints out of order", r.id)
			}
			last = fp
			items++
			e, err := rd.entry(ordinal)
			if err != nil || ordinal >= r.spilled {
				c.found("host %d: fingerprint of URL %d, which is not in a block", r.id, ordinal)
				continue
			}
			if want := c.store.Fingerprint(r.origins[e.Origin].origin(string(r.name)).URL(e.RequestURI)); want != fp {
				c.found("host %d: URL %d has another fingerprint than its text", r.id, ordinal)
			}
		}
	}
	if items != int(r.spilled) {
		c.found("host %d: %d fingerprints for %d URLs in blocks", r.id, items, r.spilled)
	}
}

// totals compares the store's counters and row counts with the sums.
func (c *checker) totals() {
	meta := c.tx.Bucket(bucketMeta)
	counters, ok := decodeCounters(meta.Get(metaCounters))
	if !ok {
		c.found("counters cannot be read")
	}
	c.sum.Policies = uint64(c.tx.Bucket(bucketRobots).Stats().KeyN)
	if ok && counters != c.sum {
		c.found("counters are %+v, a full count gives %+v", counters, c.sum)
	}
	for _, b := range []struct {
		name []byte
		want int
	}{{bucketURL, c.rows.url}, {bucketSeen, c.rows.seen}, {bucketDue, c.rows.due}, {bucketName, int(c.sum.Hosts)}} {
		if n := c.tx.Bucket(b.name).Stats().KeyN; n != b.want {
			c.found("bucket %s has %d rows, %d belong to URLs", b.name, n, b.want)
		}
	}
}
