package optout

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// List is a set of entries, at most one for a scope and value. The zero value has none.
type List struct {
	names    map[string]Entry   // by host name
	domains  map[string]Entry   // by domain
	ranges   []prefixEntry      // the widest first
	prefixes map[string][]Entry // by host name
	all      []Entry            // by scope and value
}

type prefixEntry struct {
	prefix netip.Prefix
	Entry
}

// NewList makes a list. Of several entries for one scope and value the one that lasts longest counts.
func NewList(entries ...Entry) *List {
	l := &List{names: map[string]Entry{}, domains: map[string]Entry{}, prefixes: map[string][]Entry{}}
	l.all = slices.Clone(entries)
	slices.SortStableFunc(l.all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Value, b.Value), compareEnds(b, a))
	})
	l.all = slices.CompactFunc(l.all, func(a, b Entry) bool { return a.Scope == b.Scope && a.Value == b.Value })
	for _, e := range l.all {
		switch e.Scope {
		case ScopeHost:
			l.names[e.Value] = e
		case ScopeDomain:
			l.domains[e.Value] = e
		case ScopeRange:
			if p, err := netip.ParsePrefix(e.Value); err == nil {
				l.ranges = append(l.ranges, prefixEntry{p, e})
			}
		case ScopePrefix:
			if u, err := weburl.Parse(e.Value); err == nil {
				l.prefixes[u.Host()] = append(l.prefixes[u.Host()], e)
			}
		}
	}
	return l
}

// compareEnds orders entries by when they end; one without an end is last.
func compareEnds(a, b Entry) int {
	switch {
	case a.Until.IsZero() && b.Until.IsZero():
		return 0
	case a.Until.IsZero():
		return 1
	case b.Until.IsZero():
		return -1
	}
	return a.Until.Compare(b.Until)
}

// Len returns the number of entries.
func (l *List) Len() int {
	if l == nil {
		return 0
	}
	return len(l.all)
}

// HasRanges reports whether an entry is about addresses.
func (l *List) HasRanges() bool { return l != nil && len(l.ranges) > 0 }

// All returns the entries by scope and value. Nobody may change the result.
func (l *List) All() []Entry {
	if l == nil {
		return nil
	}
	return l.all
}

// Host returns the entry in force that covers every URL of a host, if there is one: of the host, or of
// a domain that it is in. host is as [weburl.URL.Host] returns it.
func (l *List) Host(host string, now time.Time) (Entry, bool) {
	if l.Len() == 0 {
		return Entry{}, false
	}
	if e, ok := l.names[host]; ok && e.InForce(now) {
		return e, true
	}
	for name := host; name != "" && len(l.domains) > 0; {
		if e, ok := l.domains[name]; ok && e.InForce(now) {
			return e, true
		}
		_, name, _ = strings.Cut(name, ".")
	}
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return l.Addr(addr, now)
	}
	return Entry{}, false
}

// Addr returns the entry in force that covers an address, if there is one.
func (l *List) Addr(addr netip.Addr, now time.Time) (Entry, bool) {
	if l == nil {
		return Entry{}, false
	}
	addr = addr.Unmap().WithZone("")
	for _, r := range l.ranges {
		if r.prefix.Contains(addr) && r.InForce(now) {
			return r.Entry, true
		}
	}
	return Entry{}, false
}

// URL returns the entry in force that covers a URL by its host or its text, if there is one. A
// prefix of http covers https, and the other way round: who wishes a page to be left alone does not
// mean its scheme. A prefix that covers the robots.txt of an origin covers all of it, because
// nothing of it may be fetched without that file.
func (l *List) URL(u weburl.URL, now time.Time) (Entry, bool) {
	if l.Len() == 0 {
		return Entry{}, false
	}
	if e, ok := l.Host(u.Host(), now); ok {
		return e, true
	}
	prefixes := l.prefixes[u.Host()]
	if len(prefixes) == 0 {
		return Entry{}, false
	}
	text, robots := withoutScheme(u.String()), withoutScheme(u.Origin().URL("/robots.txt").String())
	for _, e := range prefixes {
		prefix := withoutScheme(e.Value)
		if e.InForce(now) && (strings.HasPrefix(text, prefix) || strings.HasPrefix(robots, prefix)) {
			return e, true
		}
	}
	return Entry{}, false
}

func withoutScheme(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	return rest
}

// InForce returns the list without the entries that have ended.
func (l *List) InForce(now time.Time) *List {
	return NewList(slices.DeleteFunc(slices.Clone(l.All()), func(e Entry) bool { return !e.InForce(now) })...)
}

// Gains reports whether another list has an entry that this one has not.
func (l *List) Gains(other *List) bool {
	return slices.ContainsFunc(other.All(), func(e Entry) bool {
		return !slices.ContainsFunc(l.All(), func(o Entry) bool { return o.Scope == e.Scope && o.Value == e.Value })
	})
}

// NextEnd returns the earliest end of an entry after an instant; zero: none ends.
func (l *List) NextEnd(now time.Time) (end time.Time) {
	for _, e := range l.All() {
		if e.Until.After(now) && (end.IsZero() || e.Until.Before(end)) {
			end = e.Until
		}
	}
	return end
}
