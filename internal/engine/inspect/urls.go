package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// URLQuery selects URLs. The zero value selects all.
type URLQuery struct {
	Host   string          // canonical name; empty: all hosts
	State  *storage.State  // nil: all states
	Reason *storage.Reason // nil: all reasons
	Status int             // of the last response; 0: any, or none
	// Contains is a part of the URL.
	Contains string
	PagesOf
	From  storage.Position // where an earlier query ended
	Limit int              // 0: no limit
	// Examine bounds how many URLs are inspected, whether they match or not; 0: no bound.
	Examine int
}

// Filter sets the state and the reason by their names; an empty name selects all.
func (q *URLQuery) Filter(state, reason string) error {
	if state != "" {
		s, err := storage.ParseState(state)
		if err != nil {
			return err
		}
		q.State = &s
	}
	if reason != "" {
		r, err := ParseReason(reason)
		if err != nil {
			return err
		}
		q.Reason = &r
	}
	return nil
}

// PagesOf selects URLs by the seed that they belong to. The zero value selects all.
type PagesOf struct {
	Seed weburl.URL // whose pages; zero: all
	Tag  string     // of the seed of the page; empty: any, or none
}

// OfSeed sets the seed, by its URL or host as it was given, and the tag; empty texts select all.
func (p *PagesOf) OfSeed(seed, tag string) (err error) {
	if p.Tag = tag; seed == "" {
		return nil
	}
	if p.Seed, _, err = seeds.ParseURL(seed); err != nil {
		err = fmt.Errorf("the seed %.80q %w", seed, err)
	}
	return err
}

// IsAll reports whether it selects all.
func (p *PagesOf) IsAll() bool { return *p == (PagesOf{}) }

// Selects reports whether a URL is selected. set is not used by the zero value.
func (p *PagesOf) Selects(set *seeds.Set, l *storage.Located) bool {
	if p.IsAll() {
		return true
	}
	m := set.Of(l.URL(), seeds.Ref(l.From))
	return m != nil && (p.Seed.IsZero() || m.Root == p.Seed) && (p.Tag == "" || slices.Contains(m.Tags, p.Tag))
}

// Seeds returns what Selects needs: the seeds in force, which get returns, nil if they cannot be read; nil: nothing.
// The error is ErrUnknown if the seed is none of them.
func (p *PagesOf) Seeds(get func() *seeds.Set) (set *seeds.Set, err error) {
	if p.IsAll() {
		return nil, nil
	}
	if get != nil {
		set = get()
	}
	if set == nil {
		return nil, errors.New("the seeds of the crawl cannot be read")
	}
	if m := set.Get(p.Seed); !p.Seed.IsZero() && (m == nil || m.Root != p.Seed) {
		return nil, fmt.Errorf("seed %s: %w", p.Seed, ErrUnknown)
	}
	return set, nil
}

// ErrUnknown reports that a host or URL is not known.
var ErrUnknown = errors.New("not in the database")

// URLs calls each for the URLs that match a query, host by host in the order of discovery. It
// returns the position to continue from if the limit ended it, and nil if there are no more. The
// URL is valid only during the call.
func (v *records) URLs(ctx context.Context, q URLQuery, each func(*URL) error) (*storage.Position, error) {
	only := storage.NoHost
	if q.Host != "" {
		h, err := v.host(q.Host)
		if err != nil {
			return nil, err
		}
		only = h.ID
		if q.From.Host < only {
			q.From = storage.Position{Host: only}
		}
	}
	set, err := q.Seeds(v.o.Seeds)
	if err != nil {
		return nil, err
	}
	w := walk{view: v, query: q, only: only, each: each, via: make(map[source]string), seeds: set}
	var states storage.States
	if q.State != nil {
		states = storage.In(*q.State)
	}
	_, err = v.store.Walk(ctx, q.From, states, w.take)
	return w.next, err
}

// CanonicalHost returns the name of a host as in the store, made from one that a person wrote.
func CanonicalHost(name string) string {
	if u, err := weburl.Parse("http://" + name + "/"); err == nil {
		return u.Host()
	}
	return name
}

// KnowsHost returns nil if a host is in the store, by a name that a person wrote; otherwise
// ErrUnknown.
func (v *records) KnowsHost(name string) error {
	_, err := v.host(name)
	return err
}

// KnowsSeed returns nil if there is the seed of a query; otherwise ErrUnknown.
func (v *records) KnowsSeed(q URLQuery) error {
	_, err := q.Seeds(v.o.Seeds)
	return err
}

// host returns a host by a name that a person wrote.
func (v *records) host(name string) (storage.Host, error) {
	h, err := v.store.HostByName(CanonicalHost(name))
	if errors.Is(err, storage.ErrNotFound) {
		return h, fmt.Errorf("host %s: %w", name, ErrUnknown)
	}
	return h, err
}

// walk is one query under way.
type walk struct {
	view  *records
	query URLQuery
	only  storage.HostID
	each  func(*URL) error
	taken int
	seen  int
	next  *storage.Position
	via   map[source]string // texts looked up recently
	seeds *seeds.Set        // nil: the query does not need them
}

// source is the store's key of a page on which others were found.
type source struct {
	host    storage.HostID
	ordinal uint32
}

// maxVia bounds the texts that are kept; URLs of one page follow each other.
const maxVia = 1024

// passedCost is how many hosts can be passed over in the time of inspecting a URL.
const passedCost = 8

// selects reports whether a query selects a URL, as far as its host does not decide.
func (q *URLQuery) selects(l *storage.Located) bool {
	return (q.State == nil || l.Last.State == *q.State) && (q.Reason == nil || l.Last.Reason == *q.Reason) &&
		(q.Status == 0 || int(l.Last.Status) == q.Status) &&
		(q.Contains == "" || strings.Contains(l.URL().String(), q.Contains))
}

func (w *walk) take(l *storage.Located) error {
	switch {
	case l.Host == nil && (w.only == storage.NoHost || l.At.Host <= w.only):
		if w.seen += storage.WalkPassed / passedCost; w.query.Examine > 0 && w.seen >= w.query.Examine {
			w.next = &l.At
			return storage.ErrStop
		}
		return nil
	case l.Host == nil:
		return storage.ErrStop
	case w.only != storage.NoHost && l.Host.ID != w.only:
		return storage.ErrStop
	case w.query.Examine > 0 && w.seen >= w.query.Examine:
		w.next = &l.At
		return storage.ErrStop
	}
	w.seen++
	switch {
	case !w.query.selects(l) || !w.query.PagesOf.Selects(w.seeds, l):
		return nil
	case w.query.Limit > 0 && w.taken >= w.query.Limit:
		w.next = &l.At
		return storage.ErrStop
	}
	w.taken++
	u := newURL(l.URL().String(), &l.Head)
	u.Position, u.Metadata = l.At.String(), l.Metadata
	var err error
	if u.Via, err = w.viaOf(&l.Entry); err != nil {
		return err
	}
	return w.each(&u)
}

func (w *walk) viaOf(e *storage.Entry) (string, error) {
	if e.ViaHost == storage.NoHost {
		return "", nil
	}
	from := source{e.ViaHost, e.ViaOrdinal}
	if text, ok := w.via[from]; ok {
		return text, nil
	}
	u, err := w.view.store.URL(e.ViaHost, e.ViaOrdinal)
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil // the page was deleted
	}
	if err != nil {
		return "", err
	}
	if len(w.via) >= maxVia {
		clear(w.via)
	}
	w.via[from] = u.String()
	return u.String(), nil
}
