package storage

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/amble-crawler/amble/storage/internal/names"
	"github.com/amble-crawler/amble/storage/internal/rowfile"
)

// Commit makes a batch durable in one transaction and returns what it changed. After an error nothing of the batch is
// in the store, and the same batch can be committed again; a full disk is such an error (errors.Is ErrNoSpace).
// ErrInDoubt is different: the disk failed at the very last sync, so either all of the batch is durable or nothing.
// What the store shows then may differ from what the next Open finds, and the store takes no more commits. Only the
// committer may call Commit, one call at a time. A store that follows a log takes only marks of this data directory
// from Commit; the error is ErrLogged for other batches. See CommitTo.
func (s *Store) Commit(b *Batch) (Result, error) {
	if (s.position.Number > 0 || s.pending != nil) && !b.isLocal() {
		return Result{}, fmt.Errorf("commit to %s: %w", s.path, ErrLogged)
	}
	if s.began && !b.isLocal() {
		s.began = false
	}
	return s.commit(b, effects{limits: s.limits, onListed: s.notice})
}

// commit commits a batch with given effects.
func (s *Store) commit(b *Batch, e effects) (Result, error) {
	return s.commitAll([]*Batch{b}, []effects{e})
}

// commitAll commits batches with given effects in one transaction, one after the other.
func (s *Store) commitAll(batches []*Batch, all []effects) (Result, error) {
	if s.doubt != nil {
		return Result{}, s.doubt
	}
	w := s.writer
	w.reset(s.Counters())
	id := 0
	err := s.db.Update(func(tx *txn) error {
		id = tx.ID()
		w.begin(tx)
		tx.OnCommit(func(changed int64) { w.result.Changed = changed })
		for i, b := range batches {
			if err := w.applyWith(b, all[i]); err != nil {
				return err
			}
		}
		w.fillPages()
		return nil
	})
	w.effects = effects{}
	w.transaction = transaction{} // its buckets refer to all pages that were read and changed
	if err != nil {
		w.names.Forget()
		return Result{}, s.failed(id, err)
	}
	counters := w.counters
	s.counters.Store(&counters)
	return w.result, nil
}

// failed returns the error of transaction id, which failed with cause. The last two steps of a transaction are to write
// the meta page and to sync it. If the page is visible, the sync has failed: the page may or may not be on the disk,
// the system may forget it, and a second sync could not tell. So the store takes no more commits. failed also sets the
// counters to what is read from now on. After damage it takes no more commits either.
func (s *Store) failed(id int, cause error) error {
	there := false
	seen := s.db.View(func(tx *txn) error {
		there = id > 0 && tx.ID() >= id
		counters, ok := decodeCounters(tx.Bucket(bucketMeta).Get(metaCounters))
		if !ok {
			return fmt.Errorf("%w: its counters cannot be read", ErrCorrupt)
		}
		s.counters.Store(&counters)
		return nil
	})
	if errors.Is(cause, ErrCorrupt) && !there { // what else is damaged is not known
		s.doubt = fmt.Errorf("commit to %s: %w", s.path, errors.Join(cause, seen))
		return s.doubt
	}
	if there || seen != nil {
		s.doubt = fmt.Errorf("commit to %s: %w: %w", s.path, ErrInDoubt, errors.Join(cause, seen))
		return s.doubt
	}
	return fmt.Errorf("commit to %s: %w", s.path, spaceError(cause))
}

// writer carries a transaction and the buffers that all transactions share.
type writer struct {
	hostWork
	names names.Names
	work  []work
}

// hostWork is what a writer does to the rows of the host at hand.
type hostWork struct {
	store    *Store
	counters Counters
	result   Result
	effects  effects  // of this commit
	calls    uint64   // of Options.Notice
	notices  []Notice // that changed something, for the log

	transaction

	row      hostRow
	index    []tailRef
	lastSeen seenBlock // of the host at hand
	items    []seenItem
	hits     []uint32
	copies   map[uint32]bool // pages of the host at hand whose links are refused
	refusals []refusal       // of the host at hand
	key      []byte          // for one key at a time
	scratch  []byte          // for one row at a time
	tail     []byte          // of the host at hand
	ownTail  bool            // tail is a copy in tails
	tails    []byte          // memory for tails
	bodies   []byte
	payloads recentPayloads // of the host at hand
	putDue   uint32         // of the host at hand: see HostChange.PutDue
	recrawls uint32         // bits of the origins of the host at hand whose recrawls were moved
	merge    []byte
}

func newWriter(s *Store) *writer {
	return &writer{
		hostWork: hostWork{store: s, copies: make(map[uint32]bool), key: make([]byte, 0, 64)},
	}
}

func (w *writer) reset(c Counters) {
	w.counters, w.result = c, Result{}
	w.names.Begin()
}

// applyWith applies a batch with given effects.
func (w *writer) applyWith(b *Batch, e effects) error {
	w.effects, w.notices, w.calls = e, w.notices[:0], 0
	w.work, w.refusals = w.work[:0], w.refusals[:0]
	if err := w.apply(b); err != nil || e.finish == nil {
		return err
	}
	return e.finish(w)
}

func (w *writer) apply(b *Batch) error {
	if err := w.plan(b); err != nil {
		return err
	}
	for at := 0; at < len(w.work); {
		end := at + 1
		for end < len(w.work) && w.work[end].host() == w.work[at].host() {
			end++
		}
		if err := w.applyHost(b, w.work[at:end]); err != nil {
			return fmt.Errorf("host %d: %w", w.work[at].host(), err)
		}
		at = end
	}
	if err := w.putPolicies(b.Policies); err != nil {
		return err
	}
	if err := w.putRobotsHistory(b.RobotsHistory); err != nil {
		return err
	}
	return w.putMeta(b)
}

// plan gives every host its id and sorts the batch by host, so that every bucket is written in the order of its keys.
func (w *writer) plan(b *Batch) error {
	for i := range b.Found {
		name := b.Found[i].URL.Host()
		if !IsHostName(name) {
			w.result.Refused++
			if b.InsertResults != nil {
				b.InsertResults[i] = InsertRefused
			}
			continue
		}
		w.work = append(w.work, newWork(w.idOf(name), workFound, i))
	}
	for i := range b.Done {
		w.work = append(w.work, newWork(b.Done[i].Host, workDone, i))
	}
	for i := range b.Hosts {
		w.work = append(w.work, newWork(b.Hosts[i].Host, workUpdate, i))
	}
	for i := range b.Payloads {
		w.work = append(w.work, newWork(b.Payloads[i].Host, workPayload, i))
	}
	for i := range b.Purges {
		w.work = append(w.work, newWork(b.Purges[i].Host, workPurge, i))
	}
	for i := range b.Refused {
		id := HostID(w.names.Known(b.Refused[i].Host, nameIndex{w.nameRows})) // a trap must not create a host
		if id != NoHost && b.Refused[i].Reason != 0 {
			w.work = append(w.work, newWork(id, workRefused, i))
		}
	}
	if len(b.Ensure) > 0 {
		w.result.Ensured = make(map[string]HostID, len(b.Ensure))
	}
	for _, name := range b.Ensure {
		if !IsHostName(name) {
			return fmt.Errorf("host name of %d bytes", len(name))
		}
		w.result.Ensured[name] = w.idOf(name)
	}
	slices.Sort(w.work)
	return w.putNames()
}

// idOf returns the id of a host name. A new name gets an id, and a row when its host is applied.
func (w *writer) idOf(name string) HostID {
	id, isNew := w.names.ID(name, nameIndex{w.nameRows}, uint32(w.counters.Hosts)+1)
	if isNew {
		w.work = append(w.work, newWork(HostID(id), workNew, len(w.names.Added())-1))
		w.counters.Hosts++
	}
	return HostID(id)
}

// nameIndex is the bucket of names.
type nameIndex struct{ rows *cursor }

// Find implements names.Index.
func (x nameIndex) Find(key []byte) (id uint32, found bool, next []byte) {
	v, next := x.rows.Find(key)
	if v == nil {
		return 0, false, next
	}
	return uint32(hostOfKey(v)), true, nil
}

// putNames adds the new hosts to the index of names.
func (w *writer) putNames() error {
	for _, h := range w.names.New() {
		if err := w.name.Put([]byte(h.Key), appendHostKey(w.key[:0], HostID(h.ID))); err != nil {
			return err
		}
	}
	return nil
}

// fillPages sets how full the pages of names and hosts are when they are divided: those that get rows one behind the
// other stay as they are, and the others need room for the rows that will come between.
func (w *writer) fillPages() {
	if w.names.InOrder() {
		w.name.Fill(rowfile.AppendFill)
	}
	if 2*len(w.names.Added()) > len(w.result.Hosts) {
		w.host.Fill(rowfile.AppendFill)
	}
}

// applyHost applies all items of the batch for one host to the host's row.
func (w *writer) applyHost(b *Batch, items []work) error {
	id, r := items[0].host(), &w.row
	var v []byte
	isNew := items[0].kind() == workNew
	if !isNew {
		v = w.hostRows.Get(appendHostKey(w.key[:0], id))
	}
	switch {
	case isNew:
		r.begin(id, w.names.Added()[items[0].index()].Name)
		items = items[1:]
	case v == nil && (id == NoHost || uint64(id) > w.counters.Hosts):
		return errors.New("no such host")
	case v == nil:
		return fmt.Errorf("%w: its row is missing", ErrCorrupt)
	case !r.decode(id, v):
		return fmt.Errorf("%w: row of the host cannot be read", ErrCorrupt)
	}
	w.tail, w.ownTail = r.tail, false
	w.payloads = append(w.payloads[:0], r.payloads...)
	w.bodies = w.bodies[:0]
	w.index = w.index[:0]
	w.lastSeen = seenBlock{}
	w.putDue, w.recrawls = 0, 0
	clear(w.copies)
	if err := w.applyItems(r, b, items); err != nil {
		return err
	}
	w.findRecrawls(r)
	if err := w.putTraps(id); err != nil {
		return err
	}
	r.tail, r.payloads = w.tail, w.payloads
	w.scratch = r.append(w.scratch[:0])
	if !bytes.Equal(w.scratch, v) { // known links change nothing, and most links are known
		if err := w.host.Put(appendHostKey(w.key[:0], id), w.scratch); err != nil {
			return err
		}
	}
	if len(items) == 0 {
		return nil
	}
	t := HostChange{Host: id, Tail: r.next, Backlog: r.backlog()}
	t.URLs, t.Completed, t.PutDue = r.urls(), r.urls()-r.counts[Queued]-r.counts[Retrying], w.putDue
	t.Waiting = r.requisites[Queued] + r.requisites[Retrying]
	w.result.Hosts = append(w.result.Hosts, t)
	return nil
}

// applyItems applies the items to the row. Outcomes of URLs that the same batch adds come late, and deletions last.
func (w *writer) applyItems(r *hostRow, b *Batch, items []work) (err error) {
	var late []*Done
	var purges []*Purge
	for _, item := range items {
		switch item.kind() {
		case workDone:
			if d := &b.Done[item.index()]; d.Ordinal < r.next {
				err = w.done(r, d)
			} else {
				late = append(late, d)
			}
		case workFound:
			before := w.result
			err = w.found(r, &b.Found[item.index()])
			if b.InsertResults != nil {
				b.InsertResults[item.index()] = w.insertResult(&before)
			}
		case workRefused:
			w.refuse(b.Refused[item.index()].Reason, b.Refused[item.index()].URL)
		case workUpdate:
			err = w.update(r, &b.Hosts[item.index()])
		case workPayload:
			err = w.payload(r, &b.Payloads[item.index()])
		case workPurge:
			purges = append(purges, &b.Purges[item.index()])
		}
		if err != nil {
			return err
		}
	}
	for _, d := range late {
		if err := w.done(r, d); err != nil {
			return err
		}
	}
	for _, p := range purges {
		if err := w.purge(r, p); err != nil {
			return err
		}
	}
	return nil
}

// update stores what the frontier knows of the host.
func (w *writer) update(r *hostRow, u *HostUpdate) error {
	if len(u.Politeness) > 255 {
		return fmt.Errorf("politeness state of %d bytes", len(u.Politeness))
	}
	if len(u.Site) > 255 {
		return fmt.Errorf("recrawl memory of %d bytes", len(u.Site))
	}
	if len(u.Wall) > 255 {
		return fmt.Errorf("state of a wall of %d bytes", len(u.Wall))
	}
	if u.Politeness != nil {
		r.politeness = u.Politeness
	}
	if u.Site != nil {
		r.site = u.Site
	}
	if u.Wall != nil {
		r.wall = u.Wall
	}
	r.requests += u.Requests
	r.bytes += u.Bytes
	w.counters.Requests += uint64(u.Requests)
	w.counters.Bytes += u.Bytes
	for _, c := range u.Cursors {
		if int(c.Origin) >= len(r.origins) || c.Next > r.next {
			return fmt.Errorf("cursor %d of origin %d is beyond the host's %d URLs", c.Next, c.Origin, r.next)
		}
		r.origins[c.Origin].cursor = c.Next
	}
	return nil
}
