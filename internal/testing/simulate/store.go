package main

import (
	"cmp"
	"slices"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// memory is a store in memory. Each host has one origin.
type memory struct {
	hosts    []*memoryHost // by id, from 1
	ids      map[string]storage.HostID
	policies map[weburl.Origin][]byte
}

type memoryHost struct {
	storage.Host
	urls  []storage.Head
	turns []turn // of urls
}

// turn is when a URL is due.
type turn struct {
	at      uint32 // Unix seconds; 0: never
	queued  bool   // it waits in the queue, after the cursor
	recrawl bool   // it is a recrawl
}

func turnOf(u *storage.Head) turn {
	switch {
	case u.Last.State == storage.Queued && u.Priority == 0:
		return turn{queued: true}
	case u.Last.State == storage.Queued:
		return turn{at: 1}
	case u.Last.Due.IsZero():
		return turn{}
	}
	s := u.Last.Due.Unix()
	if u.Last.Due.Nanosecond() > 0 {
		s++
	}
	return turn{at: uint32(s), recrawl: u.Last.State != storage.Retrying}
}

func newMemory() *memory {
	return &memory{hosts: make([]*memoryHost, 1), ids: map[string]storage.HostID{},
		policies: map[weburl.Origin][]byte{}}
}

// commit does what storage.Store does with the batches of a crawl of known pages.
func (m *memory) commit(b *storage.Batch) storage.Result {
	changed := map[storage.HostID]bool{}
	for i := range b.Found {
		f := &b.Found[i]
		id, ok := m.ids[f.URL.Host()]
		if !ok {
			id = storage.HostID(len(m.hosts))
			m.ids[f.URL.Host()] = id
			m.hosts = append(m.hosts,
				&memoryHost{Host: storage.Host{ID: id, Name: f.URL.Host(),
					Queues: []storage.Queue{{Origin: f.URL.Origin()}}}})
		}
		h := m.hosts[id]
		h.urls = append(h.urls, storage.Head{Entry: storage.Entry{Ordinal: h.Tail, RequestURI: f.URL.RequestURI(),
			Priority: f.Priority}})
		h.turns = append(h.turns, turnOf(&h.urls[h.Tail]))
		h.Tail++
		changed[id] = true
	}
	for i := range b.Done {
		d := &b.Done[i]
		h := m.hosts[d.Host]
		h.urls[d.Ordinal].Last = d.Outcome
		h.turns[d.Ordinal] = turnOf(&h.urls[d.Ordinal])
		changed[d.Host] = true
	}
	for i := range b.Hosts {
		u := &b.Hosts[i]
		h := m.hosts[u.Host]
		h.Politeness, h.Site = u.Politeness, u.Site
		h.Queues[0].Cursor = u.Cursors[0].Next
		changed[u.Host] = true
	}
	for _, p := range b.Policies {
		m.policies[p.Origin] = p.Record
	}
	var r storage.Result
	for id := range changed {
		h := m.hosts[id]
		h.count()
		r.Hosts = append(r.Hosts, storage.HostChange{Host: id, Tail: h.Tail, Backlog: h.Backlog()})
	}
	slices.SortFunc(r.Hosts, func(a, b storage.HostChange) int { return cmp.Compare(a.Host, b.Host) })
	return r
}

func (h *memoryHost) count() {
	q := &h.Queues[0]
	*q = storage.Queue{Origin: q.Origin, Cursor: q.Cursor}
	add := func(n, first *uint32, at uint32) {
		if *n++; *first == 0 || at < *first {
			*first = at
		}
	}
	for _, t := range h.turns {
		switch {
		case t.queued:
			q.Queued++
		case t.at == 0:
		case t.recrawl:
			add(&q.Recrawls, &q.NextRecrawl, t.at)
		default:
			add(&q.Due, &q.NextDue, t.at)
		}
	}
}

func (m *memory) host(id storage.HostID) storage.Host {
	h := m.hosts[id].Host
	h.Queues = slices.Clone(h.Queues)
	return h
}

func (m *memory) heads(r storage.HeadsRequest) storage.Heads {
	h := m.hosts[r.Host]
	heads := storage.Heads{Next: r.From, Tail: h.Tail}
	for ; heads.Next < h.Tail && len(heads.Queued) < r.Queued; heads.Next++ {
		if h.turns[heads.Next].queued {
			heads.Queued = append(heads.Queued, h.urls[heads.Next])
		}
	}
	var due, recrawls []int
	for i, t := range h.turns {
		switch {
		case t.at == 0 || int64(t.at) > r.Now.Unix():
		case t.recrawl:
			recrawls = append(recrawls, i)
		default:
			due = append(due, i)
		}
	}
	slices.SortStableFunc(due, func(a, b int) int {
		return cmp.Or(cmp.Compare(h.urls[b].Priority, h.urls[a].Priority), cmp.Compare(h.turns[a].at, h.turns[b].at))
	})
	slices.SortStableFunc(recrawls, func(a, b int) int { return cmp.Compare(h.turns[a].at, h.turns[b].at) })
	for _, i := range due[:min(len(due), r.Due)] {
		heads.Due = append(heads.Due, h.urls[i])
	}
	for _, i := range recrawls[:min(len(recrawls), r.Recrawls)] {
		heads.Recrawls = append(heads.Recrawls, h.urls[i])
	}
	return heads
}
