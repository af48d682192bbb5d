package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/storage"
)

// ErrQuery reports a query that has no answer.
var ErrQuery = errors.New("there is no answer to this")

// ErrTooMany reports that a list would need a walk over more hosts than one request may.
var ErrTooMany = errors.New("too many hosts")

// HostPage is a part of a list of hosts.
type HostPage struct {
	Hosts    []Host `json:"hosts"`
	Matching int    `json:"matching"`       // hosts of the state, on all pages; -1: they were not counted
	Next     string `json:"next,omitempty"` // HostQuery.After of the next page; empty: there is none
}

// Bounds of one page.
const (
	maxNames   = 50_000  // names that are inspected
	maxVisited = 100_000 // hosts of a store for orders that only the store knows
)

// HostPage returns one page of hosts. Orders that the running crawl has in memory need no walk over
// the store. Those that only the store knows (urls, requests, bytes) work for stores of a bounded
// size, and have a single page. Between two pages hosts move: one may then be on both, or on none.
func (v *View) HostPage(ctx context.Context, q HostQuery) (HostPage, error) {
	if err := q.Check(); err != nil {
		return HostPage{}, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	if q.Sort == "name" && q.State == "" && v.store.Counters().Hosts > maxVisited {
		return v.byName(ctx, new(Table), q) // a crawl that starts has no other for a while
	}
	var t *Table
	if v.o.Table != nil {
		var err error
		if t, err = v.o.Table(ctx); err != nil {
			return HostPage{}, err
		}
	}
	if q.State == oldFailing {
		q.State = HostFailing
	}
	key := tableKey(q.Sort)
	if q.State == HostSuspected {
		key = nil // the table does not know it
	}
	switch {
	case t == nil:
	case q.Sort == "name" && q.State != HostSuspected:
		return v.byName(ctx, t, q)
	case key != nil:
		return v.fromTable(ctx, t, q, key)
	case len(t.Rows) > maxVisited:
		return HostPage{}, fmt.Errorf("%w: %w for what only the database knows, %s: sort by waiting, delay, "+
			"finish, next, name or found", ErrQuery, ErrTooMany, strings.Trim(q.Sort+" "+q.State, " "))
	}
	if q.After != "" {
		return HostPage{}, fmt.Errorf("%w: this list has one page only", ErrQuery)
	}
	return v.onePage(ctx, q)
}

// onePage makes the page of a list by a walk over the store.
func (v *View) onePage(ctx context.Context, q HostQuery) (HostPage, error) {
	page := HostPage{Hosts: []Host{}}
	matching, err := v.Hosts(ctx, q, func(h *Host) error {
		page.Hosts = append(page.Hosts, *h)
		return nil
	})
	page.Matching = matching
	return page, err
}

// named returns the hosts that a query selects by their names; nil: it does not ask for names.
func (v *View) named(q HostQuery) (map[storage.HostID]bool, error) {
	if q.Under == "" && q.Contains == "" {
		return nil, nil
	}
	named, seen := make(map[storage.HostID]bool), 0
	err := v.store.Names(q.Under, "", func(name string, id storage.HostID) error {
		if seen++; seen > maxNames {
			return fmt.Errorf("%w: %w to search by name in this order: sort by name", ErrQuery, ErrTooMany)
		}
		if strings.Contains(name, q.Contains) {
			named[id] = true
		}
		return nil
	})
	return named, err
}

// byName returns a page in the order of names.
func (v *View) byName(ctx context.Context, t *Table, q HostQuery) (HostPage, error) {
	page := HostPage{Matching: -1}
	var ids []storage.HostID
	seen, last := 0, ""
	err := v.store.Names(q.Under, q.After, func(name string, id storage.HostID) error {
		if len(ids) == q.Limit || seen == maxNames {
			page.Next = last
			return storage.ErrStop
		}
		seen, last = seen+1, name
		r := t.row(id)
		if strings.Contains(name, q.Contains) && (q.State == "" || r != nil && HostStates()[r.State] == q.State) {
			ids = append(ids, id)
		}
		return nil
	})
	if err == nil {
		page.Hosts, err = v.hostsOf(ctx, ids)
	}
	return page, err
}

// URLPage is a part of a list of URLs.
type URLPage struct {
	URLs []URL `json:"urls"`
	// Matching is how many match on all pages; -1: that would take a walk over all URLs.
	Matching int    `json:"matching"`
	Next     string `json:"next,omitempty"` // URLQuery.From of the next page; empty: there is none
}

// count returns how many URLs match a query, if counters say it; otherwise -1.
func (v *records) count(q URLQuery) int {
	if q.Reason != nil || q.Status != 0 || q.Contains != "" || q.Tag != "" || !q.Seed.IsZero() {
		return -1
	}
	counts, of := v.store.Counters(), storage.Host{}
	if q.Host != "" {
		var err error
		if of, err = v.host(q.Host); err != nil {
			return -1
		}
	}
	switch {
	case q.Host != "" && q.State != nil:
		return int(of.Counts[*q.State])
	case q.Host != "":
		return int(of.Tail - of.First)
	case q.State != nil:
		return int(counts.Of(*q.State))
	}
	return int(counts.URLs)
}

// URLPage is [View.URLs] with the URLs in memory.
func (v *records) URLPage(ctx context.Context, q URLQuery) (URLPage, error) {
	page := URLPage{URLs: make([]URL, 0, min(q.Limit, 1000)), Matching: v.count(q)}
	next, err := v.URLs(ctx, q, func(u *URL) error {
		page.URLs = append(page.URLs, *u)
		return nil
	})
	if next != nil {
		page.Next = next.String()
	}
	return page, err
}
