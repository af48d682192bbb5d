//go:build !core

package storage

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage/internal/rowfile"
)

// build makes the new database of the rows that are whole.
func (s *salvage) build() (err error) {
	raw, err := openDatabase(s.raw, 0o640, Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, raw.Close()) }()
	if err := os.Mkdir(s.dir, 0o750); err != nil {
		return err
	}
	return raw.View(func(tx *txn) error {
		if tx.Bucket(bucketMark).Has([]byte(markLog)) {
			return ErrShard
		}
		if k := tx.Bucket(bucketMeta).Get(metaKey); copy(s.key[:], k) != keySize {
			_, _ = rand.Read(s.key[:]) // it never fails
		}
		from := &Store{rows: rows{db: raw, path: s.raw, key: s.key}}
		if err := s.examine(from, tx); err != nil {
			return err
		}
		err := writeDatabase(filepath.Join(s.dir, FileName), s.like, func(to *rowWriter) error {
			return s.write(from, tx, to)
		})
		if err != nil {
			return err
		}
		return s.rebuild(tx)
	})
}

// examine finds the hosts that are not whole.
func (s *salvage) examine(from *Store, tx *txn) error {
	s.damaged = make(map[HostID]string)
	hosts := tx.Bucket(bucketHost)
	if k, _ := hosts.Cursor().Last(); k != nil {
		s.last = min(s.most, hostOfKey(k))
	}
	err := tx.Bucket(bucketName).Each(func(k, v []byte) error {
		id := hostOfKey(v)
		if id <= s.most && !hosts.Has(appendHostKey(nil, id)) {
			s.last, s.damaged[id] = max(s.last, id), weburl.ReverseHost(string(k))
		}
		return s.ctx.Err()
	})
	for id := NoHost + 1; id <= s.last && id != NoHost && err == nil; id++ {
		err = s.examineHost(from, tx, id)
	}
	return err
}

func (s *salvage) examineHost(from *Store, tx *txn, id HostID) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	key := appendHostKey(nil, id)
	v := tx.Bucket(bucketHost).Get(key)
	var r hostRow
	if _, ok := r.decodeHead(id, v); !ok {
		if _, named := s.damaged[id]; !named {
			s.damaged[id] = ""
		}
		return nil
	}
	name, defects := string(r.name), 0
	err := rowfile.Guard(func() error {
		c := checker{store: from, tx: tx, report: func(Finding) { defects++ }, rows: make(map[string]int)}
		c.sum.Hosts = uint64(id) - 1
		c.host(key, v)
		return nil
	})
	if err != nil || defects > 0 || s.old[id] {
		s.damaged[id] = name
	}
	return nil
}

func (s *salvage) isWhole(id HostID) bool {
	_, damaged := s.damaged[id]
	return id != NoHost && id <= s.last && !damaged
}

// write writes the hosts that are whole, the others without their URLs, and what belongs to no host.
func (s *salvage) write(from *Store, tx *txn, to *rowWriter) error {
	c := &rowCopy{
		ctx: s.ctx, from: from, key: &s.key, to: to, tx: tx, has: func(string) bool { return true },
		hosts: func(f func(HostID) error) error {
			for id := NoHost + 1; id <= s.last && id != NoHost; id++ {
				if s.isWhole(id) {
					if err := f(id); err != nil {
						return err
					}
				}
			}
			return nil
		},
		newID: func(id HostID) HostID {
			if s.isWhole(id) {
				return id
			}
			return NoHost
		},
	}
	for _, name := range buckets() {
		if err := to.Begin(name); err != nil {
			return err
		}
		var err error
		switch string(name) {
		case string(bucketMeta):
			continue
		case string(bucketMark):
			err = tx.Bucket(name).Each(to.Put)
		case string(bucketRobots), string(bucketRobotsHistory):
			err = s.origins(tx.Bucket(name), c)
		default:
			err = c.copyBucket(name)
		}
		if err != nil {
			return fmt.Errorf("bucket %s: %w", name, err)
		}
	}
	if err := s.shells(tx, c); err != nil {
		return err
	}
	return putNewMeta(to, &s.key, c.counters)
}

// origins copies what is known of origins. A name that is none is a row of a database without checksums.
func (s *salvage) origins(from *bucket, c *rowCopy) error {
	return from.Each(func(k, v []byte) error {
		if _, err := weburl.ParseOrigin(string(k)); err != nil {
			s.report.Rows[string(from.Name)]++
			return nil
		}
		if string(from.Name) == string(bucketRobots) {
			c.counters.Policies++
		}
		return c.to.Put(k, v)
	})
}

// shells writes the rows of hosts that are not whole as if they had no URLs.
func (s *salvage) shells(tx *txn, c *rowCopy) error {
	names := make(map[string][]byte)
	if err := c.to.Begin(bucketHost); err != nil {
		return err
	}
	ids := slices.Sorted(maps.Keys(s.damaged))
	for _, id := range ids {
		var old hostRow
		r := hostRow{id: id, name: []byte(s.damaged[id])}
		known := s.hostRow(tx, id, &old)
		r.origins, _ = withPorts(old.origins)
		switch {
		case known:
			r.politeness, r.site, r.wall, r.requests, r.bytes = old.politeness, old.site, old.wall, old.requests,
				old.bytes
		case len(r.name) == 0:
			r.name = []byte(erasedName(id))
		case s.o.Lost != nil:
			r.politeness = s.o.Lost(string(r.name))
		}
		c.counters.Add(Counters{Hosts: 1, Requests: uint64(r.requests), Bytes: r.bytes})
		names[weburl.ReverseHost(string(r.name))] = appendHostKey(nil, id)
		if err := c.to.Put(appendHostKey(nil, id), r.append(nil)); err != nil {
			return err
		}
	}
	if err := c.to.Begin(bucketName); err != nil {
		return err
	}
	if err := putSorted(c.to, names); err != nil {
		return err
	}
	return s.traps(tx, ids, c)
}

// traps copies the refused URLs of hosts that are not whole.
func (s *salvage) traps(tx *txn, ids []HostID, c *rowCopy) error {
	if err := c.to.Begin(bucketTrap); err != nil {
		return err
	}
	for _, id := range ids {
		key := appendHostKey(nil, id)
		if v := tx.Bucket(bucketTrap).Get(key); v != nil && s.damaged[id] != "" {
			if err := c.to.Put(key, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// rebuild commits the URLs that are left of the hosts that are not whole.
func (s *salvage) rebuild(tx *txn) (err error) {
	to, err := Open(s.dir, Options{NoSync: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.db.Sync(), to.Close()) }()
	s.kept = make(map[HostID][]uint32)
	for _, id := range slices.Sorted(maps.Keys(s.damaged)) {
		b := hostBuilder{salvage: s, to: to, rd: reader{tx: tx}, loss: HostLoss{Host: s.damaged[id]}}
		if err := b.build(id); err != nil {
			return fmt.Errorf("host %d: %w", id, err)
		}
		if b.loss.URLs == 0 && b.loss.Outcomes == 0 && !b.loss.Row {
			continue // what was lost can be made of what is left
		}
		s.report.Hosts++
		s.report.URLs += uint64(b.loss.URLs)
		s.report.Outcomes += uint64(b.loss.Outcomes)
		if b.loss.Host == "" {
			s.report.Unnamed++
		}
		if s.o.Damaged != nil {
			s.o.Damaged(b.loss)
		}
	}
	if err := s.moveMarks(to); err != nil {
		return err
	}
	s.report.Counters = to.Counters()
	old, known := decodeCounters(tx.Bucket(bucketMeta).Get(metaCounters))
	if s.report.Uncounted = !known && s.report.Pages > 0; known && old.URLs > s.report.Counters.URLs {
		s.report.URLs = old.URLs - s.report.Counters.URLs // some of hosts that nothing is left of
	}
	return nil
}

// salvageBatch is how many URLs one commit brings over.
const salvageBatch = 2_000

// hostBuilder brings over the URLs of a host one by one.
type hostBuilder struct {
	*salvage
	to      *Store
	rd      reader
	loss    HostLoss
	ordinal []uint32 // in the new database, by the one in the old; missing: it is lost
	added   uint32
	taken   []uint32 // the ordinals in the old one of those that were added
	origin  []uint8  // index in the new database, by the one in the old
	queued  uint32   // without an outcome
	entries []Entry  // of batch.Found
}

const missing = 1<<32 - 1

func (b *hostBuilder) build(id HostID) error {
	r := &b.rd.row
	known := b.hostRow(b.rd.tx, id, r)
	b.loss.Row = !known
	_, b.origin = withPorts(r.origins)
	for n := r.first; n < r.next; n++ {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		b.ordinal = append(b.ordinal, missing)
		e, err := b.entry(n)
		if err != nil {
			continue // it is counted as one that was not added
		}
		b.entries = append(b.entries, e)
		if len(b.entries) == salvageBatch {
			if err := b.commit(); err != nil {
				return err
			}
		}
	}
	if err := b.commit(); err != nil {
		return err
	}
	b.kept[id] = b.taken
	b.loss.URLs = r.urls() - b.added
	if known && b.queued > r.counts[Queued] {
		b.loss.Outcomes = b.queued - r.counts[Queued]
	}
	return nil
}

// entry returns a URL of the host, if it is whole.
func (b *hostBuilder) entry(n uint32) (e Entry, err error) {
	err = rowfile.Guard(func() error {
		e, err = b.rd.entry(n)
		if origins := b.rd.row.origins; err == nil && (int(e.Origin) >= len(origins) || origins[e.Origin].port == 0) {
			err = ErrCorrupt
		}
		return err
	})
	return e, err
}

// commit adds the URLs at hand, and then their outcomes.
func (b *hostBuilder) commit() error {
	r := &b.rd.row
	found := Batch{InsertResults: make([]InsertResult, len(b.entries))}
	for i := range b.entries {
		found.Found = append(found.Found, b.found(&b.entries[i]))
	}
	if _, err := b.to.Commit(&found); err != nil {
		return err
	}
	var done Batch
	for i, result := range found.InsertResults {
		if result != InsertAdded {
			continue // the same URL twice
		}
		e := &b.entries[i]
		b.ordinal[e.Ordinal-r.first] = b.added
		b.taken = append(b.taken, e.Ordinal)
		o, err := b.outcome(e.Ordinal)
		if err != nil || o.State == Queued {
			b.queued++
		} else {
			done.Done = append(done.Done, Done{
				Host: r.id, Ordinal: b.added, Origin: b.origin[e.Origin], Priority: e.Priority, Outcome: o,
			})
		}
		b.added++
	}
	b.entries = b.entries[:0]
	if done.Empty() {
		return nil
	}
	_, err := b.to.Commit(&done)
	return err
}

func (b *hostBuilder) outcome(n uint32) (o Outcome, err error) {
	err = rowfile.Guard(func() error {
		o, err = b.rd.outcome(n)
		return err
	})
	return o, err
}

// found returns the discovery of a URL. The page that it was found on is named if it is there.
func (b *hostBuilder) found(e *Entry) Found {
	r := &b.rd.row
	f := Found{
		URL: r.url(e), Fingerprint: b.to.Fingerprint(r.identity(e)), Stripped: e.Stripped, Depth: e.Depth,
		Redirects: e.Redirects, Seed: e.Seed, Sitemap: e.Sitemap, Frequency: e.Frequency, Priority: e.Priority,
		Room: e.Room, At: e.FirstSeen, From: e.From,
		Metadata: b.rd.tx.Bucket(bucketMetadata).Get(appendURLKey(nil, r.id, e.Ordinal)),
	}
	switch {
	case e.ViaHost == r.id:
		if n := e.ViaOrdinal - r.first; e.ViaOrdinal >= r.first && int(n) < len(b.ordinal) && b.ordinal[n] != missing {
			f.ViaHost, f.ViaOrdinal = r.id, b.ordinal[n]
		}
	case b.isWhole(e.ViaHost):
		f.ViaHost, f.ViaOrdinal = e.ViaHost, e.ViaOrdinal
	}
	return f
}
