package storage

import (
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
)

// modelTraps is what a model's host knows in order to refuse URLs.
type modelTraps struct {
	sessions map[string]bool // the texts without session ids
	copies   map[uint32]bool // pages of this batch with the content of others
	queries  modelTally
	digests  modelTally
	traps    []TrapCount
}

func newModelTraps() modelTraps {
	return modelTraps{sessions: make(map[string]bool), copies: make(map[uint32]bool), queries: make(modelTally), digests: make(modelTally)}
}

// modelTally counts as a tally does, by the keys themselves.
type modelTally map[any]uint32

func (t modelTally) add(key any, keys int) {
	if _, there := t[key]; there || len(t) < keys {
		t[key]++
		return
	}
	for other := range t {
		if t[other]--; t[other] == 0 {
			delete(t, other)
		}
	}
}

func (m *modelTraps) content(d *Done, before State, l limits) {
	o := &d.Outcome
	if l.sameDigest == 0 || o.State != Fetched || o.Digest == 0 || before != Queued {
		return
	}
	if m.digests[o.Digest] >= l.sameDigest {
		m.copies[d.Ordinal] = true
	}
	m.digests.add(o.Digest, 8)
}

// trapped says which trap a new URL belongs to, and counts its query if to none.
func (h *modelHost) trapped(id HostID, f *Found, l limits) Trap {
	path, _, hasQuery := strings.Cut(f.URL.String(), "?")
	switch {
	case l.hostURLs > 0 && len(h.urls) >= int(l.hostURLs):
		return TrapHostURLs
	case !f.Seed && f.ViaHost == id && h.copies[f.ViaOrdinal]:
		return TrapSameContent
	case l.queries == 0 || !hasQuery:
		return 0
	case !f.Seed && h.queries[path] >= l.queries:
		return TrapQueries
	}
	h.queries.add(path, 16)
	return 0
}

func (m *modelTraps) refuse(reason Trap, u weburl.URL, r *Result) {
	r.Trapped++
	i := slices.IndexFunc(m.traps, func(c TrapCount) bool { return c.Reason == reason })
	if i < 0 {
		i = len(m.traps)
		m.traps = append(m.traps, TrapCount{Reason: reason})
	}
	c := &m.traps[i]
	c.Count++
	text := u.String()
	if len(text) > 512 {
		text = text[:512]
	}
	if len(c.Samples) < 3 && !slices.Contains(c.Samples, text) {
		c.Samples = append(c.Samples, text)
	}
	slices.SortFunc(m.traps, func(a, b TrapCount) int { return int(a.Reason) - int(b.Reason) })
}

// age forgets what a file of version 1 did not have.
func (m *model) age() {
	for _, h := range m.hosts {
		h.plain, h.site, h.errors = uint32(len(h.urls)), "", nil
		for i := range h.urls {
			if last := &h.urls[i].Last; last.State != Retrying {
				last.Due = time.Time{}
			}
		}
		clear(h.cursors)
		clear(h.queries)
		clear(h.digests)
		h.traps = nil
		clear(h.payloads)
	}
}
