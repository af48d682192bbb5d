//go:build !core

package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Erasure takes hosts out of a database: all rows that are theirs, and all that rows of other hosts
// say of them. Store.NewErasure makes one. It must not be used concurrently.
type Erasure struct {
	// Hosts are those that are erased, by id.
	Hosts map[HostID]string

	// What stays of a value that is opaque to the store; nil: nothing. If the function is nil, values
	// stay as they are.
	Policy  func(record []byte) []byte  // the robots record of an origin of another host
	History func(encoded []byte) []byte // earlier robots.txt files of such an origin
	// Marks changes the marks, by name. Nil: they stay as they are.
	Marks func(marks map[string][]byte)
	// Logged: the database may be a view of a log. A snapshot has to replace the log then, up to its position.
	Logged bool

	names    weburl.Names
	erased   Erased
	counters Counters
}

// Erased counts what an erasure removes.
type Erased struct {
	Hosts      int `json:"hosts"`
	URLs       int `json:"urls"`
	Outcomes   int `json:"outcomes"`       // of these URLs
	Robots     int `json:"robots"`         // robots records of their origins
	History    int `json:"robots_history"` // rows of earlier robots.txt files of their origins
	Seeds      int `json:"scope_seeds"`
	References int `json:"references"` // of URLs of other hosts, to the page that they were found on
	// values of other origins, and marks, that named them and were changed or removed
	Mentions int `json:"mentions"`
}

// NewErasure finds the hosts of a set of names.
func (s *Store) NewErasure(names weburl.Names) (*Erasure, error) {
	e := &Erasure{Hosts: make(map[HostID]string), names: names}
	domain := names.Name
	err := s.Names(domain, "", func(name string, id HostID) error {
		if names.Has(name) {
			e.Hosts[id] = name
		}
		return nil
	})
	return e, err
}

// Count counts what Erase would remove, and changes nothing.
func (s *Store) Count(ctx context.Context, e *Erasure) (Erased, error) {
	err := s.db.View(func(tx *txn) error { return e.copy(ctx, tx, discard{}) })
	if err != nil {
		return Erased{}, fmt.Errorf("erase from %s: %w", s.path, err)
	}
	return e.erased, nil
}

// Erase writes all rows that stay to a new file without free pages, calls commit, and replaces the file of the database
// by the new one, which is durable by then. So no page of the old file, in use or free, is left. After an error, and
// after kill -9 at any moment, the database is as it was or without the hosts. Erase needs room for both files, and
// removes what interrupted processes have left. The store still has the old file: the caller closes it after Erase, and
// nothing may have been committed since NewErasure.
//
// An erased host leaves a row without a name and without URLs, so that its id is never another host's.
func (s *Store) Erase(ctx context.Context, e *Erasure, commit func(Erased) error) error {
	if s.IsLogged() && !e.Logged {
		return fmt.Errorf("erase hosts from %s: %w", s.path, ErrLogged)
	}
	dir := filepath.Dir(s.path)
	fresh := s.path + ".erase"
	err := RemoveLeftovers(dir)
	if err != nil {
		return fmt.Errorf("erase from %s: %w", s.path, err)
	}
	err = writeDatabase(fresh, s.path, func(to *rowWriter) error {
		return s.db.View(func(tx *txn) error { return e.copy(ctx, tx, to) })
	})
	if err == nil {
		err = commit(e.erased)
	}
	if err == nil {
		err = os.Rename(fresh, s.path)
	}
	if err != nil {
		return fmt.Errorf("erase from %s: %w", s.path, errors.Join(spaceError(err), os.Remove(fresh)))
	}
	return system.SyncDir(dir)
}

// copy passes on what stays of all rows.
func (e *Erasure) copy(ctx context.Context, tx *txn, to rowSink) error {
	var ok bool
	if e.counters, ok = decodeCounters(tx.Bucket(bucketMeta).Get(metaCounters)); !ok {
		return fmt.Errorf("%w: its counters cannot be read", ErrCorrupt)
	}
	e.erased = Erased{Hosts: len(e.Hosts)}
	known := make(map[string]bool)
	for _, name := range buckets() { // meta, which has the counters, is the last one
		known[string(name)] = true
		bucket := tx.Bucket(name)
		if bucket == nil { // the file is of an older version, and becomes one of this
			if err := to.Begin(name); err != nil {
				return err
			}
			continue
		}
		if err := e.copyBucket(ctx, name, bucket, to); err != nil {
			return fmt.Errorf("bucket %s: %w", name, err)
		}
	}
	return tx.Buckets(func(name []byte, _ *bucket) error {
		if !known[string(name)] {
			return fmt.Errorf("bucket %s: this version does not know what it holds of a host", name)
		}
		return nil
	})
}

func (e *Erasure) copyBucket(ctx context.Context, name []byte, from *bucket, to rowSink) error {
	if err := errors.Join(ctx.Err(), to.Begin(name)); err != nil {
		return err
	}
	if string(name) == string(bucketMark) && e.Marks != nil {
		return e.copyMarks(from, to)
	}
	change := e.changes(name)
	if change == nil {
		return errors.New("this version does not know what it holds of a host")
	}
	n := 0
	err := from.Each(func(k, v []byte) error {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		v, err := change(k, v)
		if err != nil || v == nil {
			return err
		}
		return to.Put(k, v)
	})
	if err != nil || string(name) != string(bucketName) {
		return err
	}
	for id := range e.Hosts {
		if err := to.Put([]byte(weburl.ReverseHost(erasedName(id))), appendHostKey(nil, id)); err != nil {
			return err
		}
	}
	return nil
}

// copyMarks passes on what stays of the marks.
func (e *Erasure) copyMarks(from *bucket, to rowSink) error {
	before := make(map[string][]byte)
	if err := from.Each(func(k, v []byte) error {
		before[string(k)] = v
		return nil
	}); err != nil {
		return err
	}
	after := maps.Clone(before)
	e.Marks(after)
	for name, value := range before {
		if string(after[name]) != string(value) && e.names.In(value) {
			e.erased.Mentions++
		}
	}
	return putSorted(to, after)
}

// erasedName returns the name that the row of an erased host has in place of its own. No URL has a host of that name.
func erasedName(id HostID) string { return fmt.Sprintf("%s%d>", erasedPrefix, id) }

const erasedPrefix = "<erased-"

// change returns what stays of a row; nil: nothing. The value of a row that stays is not nil.
type change func(k, v []byte) ([]byte, error)

// changes returns the change for the rows of a bucket; nil: it is not known what they hold.
func (e *Erasure) changes(bucket []byte) change {
	switch string(bucket) {
	case string(bucketName):
		return func(_, v []byte) ([]byte, error) { return e.unless(hostOfKey(v), v), nil }
	case string(bucketHost):
		return e.host
	case string(bucketURL):
		return e.urls
	case string(bucketTrap):
		return e.traps
	case string(bucketMetadata):
		return e.metadata
	case string(bucketRobots):
		return e.robots(e.Policy, &e.erased.Robots, func() { e.counters.Policies-- })
	case string(bucketRobotsHistory):
		return e.robots(e.History, &e.erased.History, func() {})
	case string(bucketScope):
		return e.seed
	case string(bucketMeta):
		return e.meta
	case string(bucketMark):
		return func(_, v []byte) ([]byte, error) { return v, nil }
	case string(bucketSeen), string(bucketState), string(bucketDue), string(bucketRecrawl), string(bucketPayload):
		return func(k, v []byte) ([]byte, error) { return e.unless(hostOfKey(k), v), nil }
	}
	return nil
}

// unless returns a value unless the host is erased. bbolt returns nil for an empty value of a nested
// bucket only, and there are none.
func (e *Erasure) unless(id HostID, v []byte) []byte {
	if _, erased := e.Hosts[id]; erased {
		return nil
	}
	if v == nil {
		return []byte{}
	}
	return v
}

// host changes the row of a host.
func (e *Erasure) host(k, v []byte) ([]byte, error) {
	var r hostRow
	id := hostOfKey(k)
	if !r.decode(id, v) {
		return nil, fmt.Errorf("host %d: %w: its row cannot be read", id, ErrCorrupt)
	}
	if _, erased := e.Hosts[id]; !erased {
		before := e.erased.References
		tail, err := e.unlink(r.tail, id)
		if err != nil || e.erased.References == before {
			return v, err
		}
		head := len(v) - len(r.tail)
		return append(v[:head:head], tail...), nil
	}
	e.erased.URLs += int(r.urls())
	e.erased.Outcomes += int(r.urls() - r.counts[Queued])
	e.counters.URLs -= uint64(r.urls())
	e.counters.Requests -= uint64(r.requests)
	e.counters.Bytes -= r.bytes
	for s, n := range r.counts {
		e.counters.States[s] -= uint64(n)
		e.counters.Requisites[s] -= uint64(r.requisites[s])
	}
	left := hostRow{id: id, name: []byte(erasedName(id))}
	return left.append(nil), nil
}

// urls changes a row of url.
func (e *Erasure) urls(k, v []byte) ([]byte, error) {
	id := hostOfKey(k)
	if e.unless(id, v) == nil {
		return nil, nil
	}
	return e.unlink(v, id)
}

// unlink returns encoded URLs of a host without references to pages of erased hosts.
func (e *Erasure) unlink(b []byte, host HostID) ([]byte, error) {
	return relink(b, host, host, func(via HostID) HostID {
		if _, erased := e.Hosts[via]; erased {
			e.erased.References++
			return NoHost
		}
		return via
	})
}

// traps removes samples that name an erased host from the refused URLs of another one.
func (e *Erasure) traps(k, v []byte) ([]byte, error) {
	if e.unless(hostOfKey(k), v) == nil || !e.names.In(v) {
		return e.unless(hostOfKey(k), v), nil
	}
	counts, ok := decodeTraps(v)
	if !ok {
		return nil, fmt.Errorf("host %d: %w: its traps cannot be read", hostOfKey(k), ErrCorrupt)
	}
	for i := range counts {
		kept := counts[i].Samples[:0]
		for _, text := range counts[i].Samples {
			if e.names.HasURL(text) {
				e.erased.Mentions++
			} else {
				kept = append(kept, text)
			}
		}
		counts[i].Samples = kept
	}
	return appendTraps(nil, counts), nil
}

// robots changes rows that are keyed by origins.
func (e *Erasure) robots(stays func([]byte) []byte, count *int, removed func()) change {
	return func(k, v []byte) ([]byte, error) {
		if o, err := weburl.ParseOrigin(string(k)); err == nil && e.names.Has(o.Host) {
			*count++
			removed()
			return nil, nil
		}
		if stays == nil {
			return v, nil
		}
		kept := stays(v)
		if string(kept) != string(v) {
			e.erased.Mentions++
			if kept == nil {
				removed()
			}
		}
		return kept, nil
	}
}

// seed removes the scope seeds of erased hosts.
func (e *Erasure) seed(k, v []byte) ([]byte, error) {
	if e.names.HasURL(string(k)) {
		e.erased.Seeds++
		return nil, nil
	}
	return v, nil
}

func (e *Erasure) meta(k, v []byte) ([]byte, error) {
	switch string(k) {
	case string(metaCounters):
		return appendCounters(nil, e.counters), nil
	case string(metaVersion), string(metaSums):
		return binary.BigEndian.AppendUint32(nil, Version), nil
	}
	return v, nil
}

// metadata changes the metadata of a URL of another host that names an erased one: what names it goes.
func (e *Erasure) metadata(k, v []byte) ([]byte, error) {
	if v = e.unless(hostOfKey(k), v); v == nil || !e.names.In(v) {
		return v, nil
	}
	m, ok := DecodeMetadata(v)
	if !ok {
		return nil, fmt.Errorf("host %d: %w: metadata of a URL cannot be read", hostOfKey(k), ErrCorrupt)
	}
	names := func(s string) bool { return e.names.In([]byte(s)) }
	for key, values := range m {
		if m[key] = slices.DeleteFunc(values, names); len(m[key]) == 0 || names(key) {
			delete(m, key)
		}
	}
	e.erased.Mentions++
	return m.Encode()
}
