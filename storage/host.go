package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// HostID identifies a host in this store. Ids are dense, begin at 1 and are never reused.
type HostID uint32

// NoHost is the zero HostID; no host has it.
const NoHost HostID = 0

// Host is what the store knows of a host.
type Host struct {
	ID         HostID
	Name       string
	First      uint32 // ordinals below this are deleted
	Tail       uint32 // ordinals from First to below this exist
	Counts     [numStates]uint32
	Requisites [numStates]uint32 // those of Counts that are requisites
	Requests   uint32
	Bytes      uint64
	Politeness []byte       // as committed, encoded by the politeness package
	Site       []byte       // as committed, encoded by internal/rules/recrawl; only of HostByID and HostByName
	Wall       []byte       // as committed, encoded by internal/rules/wall; only of HostByID and HostByName
	Errors     []ErrorCount // failures of its URLs, ordered by reason; only of HostByID and HostByName
	Queues     []Queue
}

// Backlog returns what waits in all queues of the host.
func (h *Host) Backlog() (b Backlog) {
	for i := range h.Queues {
		b.add(&h.Queues[i].Backlog)
	}
	return b
}

// Of returns the count of the host's URLs in a state.
func (h *Host) Of(s State) uint32 { return h.Counts[s] }

// Pages returns how many pages of the host are fetched: URLs without requisites.
func (h *Host) Pages() uint32 { return h.Of(Fetched) - h.Requisites[Fetched] }

// Waiting returns how many requisites of the host wait.
func (h *Host) Waiting() uint32 { return h.Requisites[Queued] + h.Requisites[Retrying] }

// URLs returns how many URLs the host has.
func (h *Host) URLs() uint32 { return h.Tail - h.First }

// Completed returns how many of its URLs are neither queued nor retrying.
func (h *Host) Completed() uint32 { return h.URLs() - h.Of(Queued) - h.Of(Retrying) }

// Queue is the queue of one origin of a host.
type Queue struct {
	Origin weburl.Origin
	Cursor uint32 // the next ordinal
	Backlog
}

// Backlog counts the URLs that wait in a queue, or in all queues of a host.
type Backlog struct {
	Queued  uint32 // URLs without an outcome and of priority 0
	Due     uint32 // retries, and URLs without an outcome of other priorities
	NextDue uint32 // Unix seconds of the earliest of them, 1 for those without an outcome; 0: none

	Recrawls    uint32 // URLs planned for a recrawl
	NextRecrawl uint32 // Unix seconds of the earliest of them; 0: none
}

// add adds what waits in another queue.
func (b *Backlog) add(o *Backlog) {
	b.Queued += o.Queued
	b.Due += o.Due
	b.NextDue = earlier(b.NextDue, o.NextDue)
	b.Recrawls += o.Recrawls
	b.NextRecrawl = earlier(b.NextRecrawl, o.NextRecrawl)
}

// earlier returns the earlier of two times in Unix seconds; 0: never.
func earlier(a, b uint32) uint32 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func (r *hostRow) host() (h Host) {
	r.copyNumbers(&h)
	h.Name, h.Politeness = string(r.name), append([]byte(nil), r.politeness...)
	h.Queues = make([]Queue, len(r.origins))
	if len(r.site) > 0 {
		h.Site = append([]byte(nil), r.site...)
	}
	if len(r.wall) > 0 {
		h.Wall = append([]byte(nil), r.wall...)
	}
	if len(r.errors) > 0 {
		h.Errors = slices.Clone(r.errors)
	}
	for i := range r.origins {
		h.Queues[i] = r.origins[i].queue(h.Name)
	}
	return h
}

// urls returns how many URLs the host has.
func (r *hostRow) urls() uint32 { return r.next - r.first }

// copyNumbers sets the fields of a Host that are numbers.
func (r *hostRow) copyNumbers(h *Host) {
	h.ID, h.First, h.Tail, h.Counts, h.Requests, h.Bytes = r.id, r.first, r.next, r.counts, r.requests, r.bytes
	h.Requisites = r.requisites
}

func (o *originRow) queue(host string) Queue {
	return Queue{Origin: o.origin(host), Cursor: o.cursor, Backlog: o.Backlog}
}

func getRow(tx *txn, id HostID, r *hostRow) error {
	v := tx.Bucket(bucketHost).Get(appendHostKey(nil, id))
	if v == nil {
		return fmt.Errorf("host %d: %w", id, ErrNotFound)
	}
	if !r.decode(id, v) {
		return fmt.Errorf("host %d: %w: its row cannot be read", id, ErrCorrupt)
	}
	return nil
}

// HostByID returns a host by its id, or ErrNotFound.
func (s *rows) HostByID(id HostID) (h Host, err error) {
	err = s.db.View(func(tx *txn) error {
		var r hostRow
		if err := getRow(tx, id, &r); err != nil {
			return err
		}
		h = r.host()
		return nil
	})
	return h, err
}

// HostByName returns a host by its canonical name, or ErrNotFound.
func (s *rows) HostByName(name string) (Host, error) {
	id := NoHost
	err := s.db.View(func(tx *txn) error {
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

// hostsPerRead bounds how many hosts are read in one transaction.
const hostsPerRead = 2000

// Hosts calls f for every host in the order of ids until f returns an error. The Host is valid
// during the call only. Hosts reads in short transactions, so it sees hosts as of different
// moments.
func (s *rows) Hosts(f func(*Host) error) error {
	var p HostPage
	for next := HostID(1); next != NoHost; {
		var err error
		if next, err = s.ReadHosts(&p, next, hostsPerRead); err == nil {
			err = p.each(f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// HostsFrom calls f for at most the given number of hosts from an id on, read in one transaction.
// It returns the id to go on from, NoHost if there are no more hosts.
func (s *rows) HostsFrom(id HostID, most int, f func(*Host) error) (next HostID, err error) {
	var p HostPage
	if next, err = s.ReadHosts(&p, id, most); err == nil {
		err = p.each(f)
	}
	if err != nil {
		return NoHost, err
	}
	return next, nil
}

// HostPage is a page of a walk over the hosts. What it holds is valid until it is read again, which allocates next
// to nothing.
type HostPage struct {
	Hosts []Host

	row        hostRow
	names      []byte
	lengths    []uint8 // of the names
	politeness []byte
	queues     []Queue
}

func (p *HostPage) each(f func(*Host) error) error {
	for i := range p.Hosts {
		if err := f(&p.Hosts[i]); err != nil {
			return err
		}
	}
	return nil
}

// ReadHosts reads at most the given number of hosts from an id on, in one transaction. It returns the id to go on
// from, NoHost if there are no more hosts.
func (s *rows) ReadHosts(p *HostPage, id HostID, most int) (next HostID, err error) {
	p.Hosts, p.names, p.lengths = p.Hosts[:0], p.names[:0], p.lengths[:0]
	p.politeness, p.queues = p.politeness[:0], p.queues[:0]
	id = max(id, 1)
	err = s.db.View(func(tx *txn) error {
		c := tx.Bucket(bucketHost).Cursor()
		k, v := c.Seek(appendHostKey(nil, id))
		for ; k != nil && len(p.Hosts) < most; k, v = c.Next() {
			if hostOfKey(k) != id {
				return fmt.Errorf("host %d: %w: its row is missing", id, ErrCorrupt)
			}
			if !p.add(id, v) {
				return fmt.Errorf("host %d: %w: its row cannot be read", id, ErrCorrupt)
			}
			id++
		}
		if k != nil {
			next = id
			return nil
		}
		counters, ok := decodeCounters(tx.Bucket(bucketMeta).Get(metaCounters))
		if !ok || uint64(id) <= counters.Hosts {
			return fmt.Errorf("host %d: %w: the rows of %d hosts are not all there", id, ErrCorrupt, counters.Hosts)
		}
		return nil
	})
	p.setNames()
	return next, err
}

// add adds a host without its name; false: its row cannot be read.
func (p *HostPage) add(id HostID, row []byte) bool {
	r := &p.row
	if _, ok := r.decodeHead(id, row); !ok {
		return false
	}
	p.Hosts = append(p.Hosts, Host{})
	h := &p.Hosts[len(p.Hosts)-1]
	r.copyNumbers(h)
	p.names, p.lengths = append(p.names, r.name...), append(p.lengths, uint8(len(r.name)))
	p.politeness = append(p.politeness, r.politeness...)
	h.Politeness = last(p.politeness, len(r.politeness))
	for i := range r.origins {
		p.queues = append(p.queues, r.origins[i].queue(""))
	}
	h.Queues = last(p.queues, len(r.origins))
	return true
}

// last returns the last n items.
func last[T any](of []T, n int) []T { return of[len(of)-n : len(of) : len(of)] }

// setNames gives the hosts their names, which share one string.
func (p *HostPage) setNames() {
	all := string(p.names)
	for i := range p.Hosts {
		h, n := &p.Hosts[i], p.lengths[i]
		h.Name, all = all[:n], all[n:]
		for j := range h.Queues {
			h.Queues[j].Origin.Host = h.Name
		}
	}
}

// namesPerRead bounds how many names are read in one transaction.
const namesPerRead = 5000

// Names calls f for host names, ordered by their labels from the right so that the hosts of a
// domain are adjacent, until f returns an error. It does not return ErrStop. If under is a domain,
// only that domain and the hosts below it are visited. If after is a name, the walk starts behind
// it. Names reads in short transactions.
func (s *rows) Names(under, after string, f func(name string, id HostID) error) error {
	w := nameWalk{domain: weburl.ReverseHost(under), last: weburl.ReverseHost(after)}
	for w.more = true; w.more; {
		if err := w.read(s); err != nil {
			return err
		}
		for i := range w.page {
			if err := f(weburl.ReverseHost(w.page[i].reversed), w.page[i].id); err != nil {
				if errors.Is(err, ErrStop) {
					return nil
				}
				return err
			}
		}
	}
	return nil
}

// nameWalk is a walk over reversed names.
type nameWalk struct {
	domain string // reversed; empty: all
	last   string // visited
	more   bool
	page   []nameRow // what was read last
}

type nameRow struct {
	reversed string
	id       HostID
}

func (w *nameWalk) read(s *rows) error {
	w.more, w.page = false, w.page[:0]
	return s.db.View(func(tx *txn) error {
		c := tx.Bucket(bucketName).Cursor()
		k, v := c.Seek([]byte(max(w.domain, w.last)))
		if w.last != "" && string(k) == w.last {
			k, v = c.Next()
		}
		for k != nil {
			name := string(k)
			switch {
			case len(w.page) == namesPerRead:
				w.more = true
				return nil
			case w.domain == "" || name == w.domain || strings.HasPrefix(name, w.domain+"."):
				w.page = append(w.page, nameRow{name, hostOfKey(v)})
				k, v = c.Next()
				w.last = name
			case name < w.domain+".": // as example-shop.org, between example.org and www.example.org
				k, v = c.Seek([]byte(w.domain + "."))
			default:
				return nil
			}
		}
		return nil
	})
}
