package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/sweep"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Seed is a URL to start from, and where it was given, for messages.
type Seed struct {
	URL      weburl.URL
	Source   string // "config.yaml:12", "seeds.txt:7", "argument 2"
	Priority int8   // of the URLs of its host those of a higher one come first; 0 is that of discoveries
}

// scopeStore is where the scope seeds are.
type scopeStore interface {
	markReader
	ScopeSeeds() ([]string, error)
}

// initialScope is the scope at the start of a run: that of the seeds, of those of earlier runs, and
// of where their redirects led, in a cluster those of all shards.
type initialScope struct {
	scope *frontier.Scope
	fresh []string // seeds that no earlier run has recorded
	seeds int      // that the scope is made of
}

func newInitialScope(s scopeStore, o *Options, seeds []Seed, shared ...weburl.URL) (*initialScope, error) {
	recorded, err := recordedSeeds(s)
	if err != nil {
		return nil, err
	}
	recorded = append(recorded, shared...)
	known := make(map[string]bool, len(recorded))
	urls := make([]weburl.URL, 0, len(seeds)+len(recorded))
	for _, u := range recorded {
		known[u.String()] = true
		urls = append(urls, u)
	}
	var fresh []string
	for i := range seeds {
		urls = append(urls, seeds[i].URL)
		if text := seeds[i].URL.String(); !known[text] {
			known[text] = true
			fresh = append(fresh, text)
		}
	}
	commanded, err := commandedOptOuts(s)
	if err != nil {
		return nil, err
	}
	optOuts := listOptOuts(o.OptOuts, commanded, o.Shared.sharedOptOuts()).InForce(o.Now())
	scope := frontier.NewScope(o.Mode, o.Include, o.Exclude, urls...).WithOptOuts(optOuts)
	return &initialScope{scope, fresh, len(known)}, nil
}

// recordedSeeds returns the scope seeds of earlier runs.
func recordedSeeds(s scopeStore) (urls []weburl.URL, err error) {
	texts, err := s.ScopeSeeds()
	for _, text := range texts {
		u, err := weburl.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("scope seed %q: %w", text, err)
		}
		urls = append(urls, u)
	}
	return urls, err
}

// StoredScope puts the scope of a crawl that does not run into view: that of the seeds given and of
// those that earlier runs have recorded, without what opted out.
func StoredScope(s *storage.Store, o Options, seeds []Seed, view *inspect.Options) error {
	o.fill()
	initial, err := newInitialScope(s, &o, seeds)
	if err != nil {
		return err
	}
	view.Scope = func(u weburl.URL) (bool, string) { return isInScope(initial.scope, u) }
	view.OptOut = func(host, address string) string { return hostOptOut(initial.scope, host, address) }
	return nil
}

// isInScope reports whether a URL is in scope, and why. A nil scope is that of a crawl that has not
// begun.
func isInScope(scope *frontier.Scope, u weburl.URL) (in bool, why string) {
	if scope == nil {
		return false, "the crawl has not begun"
	}
	return scope.Check(u) == frontier.InScope, scopeReason(scope, u)
}

// addSeeds commits the seeds, and that fresh ones are scope seeds from now on: a later run may be
// started without them. Seeds that the scope itself excludes are reported and left out. Those of other
// shards count for the scope only.
func (e *Engine) addSeeds(ctx context.Context, seeds []Seed, fresh []string) error {
	scope := e.scope.Load()
	now := e.o.Now()
	b := storage.Batch{ScopeSeeds: fresh}
	var size storage.BatchSizer
	if len(seeds) > size.Items() { // as in hostOrder
		seeds = slices.Clone(seeds)
		slices.SortStableFunc(seeds, func(a, b Seed) int { return strings.Compare(a.URL.Host(), b.URL.Host()) })
	}
	for i, s := range seeds {
		v := scope.Check(s.URL)
		switch {
		case !e.o.owns(s.URL.Host()): // the engine of its shard adds it
		case v != frontier.InScope:
			e.log.Warn("seed left out", "seed", s.URL.String(), "source", s.Source, "reason", scopeReason(scope, s.URL))
		default:
			b.Found = append(b.Found, storage.Found{
				URL: s.URL, Fingerprint: e.store.Fingerprint(s.URL), Seed: true, Priority: s.Priority, At: now,
			})
		}
		if len(b.Found) < size.Items() && i+1 < len(seeds) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		started := e.o.Now()
		result, err := e.commitAtStart(ctx, &b)
		if err != nil {
			return fmt.Errorf("add seeds: %w", err)
		}
		size.Committed(len(b.Found), result.Changed, e.o.Now().Sub(started))
		b = storage.Batch{Found: b.Found[:0]}
	}
	return nil
}

// commitAtStart commits before there is a committer. It waits for space on the disk as that does.
func (e *Engine) commitAtStart(ctx context.Context, b *storage.Batch) (result storage.Result, err error) {
	for logged := false; ; logged = true {
		if err = e.space.check(); err == nil {
			result, err = e.store.Commit(b)
			err = e.space.explain(err)
		}
		if !errors.Is(err, storage.ErrNoSpace) {
			return result, err
		}
		if !logged {
			e.log.Error(noRoom, "error", err)
			e.publish(Status{State: "stalled", Reason: err.Error()})
		}
		select {
		case <-ctx.Done():
			return result, ctx.Err()
		case <-time.After(retryFull):
		}
	}
}

// SeedReport says what became of the seeds of a run, or of the recorded ones if it was given none.
type SeedReport struct {
	Failed bool         // there are some, and none of them could be fetched
	Total  int          // of those that failed, if all did
	First  []SeedResult // a few of them
}

// SeedResult is why a seed could not be fetched.
type SeedResult struct {
	URL    string
	State  string
	Reason string // as inspect.CauseName and inspect.ReasonName have it, or as Postponed.Reason
}

// seedsReported bounds SeedReport.First.
const seedsReported = 5

// seedStore is what a seed report reads.
type seedStore interface {
	scopeStore
	Lookup(weburl.URL) (storage.Head, storage.Host, error)
	Counters() storage.Counters
}

// seedReport looks the seeds up. It ends at the first one that was fetched, or may yet be.
func seedReport(s seedStore, seeds []Seed, postponed []Postponed) (report SeedReport, err error) {
	urls := make([]weburl.URL, 0, len(seeds))
	for i := range seeds {
		urls = append(urls, seeds[i].URL)
	}
	if len(urls) == 0 {
		if urls, err = recordedSeeds(s); err != nil {
			return report, err
		}
	}
	waits := make(map[string]*Postponed, len(postponed))
	for i := range postponed {
		waits[postponed[i].Host] = &postponed[i]
	}
	for _, u := range urls {
		result, failed, err := seedResult(s, u, waits)
		if err != nil || !failed {
			return SeedReport{}, err
		}
		report.Total++
		if len(report.First) < seedsReported {
			report.First = append(report.First, result)
		}
	}
	report.Failed = report.Total > 0
	return report, nil
}

// seedResult returns why a seed could not be fetched; false: it was, or may yet be.
func seedResult(s seedStore, u weburl.URL, waits map[string]*Postponed) (result SeedResult, failed bool, err error) {
	head, host, err := s.Lookup(u)
	if errors.Is(err, storage.ErrNotFound) {
		return SeedResult{
			URL: u.String(), State: inspect.StateUnknown, Reason: inspect.ReasonName(storage.ReasonScope),
		}, true, nil
	}
	if err != nil {
		return result, false, err
	}
	o := &head.Last
	result = SeedResult{URL: u.String(), State: o.State.String(), Reason: inspect.ReasonName(o.Reason)}
	if o.Reason == storage.ReasonStatus {
		result.Reason = inspect.CauseName(storage.StatusCause(int(o.Status)))
	}
	switch o.State {
	case storage.Failed, storage.Denied, storage.Excluded:
		return result, true, nil
	case storage.Redirected: // to something that could not be fetched, if nothing could
		return result, s.Counters().Of(storage.Fetched) == 0, nil
	case storage.Queued, storage.Retrying:
		p := waits[host.Name]
		if p == nil || !p.Failed {
			return result, false, nil
		}
		if result.Reason = p.Reason; p.Cause != "" {
			result.Reason = p.Cause
		}
		return result, true, nil
	}
	return result, false, nil
}

// Addition is a URL that somebody gives to a crawl, as if a page had led there.
type Addition struct {
	URL      weburl.URL
	Depth    uint16 // links from a seed
	Priority int8
	Again    bool      // one that is known and was given up, denied or excluded is put back into its queue
	Put      *Imported // what another frontier knows of it; nil: nothing
}

// Imported is what another frontier knows of a URL.
type Imported struct {
	Created  time.Time // when it was discovered; zero: now
	Metadata []byte    // as storage.Metadata.Encode returns them
	// Known says that it was fetched, or that somebody decided when to fetch it: then Due and Metadata
	// replace what is known of it here.
	Known bool
	Due   time.Time // when it is fetched; zero: never again
}

// InsertResult is what became of an Addition.
type InsertResult uint8

// The results.
const (
	InsertNone     InsertResult = iota // no commit has come to it
	InsertAdded                        // it is new, and on disk
	InsertKnown                        // it was there before
	InsertOutside                      // it is not in scope, or deeper than crawl.max_depth
	InsertRefused                      // the host has too many origins, or the URL leads into a trap
	InsertAgain                        // it was there before, and is put back into its queue
	InsertOptedOut                     // an opt-out covers it
)

// String names it, as Added does.
func (r InsertResult) String() string {
	return [...]string{"", "added", "known", "outside", "refused", "again", "opted_out"}[r]
}

// insertResultOf returns the result of an addition that was a discovery.
func insertResultOf(r storage.InsertResult) InsertResult {
	switch r {
	case storage.InsertAdded, storage.InsertRouted:
		return InsertAdded
	case storage.InsertKnown:
		return InsertKnown
	}
	return InsertRefused
}

// Added is what became of additions. Each of them is counted once.
type Added struct {
	Added   int `json:"added"`           // new, and on disk
	Known   int `json:"known"`           // there before
	Outside int `json:"outside"`         // not in scope, or deeper than crawl.max_depth
	Refused int `json:"refused"`         // the host has too many origins, or they lead into traps
	Again   int `json:"again,omitempty"` // there before, and put back into their queues

	OptedOut int `json:"opted_out,omitempty"` // an opt-out covers them
}

// Plus is the sum.
func (a Added) Plus(b Added) Added {
	return Added{a.Added + b.Added, a.Known + b.Known, a.Outside + b.Outside, a.Refused + b.Refused, a.Again + b.Again,
		a.OptedOut + b.OptedOut}
}

// count counts one result.
func (a *Added) count(r InsertResult) {
	switch r {
	case InsertAdded:
		a.Added++
	case InsertKnown:
		a.Known++
	case InsertOutside:
		a.Outside++
	case InsertRefused:
		a.Refused++
	case InsertAgain:
		a.Again++
	case InsertOptedOut:
		a.OptedOut++
	}
}

// addition is a group of discoveries on its way through the dispatcher.
type addition struct {
	found  []storage.Found
	again  []storage.Done // known URLs that are put back
	marks  map[string][]byte
	user   bool       // somebody gives it to the crawl, which did not find it itself
	answer chan added // holds one
}

// added is what the commit of an addition did.
type added struct {
	results []storage.InsertResult // of each discovery
	changed int64                  // see storage.Result
	took    time.Duration
	err     error
}

// importStore is what an import reads.
type importStore interface {
	fingerprinter
	Lookup(weburl.URL) (storage.Head, storage.Host, error)
}

// admitAddition applies the rules for discovered URLs to an addition. It returns false if it does
// not belong to the crawl.
func (o *Options) admitAddition(scope *frontier.Scope, a *Addition) (weburl.URL, bool) {
	if o.Frontier.MaxDepth > 0 && a.Depth > o.Frontier.MaxDepth {
		return a.URL, false
	}
	u, short := o.URLs.Apply(a.URL)
	return u, short && scope.Check(u) == frontier.InScope
}

// retrieve returns what puts a URL back that was given up, denied or excluded; false: it is not
// known, or in another state.
func retrieve(store importStore, u weburl.URL, now time.Time) (storage.Done, bool, error) {
	head, host, err := store.Lookup(u)
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Done{}, false, nil
	}
	if err != nil || !storage.In(storage.Failed, storage.Denied, storage.Excluded).Has(head.Last.State) {
		return storage.Done{}, false, err
	}
	return sweep.PutBack(host.ID, &head, now), true, nil
}

// admit applies the rules for discovered URLs to a link, and reports whether the result is stored.
func (o *Options) admit(scope *frontier.Scope, found weburl.URL) (weburl.URL, bool) {
	u, short := o.URLs.Apply(found)
	return u, short && scope.Keeps(u)
}
