//go:build !core

package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Division divides the hosts of a database among parts. Each part becomes a database of its own
// with all that is known of its hosts. It takes 6 bytes of memory a host. Nobody may commit to the
// store meanwhile. A Division may be used concurrently.
type Division struct {
	store *Store
	part  []uint16 // by host id; noPart: the host is erased
	id    []HostID // by host id: its id in its part
	size  []HostID // by part: hosts
	of    func(host string) int
}

// MostParts is the most parts of a division.
const MostParts = noPart

const noPart = 1<<16 - 1

// Divide divides the hosts among so many parts. of returns the part of a host.
func (s *Store) Divide(ctx context.Context, parts int, of func(host string) int) (*Division, error) {
	d := &Division{
		store: s, part: []uint16{noPart}, id: []HostID{NoHost}, size: make([]HostID, parts), of: of,
	}
	if parts > MostParts {
		return nil, fmt.Errorf("divide %s into %d parts: at most %d are possible", s.path, parts, MostParts)
	}
	err := s.Hosts(func(h *Host) error {
		if int(h.ID) != len(d.part) {
			return fmt.Errorf("%w: host %d is missing", ErrCorrupt, len(d.part))
		}
		part, id := uint16(noPart), NoHost
		if !isErased(h.Name) {
			part = uint16(of(h.Name))
			d.size[part]++
			id = d.size[part]
		}
		d.part, d.id = append(d.part, part), append(d.id, id)
		return ctx.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("divide %s: %w", s.path, err)
	}
	return d, nil
}

// Of returns the part of a host by its name, known or not.
func (d *Division) Of(host string) int { return d.of(host) }

// Locate returns the part of a host and its id there; ok is false if it is in none.
func (d *Division) Locate(host HostID) (part int, id HostID, ok bool) {
	if int64(host) >= int64(len(d.part)) || d.part[host] == noPart {
		return 0, NoHost, false
	}
	return int(d.part[host]), d.id[host], true
}

// Position returns the position in a part that has the URLs of the part before and behind it that a
// position of the whole has before and behind it.
func (d *Division) Position(part int, at Position) Position {
	for host := at.Host; int64(host) < int64(len(d.part)); host++ {
		if int(d.part[host]) != part {
			continue
		}
		if host != at.Host {
			at.Ordinal = 0
		}
		return Position{d.id[host], at.Ordinal}
	}
	return Position{Host: d.size[part] + 1}
}

// Hosts calls f for the hosts of a part in the order of their ids, until f returns an error.
func (d *Division) Hosts(part int, f func(HostID) error) error {
	for host, p := range d.part {
		if int(p) == part {
			if err := f(HostID(host)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Part is what a part of a division has besides the rows of its hosts.
type Part struct {
	Number int
	// Log is the position in a log that the part follows from now on. The zero value: none.
	Log LogPosition
	// Marks are those of the part, without the one of the log. Marks that describe files of a data
	// directory are left out.
	Marks map[string][]byte
	// Politeness changes the encoded politeness of a host. Nil: it stays.
	Politeness func(host string, state []byte) ([]byte, error)
}

// Write writes a part to a new file, which is durable then. It returns the counters of the part.
func (d *Division) Write(ctx context.Context, path string, p Part) (Counters, error) {
	c := d.copyOf(ctx, p.Number)
	c.politeness = p.Politeness
	marks := copiedMarks(p.Marks)
	if p.Log.Number > 0 {
		marks[markLog] = p.Log.encode()
	}
	err := writeDatabase(path, d.store.path, func(to *rowWriter) error {
		return writeCopies(to, &d.store.key, marks, c)
	})
	if err != nil {
		return Counters{}, fmt.Errorf("write part %d of %s: %w", p.Number, d.store.path, spaceError(err))
	}
	return c.counters, nil
}

// copyOf returns the copy of a part.
func (d *Division) copyOf(ctx context.Context, part int) *rowCopy {
	return &rowCopy{
		ctx: ctx, from: d.store, has: func(host string) bool { return d.of(host) == part },
		hosts: func(f func(HostID) error) error { return d.Hosts(part, f) },
		newID: func(host HostID) HostID {
			if p, id, ok := d.Locate(host); ok && p == part {
				return id
			}
			return NoHost
		},
	}
}

// copiedMarks returns the marks that a copy can have.
func copiedMarks(all map[string][]byte) map[string][]byte {
	marks := make(map[string][]byte, len(all)+1)
	for name, mark := range all {
		if !isLocal(name) && name != markLog {
			marks[name] = mark
		}
	}
	return marks
}

// writeCopies writes copies of hosts of several databases to a new one, bucket by bucket.
func writeCopies(rows *rowWriter, key *[keySize]byte, marks map[string][]byte, all ...*rowCopy) error {
	for _, c := range all {
		c.to, c.key = rows, key
	}
	err := reading(all, func() error { return copyAll(rows, marks, all) })
	var sum Counters
	for _, c := range all {
		sum.Add(c.counters)
	}
	if err == nil {
		err = putNewMeta(rows, key, sum)
	}
	return err
}

// copyAll copies the rows of all buckets but meta.
func copyAll(rows *rowWriter, marks map[string][]byte, all []*rowCopy) error {
	for _, name := range buckets() {
		err := rows.Begin(name)
		if string(name) == string(bucketMark) {
			err = errors.Join(err, putSorted(rows, marks))
		}
		for _, c := range all {
			if err == nil {
				err = c.copyBucket(name)
			}
		}
		if err != nil {
			return fmt.Errorf("bucket %s: %w", name, err)
		}
	}
	return nil
}

// Union makes one database of the hosts of several: those of part 0 of a division of each. No host is in two of them.
type Union struct {
	from  []*Division
	below []HostID // hosts of the databases before
}

// NewUnion returns the union of part 0 of divisions. There is at least one.
func NewUnion(from []*Division) *Union {
	u := &Union{from: from}
	hosts := NoHost
	for _, d := range from {
		u.below = append(u.below, hosts)
		hosts += d.size[0]
	}
	return u
}

// Host returns the id in the union of a host of one of the databases; ok is false if it is not in it.
func (u *Union) Host(from int, host HostID) (id HostID, ok bool) {
	part, id, ok := u.from[from].Locate(host)
	return u.below[from] + id, ok && part == 0
}

// Write writes the union to a new file, with the mode of another. It is durable then. Marks that
// describe files of a data directory are left out, and so is that of a log.
func (u *Union) Write(ctx context.Context, path, like string, marks map[string][]byte) (Counters, error) {
	var all []*rowCopy
	for i, d := range u.from {
		c := d.copyOf(ctx, 0)
		c.newID = func(host HostID) HostID {
			if id, ok := u.Host(i, host); ok {
				return id
			}
			return NoHost
		}
		all = append(all, c)
	}
	err := writeDatabase(path, like, func(to *rowWriter) error {
		return writeCopies(to, &u.from[0].store.key, copiedMarks(marks), all...)
	})
	if err != nil {
		return Counters{}, fmt.Errorf("write %s: %w", path, spaceError(err))
	}
	var sum Counters
	for _, c := range all {
		sum.Add(c.counters)
	}
	return sum, nil
}

// begin takes a transaction to read from, all of it as of one moment.
func (c *rowCopy) begin(tx *txn) error {
	c.tx = tx
	known := make(map[string]bool)
	for _, name := range buckets() {
		known[string(name)] = true
	}
	return tx.Buckets(func(name []byte, _ *bucket) error {
		if !known[string(name)] {
			return fmt.Errorf("bucket %s: this version does not know what it holds of a host", name)
		}
		return nil
	})
}

// reading calls f while all copies read.
func reading(all []*rowCopy, f func() error) error {
	if len(all) == 0 {
		return f()
	}
	return all[0].from.db.View(func(tx *txn) error {
		if err := all[0].begin(tx); err != nil {
			return err
		}
		return reading(all[1:], f)
	})
}

// isErased reports whether a host is the rest of an erased one.
func isErased(name string) bool { return strings.HasPrefix(name, erasedPrefix) }

func (r *hostRow) identity(e *Entry) weburl.URL {
	return r.origins[e.Origin].origin(string(r.name)).URL(e.identity())
}
