package frontier

import (
	"cmp"
	"slices"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// memory is a store without a disk. It keeps the URLs it is given, or makes up as many as it is
// told for hosts that are to have very many.
type memory struct {
	hosts    []*memoryHost // by id, from 1
	ids      map[string]storage.HostID
	policies map[weburl.Origin][]byte
}

type memoryHost struct {
	storage.Host
	made   bool // URLs are made up from their ordinals
	urls   []storage.Entry
	states []storage.State
	last   map[uint32]storage.Outcome // of URLs with a due time; of made up hosts no others
}

func newMemory() *memory {
	return &memory{hosts: make([]*memoryHost, 1), ids: map[string]storage.HostID{},
		policies: map[weburl.Origin][]byte{}}
}

func (m *memory) Fingerprint(weburl.URL) uint64 { return 0 }

func (m *memory) idOf(name string) storage.HostID {
	id, ok := m.ids[name]
	if !ok {
		id = storage.HostID(len(m.hosts))
		m.ids[name] = id
		m.hosts = append(m.hosts, &memoryHost{Host: storage.Host{ID: id, Name: name},
			last: map[uint32]storage.Outcome{}})
	}
	return id
}

// queueOf is the only queue of a host, with n URLs.
func queueOf(n uint32) []storage.Queue { return []storage.Queue{{Backlog: storage.Backlog{Queued: n}}} }

// makeUp adds a host with n URLs.
func (m *memory) makeUp(origin weburl.Origin, n int) storage.HostID {
	id := m.idOf(origin.Host)
	h := m.hosts[id]
	h.made, h.Tail, h.states = true, uint32(n), make([]storage.State, n)
	h.Queues = []storage.Queue{{Origin: origin, Backlog: storage.Backlog{Queued: uint32(n)}}}
	return id
}

func (h *memoryHost) entry(ordinal uint32) storage.Entry {
	if h.made {
		return storage.Entry{Ordinal: ordinal, RequestURI: "/page"}
	}
	return h.urls[ordinal]
}

// Commit does what storage.Store does.
func (m *memory) Commit(b *storage.Batch) (storage.Result, error) {
	r := storage.Result{Ensured: map[string]storage.HostID{}}
	changed := map[storage.HostID]bool{}
	for i := range b.Found {
		id := m.idOf(b.Found[i].URL.Host())
		changed[id] = true
		if m.hosts[id].add(&b.Found[i]) {
			r.Added++
		}
	}
	for i := range b.Done {
		changed[b.Done[i].Host] = true
		m.hosts[b.Done[i].Host].done(&b.Done[i])
	}
	for i := range b.Hosts {
		u := &b.Hosts[i]
		h := m.hosts[u.Host]
		changed[u.Host] = true
		h.Politeness, h.Requests = u.Politeness, h.Requests+u.Requests
		if u.Site != nil {
			h.Site = u.Site
		}
		for _, c := range u.Cursors {
			h.Queues[c.Origin].Cursor = c.Next
		}
	}
	for _, p := range b.Policies {
		m.policies[p.Origin] = p.Record
	}
	for _, name := range b.Ensure {
		r.Ensured[name] = m.idOf(name)
	}
	for id := range changed {
		h := m.hosts[id]
		h.schedule()
		r.Hosts = append(r.Hosts, storage.HostChange{Host: id, Tail: h.Tail, Backlog: h.Backlog()})
	}
	slices.SortFunc(r.Hosts, func(a, b storage.HostChange) int { return int(a.Host) - int(b.Host) })
	return r, nil
}

func (h *memoryHost) add(f *storage.Found) bool {
	origin := slices.IndexFunc(h.Queues, func(q storage.Queue) bool { return q.Origin == f.URL.Origin() })
	if origin < 0 {
		origin = len(h.Queues)
		h.Queues = append(h.Queues, storage.Queue{Origin: f.URL.Origin()})
	}
	for _, e := range h.urls {
		if int(e.Origin) == origin && e.RequestURI == f.URL.RequestURI() {
			return false
		}
	}
	h.urls = append(h.urls, storage.Entry{
		Ordinal: h.Tail, Origin: uint8(origin), RequestURI: f.URL.RequestURI(), Depth: f.Depth, Seed: f.Seed,
		Priority: f.Priority, Frequency: f.Frequency,
	})
	h.states = append(h.states, storage.Queued)
	if f.Priority == 0 {
		h.Queues[origin].Queued++
	} else {
		h.last[h.Tail] = storage.Outcome{}
	}
	h.Tail++
	return true
}

func (h *memoryHost) done(d *storage.Done) {
	if h.states[d.Ordinal] == storage.Queued && h.entry(d.Ordinal).Priority == 0 {
		h.Queues[d.Origin].Queued--
	}
	if h.states[d.Ordinal] == storage.Fetched {
		h.Counts[storage.Fetched]--
	}
	h.states[d.Ordinal] = d.Outcome.State
	if d.Outcome.State == storage.Fetched {
		h.Counts[storage.Fetched]++
	}
	if d.Outcome.Due.IsZero() && h.made {
		delete(h.last, d.Ordinal)
	} else {
		h.last[d.Ordinal] = d.Outcome
	}
}

// dueAt is the second in which a URL is due, rounded up as on disk, and that of its recrawl; 0: it
// has none.
func (h *memoryHost) dueAt(ordinal uint32) (due, recrawl uint32) {
	o := h.last[ordinal]
	switch {
	case h.entry(ordinal).Priority != 0 && h.states[ordinal] == storage.Queued:
		return 1, 0
	case o.Due.IsZero():
		return 0, 0
	}
	s := uint32(o.Due.Unix())
	if o.Due.Nanosecond() > 0 {
		s++
	}
	if h.states[ordinal] == storage.Retrying {
		return s, 0
	}
	return 0, s
}

func (h *memoryHost) schedule() {
	for i := range h.Queues {
		q := &h.Queues[i]
		q.Due, q.NextDue, q.Recrawls, q.NextRecrawl = 0, 0, 0, 0
	}
	for ordinal := range h.last {
		q := &h.Queues[h.entry(ordinal).Origin]
		due, recrawl := h.dueAt(ordinal)
		if due > 0 {
			if q.Due++; q.NextDue == 0 || due < q.NextDue {
				q.NextDue = due
			}
		}
		if recrawl > 0 {
			if q.Recrawls++; q.NextRecrawl == 0 || recrawl < q.NextRecrawl {
				q.NextRecrawl = recrawl
			}
		}
	}
}

func (m *memory) HostByID(id storage.HostID) (storage.Host, error) {
	h := m.hosts[id].Host
	h.Queues = slices.Clone(h.Queues)
	return h, nil
}

func (m *memory) Hosts(f func(*storage.Host) error) error {
	for _, h := range m.hosts[1:] {
		host, _ := m.HostByID(h.ID)
		if err := f(&host); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) Policy(o weburl.Origin) ([]byte, error) { return m.policies[o], nil }

// Heads does what storage.Store does.
func (m *memory) Heads(q storage.HeadsRequest) (storage.Heads, error) {
	h := m.hosts[q.Host]
	heads := storage.Heads{Next: q.From, Tail: h.Tail}
	for ; heads.Next < h.Tail && len(heads.Queued) < q.Queued; heads.Next++ {
		if e := h.entry(heads.Next); e.Origin == q.Origin && e.Priority == 0 && h.states[heads.Next] == storage.Queued {
			heads.Queued = append(heads.Queued, storage.Head{Entry: e})
		}
	}
	for ordinal, o := range h.last {
		e := h.entry(ordinal)
		due, recrawl := h.dueAt(ordinal)
		if due > 0 && int64(due) <= q.Now.Unix() && e.Origin == q.Origin {
			heads.Due = append(heads.Due, storage.Head{Entry: e, Last: o})
		}
		if recrawl > 0 && int64(recrawl) <= q.Now.Unix() && e.Origin == q.Origin {
			heads.Recrawls = append(heads.Recrawls, storage.Head{Entry: e, Last: o})
		}
	}
	slices.SortFunc(heads.Recrawls, func(a, b storage.Head) int {
		return cmp.Or(a.Last.Due.Compare(b.Last.Due), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	heads.Recrawls = heads.Recrawls[:min(len(heads.Recrawls), q.Recrawls)]
	slices.SortFunc(heads.Due, func(a, b storage.Head) int {
		byPriority, byDue := cmp.Compare(b.Priority, a.Priority), a.Last.Due.Compare(b.Last.Due)
		return cmp.Or(byPriority, byDue, cmp.Compare(a.Ordinal, b.Ordinal))
	})
	heads.Due = heads.Due[:min(len(heads.Due), q.Due)]
	return heads, nil
}
