package storage

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// model is what a store should hold, in plain maps.
type model struct {
	names    []string // by id, from 1
	hosts    []*modelHost
	ids      map[string]HostID
	policies map[weburl.Origin]string
	seeds    map[string]string
	marks    map[string]string
	limits   Limits
}

type modelHost struct {
	name       string
	origins    []weburl.Origin
	cursors    []uint32
	urls       []Head            // by ordinal, also those that are deleted
	first      uint32            // ordinals below it are deleted
	metadata   map[uint32]string // encoded
	known      map[string]bool
	requests   uint32
	bytes      uint64
	politeness string
	site       string
	wall       string
	errors     map[Reason]uint32
	payloads   map[uint64]Payload
	older      map[uint64]bool // digests whose last payload was deleted: one before it may be there
	plain      uint32          // ordinals below it came in version 1
	putDue     uint32          // see HostChange.PutDue; of the batch at hand
	modelTraps
}

func newModel() *model {
	return &model{ids: make(map[string]HostID), policies: make(map[weburl.Origin]string),
		seeds: make(map[string]string), marks: make(map[string]string)}
}

func newModelHost(name string) *modelHost {
	return &modelHost{name: name, known: make(map[string]bool), payloads: make(map[uint64]Payload),
		older: make(map[uint64]bool), metadata: make(map[uint32]string), modelTraps: newModelTraps()}
}

func (m *model) id(name string) HostID {
	if id, ok := m.ids[name]; ok {
		return id
	}
	m.names = append(m.names, name)
	m.hosts = append(m.hosts, newModelHost(name))
	m.ids[name] = HostID(len(m.names))
	return m.ids[name]
}

func (m *model) apply(b *Batch) Result {
	var r Result
	changed := make(map[HostID]bool)
	for i := range b.Found {
		f := &b.Found[i]
		changed[m.id(f.URL.Host())] = true
	}
	for _, h := range m.hosts {
		clear(h.copies)
	}
	for i := range b.Done {
		d := &b.Done[i]
		changed[d.Host] = true
		m.hosts[d.Host-1].settle(d, m.limits)
	}
	for i := range b.Found {
		id := m.id(b.Found[i].URL.Host())
		m.hosts[id-1].found(id, &b.Found[i], m.limits, &r)
	}
	for _, refused := range b.Refused {
		if id, ok := m.ids[refused.Host]; ok {
			changed[id] = true
			m.hosts[id-1].refuse(refused.Reason, refused.URL, &r)
		}
	}
	for i := range b.Hosts {
		changed[b.Hosts[i].Host] = true
		m.hosts[b.Hosts[i].Host-1].update(&b.Hosts[i])
	}
	for _, p := range b.Payloads {
		changed[p.Host] = true
		if h := m.hosts[p.Host-1]; p.Ordinal >= h.first {
			h.payloads[p.Digest] = p
			delete(h.older, p.Digest)
		}
	}
	for i := range b.Purges {
		changed[b.Purges[i].Host] = true
		m.hosts[b.Purges[i].Host-1].purge(&b.Purges[i])
	}
	for _, name := range b.Ensure {
		if r.Ensured == nil {
			r.Ensured = make(map[string]HostID)
		}
		r.Ensured[name] = m.id(name)
	}
	for _, p := range b.Policies {
		m.policies[p.Origin] = string(p.Record)
	}
	for _, seed := range b.Seeds {
		if m.seeds[seed.URL] = string(seed.Value); seed.Value == nil {
			delete(m.seeds, seed.URL)
		}
	}
	for name, mark := range b.Marks {
		if m.marks[name] = string(mark); mark == nil {
			delete(m.marks, name)
		}
	}
	for id := range changed {
		h := m.hosts[id-1].host(id)
		t := HostChange{Host: id, Tail: h.Tail, Backlog: h.Backlog()}
		t.URLs, t.Completed, t.Waiting, t.PutDue = h.URLs(), h.Completed(), h.Waiting(), m.hosts[id-1].putDue
		m.hosts[id-1].putDue = 0
		r.Hosts = append(r.Hosts, t)
	}
	return r
}

func (h *modelHost) settle(d *Done, l Limits) {
	u := &h.urls[d.Ordinal]
	if d.Ordinal < h.first || d.When != 0 && d.When&(1<<u.Last.State) == 0 {
		return
	}
	h.content(d, u.Last.State, l)
	errors := []Reason{ReasonStatus, ReasonRedirects, ReasonLocation, ReasonLoop, ReasonCrash, ReasonWall,
		ReasonLeaseLost}
	why, state := d.Outcome.Reason, d.Outcome.State
	if (state == Failed || state == Retrying) && (slices.Contains(errors, why) || why >= ReasonFetch) {
		if h.errors == nil {
			h.errors = make(map[Reason]uint32)
		}
		h.errors[why]++
	}
	u.Last = d.Outcome
}

func (h *modelHost) found(id HostID, f *Found, l Limits, r *Result) {
	origin := slices.Index(h.origins, f.URL.Origin())
	if origin < 0 && len(h.origins) == 32 {
		r.Refused++
		return
	}
	if h.known[f.URL.String()] {
		for i := range h.live() {
			if u := &h.live()[i]; h.origins[u.Origin].URL(u.RequestURI) == f.URL && f.Outcome != nil {
				r.Set = append(r.Set, Position{id, u.Ordinal})
				h.set(u, f, l)
			}
		}
		return
	}
	stripped := f.URL.Origin().String() + f.Stripped
	if f.Stripped != "" && h.sessions[stripped] && f.Redirects == 0 {
		h.refuse(TrapSession, f.URL, r)
		return
	}
	if trap := h.trapped(id, f, l); trap != 0 {
		h.refuse(trap, f.URL, r)
		return
	}
	if origin < 0 {
		origin = len(h.origins)
		h.origins, h.cursors = append(h.origins, f.URL.Origin()), append(h.cursors, 0)
	}
	h.known[f.URL.String()] = true
	e := Entry{
		Ordinal: uint32(len(h.urls)), Origin: uint8(origin), RequestURI: f.URL.RequestURI(), Depth: f.Depth,
		Redirects: f.Redirects,
		Seed:      f.Seed, Sitemap: f.Sitemap, Frequency: f.Frequency, Priority: f.Priority, ViaHost: f.ViaHost,
		ViaOrdinal: f.ViaOrdinal, FirstSeen: f.At, From: f.From,
	}
	if f.Redirects == 0 {
		e.Stripped = f.Stripped
	}
	h.sessions[f.URL.Origin().String()+e.identity()] = true
	h.urls = append(h.urls, Head{Entry: e})
	r.Added++
	if f.Outcome != nil {
		h.set(&h.urls[e.Ordinal], f, l)
	} else if len(f.Metadata) > 0 {
		h.metadata[e.Ordinal] = string(f.Metadata)
	}
}

// set gives a URL the outcome and the metadata of a Found.
func (h *modelHost) set(u *Head, f *Found, l Limits) {
	o, last := *f.Outcome, &u.Last
	o.Status, o.Bytes, o.Digest, o.ETag, o.Modified = last.Status, last.Bytes, last.Digest, last.ETag, last.Modified
	o.History, o.Simhash, o.Usage = last.History, last.Simhash, last.Usage
	h.settle(&Done{Ordinal: u.Ordinal, Outcome: o}, l)
	if due := secondsUp(o.Due); o.State == Retrying && due != 0 && (h.putDue == 0 || due < h.putDue) {
		h.putDue = due
	}
	if h.metadata[u.Ordinal] = string(f.Metadata); len(f.Metadata) == 0 {
		delete(h.metadata, u.Ordinal)
	}
}

// live returns the URLs that are not deleted.
func (h *modelHost) live() []Head { return h.urls[h.first:] }

func (h *modelHost) purge(p *Purge) {
	below := min(p.Below, uint32(len(h.urls)))
	if below <= h.first {
		return
	}
	h.first = below
	clear(h.known)
	clear(h.sessions)
	for _, u := range h.live() {
		h.known[h.origins[u.Origin].URL(u.RequestURI).String()] = true
		h.sessions[h.origins[u.Origin].String()+u.identity()] = true
	}
	for digest, p := range h.payloads {
		if p.Ordinal < below {
			delete(h.payloads, digest)
			h.older[digest] = true
		}
	}
	maps.DeleteFunc(h.metadata, func(n uint32, _ string) bool { return n < below })
	if len(h.live()) == 0 {
		clear(h.queries)
		clear(h.digests)
		h.errors, h.traps = nil, nil
	}
}

func (h *modelHost) update(u *HostUpdate) {
	if u.Site != nil {
		h.site = string(u.Site)
	}
	if u.Wall != nil {
		h.wall = string(u.Wall)
	}
	if u.Politeness != nil {
		h.politeness = string(u.Politeness)
	}
	h.requests += u.Requests
	h.bytes += u.Bytes
	for _, c := range u.Cursors {
		h.cursors[c.Origin] = c.Next
	}
}

// firstQueued returns the first queued ordinal of an origin, which its cursor must not pass.
func (h *modelHost) firstQueued(origin uint8) uint32 {
	i := slices.IndexFunc(h.urls, func(u Head) bool {
		return u.Ordinal >= h.first && u.Origin == origin && u.Last.State == Queued && !h.prioritized(&u)
	})
	if i < 0 {
		return uint32(len(h.urls))
	}
	return uint32(i)
}

// host returns the Host that the store should return.
func (h *modelHost) host(id HostID) Host {
	host := Host{ID: id, Name: h.name, First: h.first, Tail: uint32(len(h.urls)), Requests: h.requests, Bytes: h.bytes,
		Queues: make([]Queue, len(h.origins))}
	if h.politeness != "" {
		host.Politeness = []byte(h.politeness)
	}
	if h.site != "" {
		host.Site = []byte(h.site)
	}
	if h.wall != "" {
		host.Wall = []byte(h.wall)
	}
	for _, why := range slices.Sorted(maps.Keys(h.errors)) {
		host.Errors = append(host.Errors, ErrorCount{why, h.errors[why]})
	}
	for i, o := range h.origins {
		host.Queues[i] = Queue{Origin: o, Cursor: h.cursors[i]}
	}
	for _, u := range h.live() {
		host.Counts[u.Last.State]++
		if u.Priority == PriorityRequisite {
			host.Requisites[u.Last.State]++
		}
		q := &host.Queues[u.Origin]
		if u.Last.State == Queued && !h.prioritized(&u) {
			q.Queued++
		}
		if due := h.due(&u); due != 0 {
			q.Due++
			if q.NextDue == 0 || due < q.NextDue {
				q.NextDue = due
			}
		}
		if at := u.recrawl(); at != 0 {
			q.Recrawls++
			if q.NextRecrawl == 0 || at < q.NextRecrawl {
				q.NextRecrawl = at
			}
		}
	}
	return host
}

// prioritized reports whether a URL, while it is queued, is not behind the cursor.
func (h *modelHost) prioritized(u *Head) bool { return u.Priority != 0 && u.Ordinal >= h.plain }

// due returns the time in the URL's due row, 0 if it has none.
func (h *modelHost) due(u *Head) uint32 {
	switch {
	case u.Last.State == Queued && h.prioritized(u):
		return 1
	case u.Last.Due.IsZero() || u.Last.State != Retrying:
		return 0
	}
	return uint32(u.Last.Due.Unix())
}

// recrawl returns the time in the URL's recrawl row, 0 if it has none.
func (u *Head) recrawl() uint32 {
	if u.Last.Due.IsZero() || u.Last.State == Retrying {
		return 0
	}
	return uint32(u.Last.Due.Unix())
}

// heads returns the Heads that the store should return.
func (h *modelHost) heads(q HeadsRequest) Heads {
	q.From = max(q.From, h.first)
	all := Heads{Next: q.From, Tail: uint32(len(h.urls))}
	for ; all.Next < all.Tail && len(all.Queued) < q.Queued; all.Next++ {
		if u := h.urls[all.Next]; u.Origin == q.Origin && u.Last.State == Queued && !h.prioritized(&u) {
			all.Queued = append(all.Queued, u)
		}
	}
	for _, u := range h.live() {
		if due := h.due(&u); u.Origin == q.Origin && due != 0 && due <= uint32(q.Now.Unix()) {
			all.Due = append(all.Due, u)
		}
	}
	slices.SortStableFunc(all.Due, func(a, b Head) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(h.due(&a), h.due(&b)))
	})
	all.Due = all.Due[:min(len(all.Due), q.Due)]
	for _, u := range h.live() {
		if at := u.recrawl(); u.Origin == q.Origin && at != 0 && at <= uint32(q.Now.Unix()) {
			all.Recrawls = append(all.Recrawls, u)
		}
	}
	slices.SortStableFunc(all.Recrawls, func(a, b Head) int { return cmp.Compare(a.recrawl(), b.recrawl()) })
	all.Recrawls = all.Recrawls[:min(len(all.Recrawls), q.Recrawls)]
	return all
}

// counters returns the Counters that the store should have.
func (m *model) counters() Counters {
	c := Counters{Hosts: uint64(len(m.hosts)), Policies: uint64(len(m.policies))}
	for _, h := range m.hosts {
		c.URLs += uint64(len(h.live()))
		c.Requests += uint64(h.requests)
		c.Bytes += h.bytes
		for _, u := range h.live() {
			c.States[u.Last.State]++
			if u.Priority == PriorityRequisite {
				c.Requisites[u.Last.State]++
			}
		}
	}
	return c
}

// modelTraps is what a model's host knows in order to refuse URLs.
type modelTraps struct {
	sessions map[string]bool // the texts without session ids
	copies   map[uint32]bool // pages of this batch with the content of others
	queries  modelTally
	digests  modelTally
	traps    []TrapCount
}

func newModelTraps() modelTraps {
	return modelTraps{sessions: make(map[string]bool), copies: make(map[uint32]bool), queries: make(modelTally),
		digests: make(modelTally)}
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

func (m *modelTraps) content(d *Done, before State, l Limits) {
	o := &d.Outcome
	if l.SameDigest == 0 || o.State != Fetched || o.Digest == 0 || before != Queued {
		return
	}
	if m.digests[o.Digest] >= l.SameDigest {
		m.copies[d.Ordinal] = true
	}
	m.digests.add(o.Digest, 8)
}

// trapped returns the trap that a new URL leads into. If there is none, it counts the URL's query.
func (h *modelHost) trapped(id HostID, f *Found, l Limits) Trap {
	path, _, hasQuery := strings.Cut(f.URL.String(), "?")
	switch {
	case l.HostURLs > 0 && len(h.live()) >= int(l.HostURLs):
		return TrapHostURLs
	case !f.Seed && f.ViaHost == id && h.copies[f.ViaOrdinal]:
		return TrapSameContent
	case l.Queries == 0 || !hasQuery:
		return 0
	case !f.Seed && h.queries[path] >= l.Queries:
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

// age removes what a file of version 1 did not have.
func (m *model) age() {
	for _, h := range m.hosts {
		h.plain, h.site, h.wall, h.errors = uint32(len(h.urls)), "", "", nil
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
		clear(h.metadata)
	}
}

// isNewer reports whether URLs were deleted, or are requisites, which no file of version 1 can say.
func (m *model) isNewer() bool {
	return slices.ContainsFunc(m.hosts, func(h *modelHost) bool {
		return h.first > 0 || h.host(0).Requisites != [numStates]uint32{}
	})
}
