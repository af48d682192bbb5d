//go:build !core

package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// rowCopy copies hosts of a database, with all that is known of them, to another one where they have other ids.
type rowCopy struct {
	ctx   context.Context
	from  *Store
	hosts func(func(HostID) error) error // in rising order
	newID func(HostID) HostID            // rising; NoHost: it is not copied
	has   func(host string) bool         // whether what is known of a host by its name is copied
	// politeness changes the encoded politeness of a host. Nil: it stays.
	politeness func(host string, state []byte) ([]byte, error)

	key      *[keySize]byte // of the other database
	to       rowSink
	tx       *txn
	counters Counters // of what was copied
	row      []byte   // the key of the row at hand
	rows     int
}

// copyBucket copies the rows of a bucket, in the order of their keys. Those of meta and the marks are not copied.
func (c *rowCopy) copyBucket(name []byte) error {
	from := c.tx.Bucket(name)
	if from == nil { // the file is of an older version, and the copy is one of this
		return c.ctx.Err()
	}
	switch string(name) {
	case string(bucketName):
		return c.each(from, func(k, v []byte) error {
			if id := c.newID(hostOfKey(v)); id != NoHost {
				return c.to.Put(k, appendHostKey(nil, id))
			}
			return nil
		})
	case string(bucketHost):
		return c.ofHosts(from, c.host)
	case string(bucketURL):
		return c.ofHosts(from, c.relink)
	case string(bucketSeen):
		if *c.key != c.from.key {
			return c.hosts(c.fingerprints)
		}
		return c.ofHosts(from, same)
	case string(bucketState), string(bucketDue), string(bucketRecrawl), string(bucketTrap), string(bucketPayload),
		string(bucketMetadata):
		return c.ofHosts(from, same)
	case string(bucketRobots):
		return c.ofOrigins(from, &c.counters.Policies)
	case string(bucketRobotsHistory):
		return c.ofOrigins(from, new(uint64))
	case string(bucketScope):
		return c.each(from, func(k, v []byte) error {
			if u, err := weburl.Parse(string(k)); err != nil || !c.has(u.Host()) {
				return err
			}
			return c.to.Put(k, v)
		})
	case string(bucketMark), string(bucketMeta):
		return nil
	}
	return errors.New("this version does not know what it holds of a host")
}

// cancelEvery is how many rows are read before the context is looked at again.
const cancelEvery = 4096

func (c *rowCopy) canceled() error {
	if c.rows++; c.rows%cancelEvery == 0 {
		return c.ctx.Err()
	}
	return nil
}

// each calls f for all rows of a bucket.
func (c *rowCopy) each(from *bucket, f func(k, v []byte) error) error {
	return from.Each(func(k, v []byte) error {
		if err := c.canceled(); err != nil {
			return err
		}
		return f(k, v)
	})
}

func same(_ HostID, v []byte) ([]byte, error) { return v, nil }

// ofHosts copies the rows whose keys begin with the id of a host that is copied. change returns the value in the copy.
func (c *rowCopy) ofHosts(from *bucket, change func(HostID, []byte) ([]byte, error)) error {
	cursor := from.Cursor()
	return c.hosts(func(host HostID) error {
		prefix := appendHostKey(nil, host)
		for k, v := cursor.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = cursor.Next() {
			err := c.canceled()
			if err == nil {
				v, err = change(host, v)
			}
			if err == nil {
				c.row = append(appendHostKey(c.row[:0], c.newID(host)), k[hostKeySize:]...)
				err = c.to.Put(c.row, v)
			}
			if err != nil {
				return fmt.Errorf("host %d: %w", host, err)
			}
		}
		return nil
	})
}

// ofOrigins copies and counts the rows that are keyed by origins.
func (c *rowCopy) ofOrigins(from *bucket, count *uint64) error {
	return c.each(from, func(k, v []byte) error {
		o, err := weburl.ParseOrigin(string(k))
		if err != nil {
			return fmt.Errorf("%w: %q is no origin", ErrCorrupt, k)
		}
		if !c.has(o.Host) {
			return nil
		}
		*count++
		return c.to.Put(k, v)
	})
}

// host returns the row of a host as it is in the copy.
func (c *rowCopy) host(id HostID, v []byte) ([]byte, error) {
	rd := reader{tx: c.tx}
	r := &rd.row
	if !r.decode(id, v) {
		return nil, fmt.Errorf("%w: its row cannot be read", ErrCorrupt)
	}
	if *c.key != c.from.key {
		if err := c.rekeyQueries(&rd); err != nil {
			return nil, err
		}
	}
	var err error
	if r.tail, err = c.relink(id, r.tail); err == nil && c.politeness != nil {
		r.politeness, err = c.politeness(string(r.name), r.politeness)
	}
	if err != nil {
		return nil, err
	}
	sum := Counters{Hosts: 1, URLs: uint64(r.urls()), Requests: uint64(r.requests), Bytes: r.bytes}
	for s, n := range r.counts {
		sum.States[s], sum.Requisites[s] = uint64(n), uint64(r.requisites[s])
	}
	c.counters.Add(sum)
	return r.append(nil), nil
}

// relink returns encoded URLs of a host as they are in the copy. The page that a URL was found on is
// unknown there if it is of a host that is not copied.
func (c *rowCopy) relink(host HostID, b []byte) ([]byte, error) {
	return relink(b, host, c.newID(host), c.newID)
}

// relink returns encoded URLs of a host with other ids of the hosts that they were found on. to is the
// id of their own host then. It returns b itself if nothing changes.
func relink(b []byte, from, to HostID, via func(HostID) HostID) ([]byte, error) {
	var changed []byte // as far as b was read; nil: nothing has changed so far
	for d := wire.NewDecoder(b); d.Len() > 0; {
		rest := d.Rest()
		skipEntry(&d)
		if !d.OK() {
			return nil, fmt.Errorf("host %d: %w: its URLs cannot be read", from, ErrCorrupt)
		}
		entry := rest[:len(rest)-d.Len()]
		if entry[0]&entryFarVia != 0 {
			u, _, ok := decodeEntry(entry, from, 0)
			if id := via(u.ViaHost); ok && id != u.ViaHost {
				if changed == nil {
					changed = append(make([]byte, 0, len(b)), b[:len(b)-len(rest)]...)
				}
				if u.ViaHost = id; id == NoHost {
					u.ViaOrdinal = 0
				}
				changed = appendEntry(changed, to, &u)
				continue
			}
		}
		if changed != nil {
			changed = append(changed, entry...)
		}
	}
	if changed == nil {
		return b, nil
	}
	return changed, nil
}

// fingerprints writes the fingerprints of a host by the key of the copy. It takes 12 bytes of memory for
// each of its URLs.
func (c *rowCopy) fingerprints(host HostID) error {
	rd := reader{tx: c.tx}
	if err := getRow(c.tx, host, &rd.row); err != nil {
		return err
	}
	other, r := &rows{key: *c.key}, &rd.row
	var items []seenItem
	for n := r.first; n < r.spilled; n++ {
		e, err := rd.entry(n)
		if err == nil {
			err = c.canceled()
		}
		if err != nil {
			return err
		}
		o := &r.origins[e.Origin]
		items = append(items, seenItem{fingerprint(other, o.secure, o.port, e.identity()), n})
	}
	sortSeen(items)
	return eachSeenBlock(0, mergeSeen(nil, nil, items), func(first uint64, block []byte) error {
		return c.to.Put(appendSeenKey(nil, c.newID(host), first), block)
	})
}

// rekeyQueries gives the paths in the tally of queries the keys that they have in the copy. A path whose
// URLs are all deleted has none there.
func (c *rowCopy) rekeyQueries(rd *reader) error {
	r := &rd.row
	if len(r.queries) == 0 {
		return nil
	}
	other, queries := &rows{key: *c.key}, make(tally, len(r.queries)) // those that are found have a count
	for n := r.first; n < r.next; n++ {
		e, err := rd.entry(n)
		if err == nil {
			err = c.canceled()
		}
		if err != nil {
			return err
		}
		path, _, has := strings.Cut(e.RequestURI, "?")
		if !has {
			continue
		}
		key := c.from.pathKey(&r.origins[e.Origin], path)
		for i := range r.queries {
			if r.queries[i].key == key {
				queries[i] = tallyItem{other.pathKey(&r.origins[e.Origin], path), r.queries[i].count}
			}
		}
	}
	r.queries = r.queries[:0]
	for _, q := range queries {
		if q.count > 0 {
			r.queries = append(r.queries, q)
		}
	}
	return nil
}

// putNewMeta writes the bucket meta of a copy.
func putNewMeta(to rowSink, key *[keySize]byte, c Counters) error {
	if err := to.Begin(bucketMeta); err != nil {
		return err
	}
	return errors.Join(putVersion(to.Put), to.Put(metaKey, key[:]), to.Put(metaCounters, appendCounters(nil, c)))
}
