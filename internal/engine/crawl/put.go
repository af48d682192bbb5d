//go:build !core

package crawl

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Put is a URL that a client of the frontier decides about.
type Put struct {
	URL weburl.URL
	// Known says that the client decides when the URL is due, whether it is known here or not. A Put
	// that is not Known is a discovery: it adds a new URL, and changes nothing about a known one.
	Known bool
	// Due is when a Known URL is fetched, rounded up to whole seconds; the zero time: never again. An
	// instant in the past makes it due at once, an earlier one before a later one.
	Due time.Time
	// Key is that of the queue that the host of the URL is put into; empty: it stays in that which it is in,
	// at first that of its name.
	Key string
	// Metadata are those of a new URL; of a Known one they replace what it has.
	Metadata storage.Metadata
	// Fetcher is the client, by a name that remote.IsFetcherName allows; empty: it has none. A Known Put ends
	// the remote lease of its URL, whoever holds it, as a report does: the request has ended, and the
	// delay of its host begins.
	Fetcher string
}

// PutResult says what became of a Put.
type PutResult uint8

// The results of puts.
const (
	PutAccepted PutResult = iota // it is on disk
	PutKnown                     // a discovery of a URL that is known: it changed nothing
	PutOutside                   // out of scope
	PutOptedOut                  // an opt-out covers it
	PutInvalid                   // its metadata or its URL are too long, its host has too many origins, or it is a trap
)

// String returns the name of the result for logs.
func (r PutResult) String() string {
	return [...]string{"accepted", "known", "outside", "opted-out", "invalid"}[r]
}

// Bounds of a group of puts: what the dispatcher takes in at a time. A longer Put is several groups.
const (
	maxGroupPuts  = 1000
	maxGroupBytes = 1 << 20 // of metadata
)

// Put takes in URLs, and returns when they are on disk. There is one result for each, in their
// order. Of equal discoveries the first is accepted, and the others are known. Puts of several
// goroutines share a commit. The error is ErrNotRunning, ErrDraining for discoveries, remote.ErrCutOff,
// remote.ErrLease for a name of a fetcher, that of ctx, or why the commit failed; after it, puts may have
// been accepted. Any goroutine may call it.
func (l *lendings) Put(ctx context.Context, puts []Put) ([]PutResult, error) {
	m := l.mailbox.Load()
	if !m.isOpen() {
		return nil, ErrNotRunning
	}
	results := make([]PutResult, len(puts))
	groups, err := l.groupPuts(m, puts, results)
	if err != nil {
		return nil, err
	}
	for i, g := range groups {
		select {
		case m.puts <- g:
		case <-m.closed:
			err = ErrNotRunning
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			groups = groups[:i]
			break
		}
	}
	for _, g := range groups {
		select {
		case failed := <-g.done:
			if failed != nil {
				return nil, fmt.Errorf("put URLs: %w", failed)
			}
			g.note(results)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return results, err
}

// groupPuts makes groups of the puts that can be taken in, and sets the results of the others.
func (l *lendings) groupPuts(m *mailbox, puts []Put, results []PutResult) (groups []*putGroup, err error) {
	var g *putGroup
	now, scope := l.o.Now(), l.scope.Load()
	known := 0
	for i := range puts {
		if puts[i].Known {
			known++
		}
	}
	outcomes := make([]storage.Outcome, 0, known)
	for i := range puts {
		p := &puts[i]
		if !p.Known && m.draining.Load() {
			return nil, ErrDraining
		}
		if p.Fetcher != "" && !remote.IsFetcherName(p.Fetcher) {
			return nil, fmt.Errorf("%w: the name of the fetcher is %q", remote.ErrLease, p.Fetcher)
		}
		u, ok := l.o.URLs.Apply(p.URL)
		metadata, invalid := p.Metadata.Encode()
		if !ok || invalid != nil {
			results[i] = PutInvalid
			continue
		}
		if in := scope.Check(u, seeds.Ref{}); in != frontier.InScope {
			if results[i] = PutOutside; in == frontier.OptedOut {
				results[i] = PutOptedOut
			}
			continue
		}
		if g == nil || len(g.found) == maxGroupPuts || g.bytes+len(metadata) > maxGroupBytes {
			g = &putGroup{done: make(chan error, 1), found: make([]storage.Found, 0, min(len(puts)-i, maxGroupPuts))}
			groups = append(groups, g)
		}
		f := storage.Found{URL: u, Fingerprint: l.store.Fingerprint(u), At: now, Metadata: metadata}
		if p.Known {
			outcomes = append(outcomes, p.outcome())
			f.Outcome = &outcomes[len(outcomes)-1]
			g.known = append(g.known, u.String())
		}
		l.addKey(g, u.Host(), p.Key)
		g.found, g.indexes, g.bytes = append(g.found, f), append(g.indexes, i), g.bytes+len(metadata)
		if p.Fetcher != "" && !slices.Contains(g.fetchers, p.Fetcher) {
			g.fetchers = append(g.fetchers, p.Fetcher)
		}
	}
	return groups, nil
}

// addKey adds the key of a put to its group. Most hosts have theirs.
func (i *keyIndex) addKey(g *putGroup, host, key string) {
	switch known, is := g.keys[host]; {
	case key == "" || key == host && !i.any.Load() || is && known.key == key:
		return
	case g.keys == nil:
		g.keys = make(map[string]putKey)
	}
	i.any.Store(true) // for the next group too, before this one is on its way
	stored, err := i.keyOf(host)
	g.keys[host] = putKey{key, err == nil && stored == key}
}

// outcome is what a Known URL becomes. The dispatcher sets its time.
func (p *Put) outcome() storage.Outcome {
	if p.Due.IsZero() {
		return storage.Outcome{State: storage.Fetched}
	}
	return storage.Outcome{State: storage.Retrying, Due: p.Due}
}

// note sets the results of a group that is committed.
func (g *putGroup) note(results []PutResult) {
	for i, index := range g.indexes {
		switch r := g.results[i]; {
		case r == storage.InsertRefused, r == storage.InsertTrapped:
			results[index] = PutInvalid
		case r == storage.InsertKnown && g.found[i].Outcome == nil:
			results[index] = PutKnown
		}
	}
}
