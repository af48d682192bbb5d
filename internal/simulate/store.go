package main

import (
	"cmp"
	"slices"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// memory is a store for as many pages as fit into memory. Each host has one origin.
type memory struct {
	hosts    []*memoryHost // by id, from 1
	ids      map[string]storage.HostID
	policies map[weburl.Origin][]byte
}

type memoryHost struct {
	storage.Host
	urls []storage.Head
}

func newMemory() *memory {
	return &memory{hosts: make([]*memoryHost, 1), ids: map[string]storage.HostID{}, policies: map[weburl.Origin][]byte{}}
}

// commit does what storage.Store does with what a crawl of known pages brings.
func (m *memory) commit(b *storage.Batch) storage.Result {
	touched := map[storage.HostID]bool{}
	for i := range b.Found {
		f := &b.Found[i]
		id, ok := m.ids[f.URL.Host()]
		if !ok {
			id = storage.HostID(len(m.hosts))
			m.ids[f.URL.Host()] = id
			m.hosts = append(m.hosts, &memoryHost{Host: storage.Host{ID: id, Name: f.URL.Host(), Queues: []storage.Queue{{Origin: f.URL.Origin()}}}})
		}
		h := m.hosts[id]
		h.urls = append(h.urls, storage.Head{Entry: storage.Entry{Ordinal: h.Tail, RequestURI: f.URL.RequestURI(), Priority: f.Priority}})
		h.Tail++
		touched[id] = true
	}
	for i := range b.Done {
		d := &b.Done[i]
		h := m.hosts[d.Host]
		h.urls[d.Ordinal].Last = d.Outcome
		touched[d.Host] = true
	}
	for i := range b.Hosts {
		u := &b.Hosts[i]
		h := m.hosts[u.Host]
		h.Politeness, h.Site = u.Politeness, u.Site
		h.Queues[0].Cursor = u.Cursors[0].Next
		touched[u.Host] = true
	}
	for _, p := range b.Policies {
		m.policies[p.Origin] = p.Record
	}
	var r storage.Result
	for id := range touched {
		h := m.hosts[id]
		h.count()
		t := storage.Touched{Host: id, Tail: h.Tail}
		t.Queued, t.Due, t.NextDue = h.Waiting()
		t.Renewals, t.NextRenewal = h.Renewing()
		r.Touched = append(r.Touched, t)
	}
	slices.SortFunc(r.Touched, func(a, b storage.Touched) int { return cmp.Compare(a.Host, b.Host) })
	return r
}

// when is the second of a URL's turn; 0: it has none to come.
func when(u *storage.Head) uint32 {
	switch {
	case u.Last.State == storage.Queued && u.Priority != 0:
		return 1
	case u.Last.Due.IsZero():
		return 0
	}
	s := u.Last.Due.Unix()
	if u.Last.Due.Nanosecond() > 0 {
		s++
	}
	return uint32(s)
}

// renews reports whether a URL's turn is a renewal.
func renews(u *storage.Head) bool {
	return u.Last.State != storage.Queued && u.Last.State != storage.Retrying
}

func (h *memoryHost) count() {
	q := &h.Queues[0]
	*q = storage.Queue{Origin: q.Origin, Cursor: q.Cursor}
	add := func(n, first *uint32, at uint32) {
		if *n++; *first == 0 || at < *first {
			*first = at
		}
	}
	for i := range h.urls {
		u := &h.urls[i]
		switch at := when(u); {
		case u.Last.State == storage.Queued && at == 0:
			q.Queued++
		case at != 0 && renews(u):
			add(&q.Renewals, &q.NextRenewal, at)
		case at != 0:
			add(&q.Due, &q.NextDue, at)
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
		if u := h.urls[heads.Next]; u.Last.State == storage.Queued && u.Priority == 0 {
			heads.Queued = append(heads.Queued, u)
		}
	}
	for i := range h.urls {
		u := &h.urls[i]
		switch at := when(u); {
		case at == 0 || int64(at) > r.Now.Unix():
		case renews(u):
			heads.Renewals = append(heads.Renewals, *u)
		default:
			heads.Due = append(heads.Due, *u)
		}
	}
	slices.SortStableFunc(heads.Due, func(a, b storage.Head) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(when(&a), when(&b)))
	})
	slices.SortStableFunc(heads.Renewals, func(a, b storage.Head) int { return cmp.Compare(when(&a), when(&b)) })
	heads.Due = heads.Due[:min(len(heads.Due), r.Due)]
	heads.Renewals = heads.Renewals[:min(len(heads.Renewals), r.Renewals)]
	return heads
}
