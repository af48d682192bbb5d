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
	// maxPutBytes is how many bytes of metadata may gather for the next commit.
	maxPutBytes = 8 << 20
)

// putGroup are puts on their way through the dispatcher into one commit.
type putGroup struct {
	found    []storage.Found
	known    []string          // the texts of those with an outcome, in their order
	indexes  []int             // in the argument of Put
	fetchers []string          // each once
	keys     map[string]putKey // by host
	moved    []queueKey        // of hosts that were in another queue
	bytes    int               // of metadata

	first   int                    // index of its first in the batch
	results []storage.InsertResult // set before done
	done    chan error             // holds one: nil when it is committed
	again   bool                   // it waits for the next commit too
}

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

// putsFrom returns the channel that the next puts come from; nil while enough of them have gathered.
func (b *batching) putsFrom(m *mailbox) <-chan *putGroup {
	if b.pending.size > b.batchSize.Items()*3/4 || b.pending.putBytes > maxPutBytes {
		return nil
	}
	return m.puts
}

// takePuts takes puts into the next commit. The leases of known URLs end, when their hosts are
// loaded.
func (ld *lender) takePuts(g *putGroup) {
	now := ld.o.Now()
	for _, name := range g.fetchers {
		if err := ld.remote.checkFetcher(name, now); err != nil {
			g.done <- err
			return
		}
	}
	for _, url := range g.known {
		if x := ld.remote.OfText(url); x != nil && !x.IsClaimed() {
			if _, loaded := ld.f.LeaseOf(x.FrontierID); !loaded { // an earlier process gave it
				ld.remote.parkedPuts = append(ld.remote.parkedPuts, g)
				return
			}
		}
	}
	ld.runOut(now)
	known := g.known
	for i := range g.found {
		o := g.found[i].Outcome
		if o == nil {
			continue
		}
		o.At = now
		ld.f.BeginPut(known[0])
		if x := ld.remote.OfText(known[0]); x != nil {
			ld.endByPut(x, known[0], o.State, now)
		}
		known = known[1:]
	}
	ld.fail(ld.keys.setGroup(g, ld.pending))
	ld.collect()
	b := ld.pending
	g.first = len(b.rows.Found)
	b.rows.Found = append(b.rows.Found, g.found...)
	b.puts = append(b.puts, g)
	b.size += len(g.found)
	b.putBytes += g.bytes
}

// endByPut ends a lease because of a put of its URL, which becomes another state by it. The host is
// charged as for a request without a known result. The put overrides a report that is being
// worked on.
func (ld *lender) endByPut(x *remote.Held, url string, became storage.State, now time.Time) {
	if x.IsClaimed() {
		x.Overridden, x.Became = true, became
		return
	}
	l, _ := ld.f.LeaseOf(x.FrontierID)
	if f := ld.remote.Known(x.Fetcher); f != nil {
		f.Reported++
	}
	res := broken(l, x, x.Began, now)
	ld.endRemote(res)
	ld.logRequest(res, &res.page.Report)
	if !ld.o.IgnoreRobots || x.Again && now.Unix() == x.Given.Unix() { // else the time of the put says that it ended
		ld.fail(ld.ledger.noteEnd(res))
	}
	if err := ld.f.CompletePut(l.ID, url, became, res.page.Report); err != nil {
		ld.fail(fmt.Errorf("put %s: %w", url, err))
	}
}

// completeOverridden applies the report of a lease whose URL was put meanwhile: the put decides about
// the URL, and what the page led to counts.
func (oc *outcomes) completeOverridden(res *result) error {
	x := res.remote.lease
	err := oc.f.CompletePut(res.lease.ID, x.URL, x.Became, res.page.Report)
	oc.pending.add(res)
	if res.remote.committed != nil {
		oc.pending.waiting = append(oc.pending.waiting, res.remote.committed)
	}
	oc.bodies.Add(res.lease.URL.String(), res.payload)
	return err
}

// sizeResults makes room for the results of puts.
func (b *batch) sizeResults() {
	if n := len(b.rows.Found); len(b.puts) > 0 && len(b.rows.InsertResults) != n {
		b.rows.InsertResults = make([]storage.InsertResult, n, n+n/4)
	}
}

// answerPuts tells those who have put URLs what became of the commit.
func (b *batch) answerPuts(err error) {
	for _, g := range b.puts {
		if err == nil {
			g.results = b.rows.InsertResults[g.first : g.first+len(g.found)]
		}
		if !g.again {
			g.done <- err
		}
	}
	b.puts = nil
}

// endPuts tells the frontier that the puts of a batch are on disk.
func (oc *outcomes) endPuts(b *batch) {
	for _, g := range b.puts {
		for _, url := range g.known {
			oc.f.EndPut(url)
		}
	}
}

// takeBack ends the leases of URLs of a host that are deleted, in a crawl whose fetchers decide
// everything, and if all of its URLs are deleted its key and what clients have set for it: nothing from
// before the deletion holds back what comes after it. The error is of reading the host.
func (ld *lender) takeBack(id storage.HostID, below uint32) error {
	now := ld.o.Now()
	host, err := ld.store.HostByID(id)
	all := err == nil && below >= host.Tail
	if all {
		ld.fail(ld.setHost(&host, func(q *QueueSettings) { *q = QueueSettings{} }, now))
	}
	for _, x := range ld.remote.OfHost(id) {
		l, loaded := ld.f.LeaseOf(x.FrontierID)
		if !loaded || x.IsClaimed() || x.At.Ordinal >= below {
			continue // it runs out, or its report is being worked on
		}
		res := broken(l, x, x.Began, now)
		res.page.Report = frontier.Report{End: now}
		ld.complete(res)
	}
	if all {
		_, err = ld.keys.set(queueKey{host.Name, host.Name}, ld.pending)
		ld.f.ForgetRequests(id, host.Name)
	}
	return err
}
