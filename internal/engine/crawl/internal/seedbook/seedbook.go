// Package seedbook is the seeds of a crawl as the database has them, and what a change of them comes to.
package seedbook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Store is where the seeds are.
type Store interface {
	Seeds() ([]storage.SeedRow, error)
}

// Read returns all seeds of a store, in the order of their URLs. The errors are those of the store and of seeds.Decode.
func Read(s Store) ([]seeds.Seed, error) {
	rows, err := s.Seeds()
	if err != nil {
		return nil, err
	}
	all := make([]seeds.Seed, len(rows))
	for i := range rows {
		if all[i], err = seeds.Decode(rows[i].URL, rows[i].Value); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Row returns a seed as the database has it.
func Row(s *seeds.Seed) storage.SeedRow {
	return storage.SeedRow{URL: s.URL.String(), Value: s.Encode()}
}

// Update is changes of seeds, and what they make of the seeds that were in force. For thousands of seeds that takes
// longer than the dispatcher may wait.
type Update struct {
	Rows    []storage.SeedRow
	After   *seeds.Set
	Removes bool
	before  *seeds.Set
}

// NewUpdate returns the update of a set by rows, in their order; a row without a value removes its seed. What cannot be
// read is left out: a newer program has written it.
func NewUpdate(before *seeds.Set, rows []storage.SeedRow) *Update {
	add, remove := last(rows)
	return &Update{rows, before.With(add, remove...), len(remove) > 0, before}
}

// IsOf reports whether the update is one of a set.
func (u *Update) IsOf(before *seeds.Set) bool { return u.before == before }

// Of returns the update of another set by the same rows.
func (u *Update) Of(before *seeds.Set) *Update {
	if u.IsOf(before) {
		return u
	}
	return NewUpdate(before, u.Rows)
}

// Led returns the set with where seeds led that is part of them, and those of leads that it has now.
func Led(before *seeds.Set, leads []seeds.Seed) (after *seeds.Set, added []seeds.Seed) {
	after = before.With(leads)
	if after.Sum() == before.Sum() {
		return before, nil
	}
	for i := range leads {
		if m := after.Get(leads[i].URL); m != nil && m.Root == leads[i].Of {
			added = append(added, leads[i])
		}
	}
	return after, added
}

// Plain returns the http forms of the seeds of an origin that were given as hosts, and those of them that are no part
// of their seeds yet.
func Plain(
	set *seeds.Set, origin weburl.Origin, fingerprint func(weburl.URL) uint64, now time.Time,
) (found []storage.Found, leads []seeds.Seed) {
	for _, bare := range set.BareOf(origin) {
		u, is := bare.Plain()
		if !is {
			continue
		}
		m := set.Get(bare.URL)
		if set.Widens(m, u) {
			leads = append(leads, seeds.Seed{URL: u, Of: m.Root})
		}
		found = append(found, storage.Found{
			URL: u, Fingerprint: fingerprint(u), Seed: true, Priority: m.Priority, At: now,
			From: storage.SeedRef(set.Link(m, seeds.Ref{}, u)),
		})
	}
	return found, leads
}

// List returns the seeds of a set, in the order of their URLs.
func List(set *seeds.Set) []seeds.Seed {
	all := make([]seeds.Seed, 0, set.Len())
	for m := range set.All() {
		all = append(all, m.Seed())
	}
	slices.SortFunc(all, func(a, b seeds.Seed) int { return strings.Compare(a.URL.String(), b.URL.String()) })
	return all
}

// last returns what the last row of each URL says.
func last(rows []storage.SeedRow) (add []seeds.Seed, remove []weburl.URL) {
	at := make(map[string]int, len(rows))
	for i := range rows {
		at[rows[i].URL] = i
	}
	for i := range rows {
		if at[rows[i].URL] != i {
			continue
		}
		s, err := seeds.Decode(rows[i].URL, rows[i].Value)
		switch {
		case err != nil:
		case rows[i].Value == nil:
			remove = append(remove, s.URL)
		default:
			add = append(add, s)
		}
	}
	return add, remove
}

// Wish is a change of seeds that somebody wants.
type Wish struct {
	Add    []seeds.Seed
	Remove []weburl.URL
	// Settings says that Add is all that the settings name: what they named before and do not name now is removed. A
	// seed that a command gave stays.
	Settings bool
}

// Counts is what became of a Wish.
type Counts struct {
	Added   int `json:"added" doc:"seeds that are new"`
	Changed int `json:"changed" doc:"known seeds whose fields have changed"`
	Known   int `json:"known" doc:"seeds that were there like this"`
	Removed int `json:"removed" doc:"seeds that are gone; their pages that wait are dropped"`
}

// Change is what a Wish changes.
type Change struct {
	Counts
	Add    []seeds.Seed
	Remove []weburl.URL
}

// Plan compares a Wish with the seeds that there are. The error is inspect.ErrUnknown for a seed to remove that there
// is not.
func Plan(set *seeds.Set, w *Wish) (c Change, err error) {
	named := make(map[weburl.URL]bool, len(w.Add))
	for i := range w.Add {
		s := w.Add[i]
		var before seeds.Seed
		m := set.Get(s.URL)
		if named[s.URL] { // the first one counts
			continue
		}
		named[s.URL] = true
		if m != nil {
			before = m.Seed()
		}
		switch {
		case m == nil || !before.Of.IsZero():
			c.Added++
		case before.Equal(&s) && before.Source != "":
			c.Known++
			continue
		case before.Equal(&s): // now it is known where it was given
			c.Known++
		default:
			s.Settings = s.Settings || before.Settings
			c.Changed++
		}
		c.Add = append(c.Add, s)
	}
	for _, u := range w.Remove {
		if m := set.Get(u); m == nil || m.Root != u {
			return Change{}, fmt.Errorf("seed %s: %w", u, inspect.ErrUnknown)
		} else if !named[u] {
			named[u] = true
			c.Remove = append(c.Remove, u)
		}
	}
	if w.Settings {
		for m := range set.All() {
			if m.Settings && m.Root == m.URL && !named[m.URL] {
				c.Remove = append(c.Remove, m.URL)
			}
		}
	}
	c.Removed = len(c.Remove)
	return c, nil
}

// start returns the seeds of a set that a crawl begins with: those given, and those of the other lists that were
// recorded as such. What is said of a seed that is both is what is in force.
func start(set *seeds.Set, lists ...[]seeds.Seed) (all []seeds.Seed) {
	named := make(map[weburl.URL]bool, len(lists[0]))
	for n, list := range lists {
		for i := range list {
			s := list[i]
			m := set.Get(s.URL)
			if n > 0 && s.Source == "" || named[s.URL] || m == nil || m.Root != s.URL {
				continue
			}
			named[s.URL], s.Fields = true, *m.Fields
			all = append(all, s)
		}
	}
	return all
}

// Update returns the change as an update of the set that it was planned for.
func (c *Change) Update(before *seeds.Set) *Update {
	return &Update{c.Rows(before), before.With(c.Add, c.Remove...), len(c.Remove) > 0, before}
}

// Rows returns the change as the database has it. set has the seeds of before.
func (c *Change) Rows(set *seeds.Set) []storage.SeedRow {
	var rows []storage.SeedRow
	for _, u := range c.Remove {
		rows = append(rows, storage.SeedRow{URL: u.String()})
		for _, t := range set.Targets(u) {
			rows = append(rows, storage.SeedRow{URL: t.String()})
		}
	}
	for i := range c.Add {
		seeds.Yield(i)
		rows = append(rows, Row(&c.Add[i]))
	}
	return rows
}

// Beginning is the seeds at the start of a run.
type Beginning struct {
	Set    *seeds.Set
	Rows   []storage.SeedRow // what the store does not know yet
	Start  []seeds.Seed      // those to fetch
	Narrow bool              // a seed is gone
}

// Begin returns the seeds of a run: those that earlier runs have recorded, those given, and the changes that shards of
// a cluster share. With keep the settings do not remove what they do not name any more; nor do settings without a seed.
func Begin(mode seeds.Mode, recorded, given []seeds.Seed, shared []storage.SeedRow, keep bool) (b Beginning) {
	w := Wish{Settings: !keep && slices.ContainsFunc(given, func(s seeds.Seed) bool { return s.Settings })}
	set := seeds.NewSet(mode).With(recorded)
	for i := range given {
		m := set.Get(given[i].URL)
		if given[i].Settings || m == nil || m.Root != m.URL { // else what was said of it before stays
			w.Add = append(w.Add, given[i])
		}
	}
	c, _ := Plan(set, &w) // it removes none by name
	u := c.Update(set)
	b.Rows, b.Narrow = u.Rows, u.Removes
	b.Set = NewUpdate(u.After, shared).After
	b.Rows = slices.DeleteFunc(b.Rows, func(row storage.SeedRow) bool {
		u, err := weburl.Parse(row.URL)
		return row.Value != nil && (err != nil || b.Set.Get(u) == nil)
	})
	added, removed := last(shared)
	for _, u := range removed {
		if set.Get(u) != nil {
			b.Rows, b.Narrow = append(b.Rows, storage.SeedRow{URL: u.String()}), true
		}
	}
	b.Start = start(b.Set, given, recorded, added)
	return b
}
