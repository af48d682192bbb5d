package storage

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/amble-crawler/amble/internal/weburl"
)

// Host is what the store knows of a host.
type Host struct {
	ID         HostID
	Name       string
	Tail       uint32 // ordinals below this exist
	Counts     [numStates]uint32
	Requests   uint32
	Bytes      uint64
	Politeness []byte       // as committed, encoded by the politeness package
	Site       []byte       // as committed, encoded by the revisit package; only of HostByID and HostByName
	Errors     []ErrorCount // what went wrong with its URLs, by rising reason; only of HostByID and HostByName
	Queues     []Queue
}

// Waiting counts the URLs of the host that wait: queued ones and those with a
// due time other than that of a renewal, and tells the earliest due time in Unix seconds, 0 if there is none.
func (h *Host) Waiting() (queued, due, nextDue uint32) {
	for _, q := range h.Queues {
		queued += q.Queued
		due += q.Due
		if q.Due > 0 && (nextDue == 0 || q.NextDue < nextDue) {
			nextDue = q.NextDue
		}
	}
	return queued, due, nextDue
}

// Renewing counts the URLs of the host that have a renewal to come, and tells when the first of them is due, in
// Unix seconds, 0 if there is none.
func (h *Host) Renewing() (renewals, next uint32) {
	for _, q := range h.Queues {
		renewals += q.Renewals
		if q.Renewals > 0 && (next == 0 || q.NextRenewal < next) {
			next = q.NextRenewal
		}
	}
	return renewals, next
}

// Of returns the count of the host's URLs in a state.
func (h *Host) Of(s State) uint32 { return h.Counts[s] }

// Queue is the queue of one origin of a host.
type Queue struct {
	Origin  weburl.Origin
	Cursor  uint32 // the next ordinal
	Queued  uint32 // URLs never touched and of priority 0
	Due     uint32 // URLs to be tried again, and those never touched of other priorities
	NextDue uint32 // the earliest, Unix seconds, 1 for those never touched; 0: none

	Renewals    uint32 // URLs that have a renewal to come
	NextRenewal uint32 // the earliest, Unix seconds; 0: none
}

func (r *hostRow) host() Host {
	h := Host{
		ID: r.id, Name: string(r.name), Tail: r.next, Counts: r.counts, Requests: r.requests, Bytes: r.bytes,
		Politeness: append([]byte(nil), r.politeness...), Queues: make([]Queue, len(r.origins)),
	}
	if len(r.site) > 0 {
		h.Site = append([]byte(nil), r.site...)
	}
	if len(r.errors) > 0 {
		h.Errors = slices.Clone(r.errors)
	}
	for i, o := range r.origins {
		h.Queues[i] = Queue{Origin: o.origin(h.Name), Cursor: o.cursor, Queued: o.queued, Due: o.due, NextDue: o.nextDue, Renewals: o.renewals, NextRenewal: o.nextRenewal}
	}
	return h
}

func getRow(tx *bolt.Tx, id HostID, r *hostRow) error {
	v := tx.Bucket(bucketHost).Get(appendHostKey(nil, id))
	if v == nil {
		return fmt.Errorf("host %d: %w", id, ErrNotFound)
	}
	if !r.decode(id, v) {
		return fmt.Errorf("host %d: %w: its row cannot be read", id, ErrCorrupt)
	}
	return nil
}

// HostByID returns one host; ErrNotFound if there is none of that id.
func (s *Store) HostByID(id HostID) (h Host, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		var r hostRow
		if err := getRow(tx, id, &r); err != nil {
			return err
		}
		h = r.host()
		return nil
	})
	return h, err
}

// HostByName returns one host by its canonical name; ErrNotFound if it is not known.
func (s *Store) HostByName(name string) (Host, error) {
	id := NoHost
	err := s.db.View(func(tx *bolt.Tx) error {
		v := tx.Bucket(bucketName).Get([]byte(weburl.ReverseHost(name)))
		if v == nil {
			return fmt.Errorf("host %s: %w", name, ErrNotFound)
		}
		id = HostID(binary.BigEndian.Uint32(v))
		return nil
	})
	if err != nil {
		return Host{}, err
	}
	return s.HostByID(id)
}

// hostsPerRead bounds how long a walk over the hosts holds a read transaction.
const hostsPerRead = 2000

// Hosts calls f for every host in the order of ids, those with URLs and those
// without, until f returns an error. The Host is f's only during the call. It
// reads in short transactions, so it sees hosts as of different moments.
func (s *Store) Hosts(f func(*Host) error) error {
	for next := HostID(1); next != NoHost; {
		var err error
		if next, err = s.HostsFrom(next, hostsPerRead, f); err != nil {
			return err
		}
	}
	return nil
}

// HostsFrom is Hosts for at most so many hosts that come at an id and behind it, read in one transaction. It returns the id from which more are to be
// had; NoHost: there are no more.
func (s *Store) HostsFrom(id HostID, most int, f func(*Host) error) (next HostID, err error) {
	var r hostRow
	page, more := make([]Host, 0, most), false
	err = s.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketHost).Cursor()
		k, v := c.Seek(appendHostKey(nil, id))
		for ; k != nil && len(page) < most; k, v = c.Next() {
			if _, ok := r.decodeHead(hostOfKey(k), v); !ok {
				return fmt.Errorf("host %d: %w: its row cannot be read", hostOfKey(k), ErrCorrupt)
			}
			page = append(page, r.host())
		}
		more = k != nil
		return nil
	})
	if err != nil {
		return NoHost, err
	}
	for i := range page {
		if err := f(&page[i]); err != nil {
			return NoHost, err
		}
	}
	if !more || len(page) == 0 {
		return NoHost, nil
	}
	return page[len(page)-1].ID + 1, nil
}

// Policy returns the stored robots record of an origin; nil if there is none.
func (s *Store) Policy(o weburl.Origin) (record []byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		record = append(record, tx.Bucket(bucketRobots).Get([]byte(o.String()))...)
		return nil
	})
	return record, err
}

// Past returns what is stored of the earlier robots.txt files of an origin; nil if there is nothing.
func (s *Store) Past(o weburl.Origin) (encoded []byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		if b := tx.Bucket(bucketPast); b != nil { // else no commit has had one yet
			encoded = append(encoded, b.Get([]byte(o.String()))...)
		}
		return nil
	})
	return encoded, err
}

// Mark returns a mark as last committed; nil if it was never set.
func (s *Store) Mark(name string) (mark []byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		mark = append(mark, tx.Bucket(bucketMark).Get([]byte(name))...)
		return nil
	})
	return mark, err
}

// Marks returns the marks whose names begin with a prefix, by name.
func (s *Store) Marks(prefix string) (marks map[string][]byte, err error) {
	marks = make(map[string][]byte)
	err = s.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketMark).Cursor()
		for k, v := c.Seek([]byte(prefix)); k != nil && strings.HasPrefix(string(k), prefix); k, v = c.Next() {
			marks[string(k)] = append([]byte(nil), v...)
		}
		return nil
	})
	return marks, err
}

// Joined returns the URLs that joined the seeds.
func (s *Store) Joined() (urls []string, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketScope).ForEach(func(k, _ []byte) error {
			urls = append(urls, string(k))
			return nil
		})
	})
	return urls, err
}
