package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/disk"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/inserts"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/optouts"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/seedbook"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Seed is a URL to start from.
type Seed = seeds.Seed

// scopeStore is where the seeds are.
type scopeStore interface {
	optouts.Reader
	seedbook.Store
}

// initialScope is the scope at the start of a run: that of the seeds, of those of earlier runs, and
// of where their redirects led, in a cluster those of all shards.
type initialScope struct {
	seedbook.Beginning
	scope *frontier.Scope
}

func newInitialScope(s scopeStore, o *Options, given []Seed, shared ...storage.SeedRow) (*initialScope, error) {
	recorded, err := seedbook.Read(s)
	if err != nil {
		return nil, err
	}
	// The nodes of a cluster agree on the seeds of the settings.
	b := seedbook.Begin(o.Mode, recorded, given, shared, o.KeepSeeds || o.Journal != nil)
	commanded, err := optouts.Commanded(s)
	if err != nil {
		return nil, err
	}
	optOuts := optouts.List(o.OptOuts, commanded, o.Shared.sharedOptOuts()).InForce(o.Now())
	scope := frontier.NewScope(o.Mode, o.Include, o.Exclude).WithSeeds(b.Set).WithOptOuts(optOuts).
		WithChecks(o.CheckOutside)
	return &initialScope{b, scope}, nil
}

// isInScope reports whether a URL is in scope, and why. A nil scope is that of a crawl that
// has not begun.
func isInScope(scope *frontier.Scope, u weburl.URL, head *storage.Entry) (in bool, why string) {
	if scope == nil {
		return false, "the crawl has not begun"
	}
	return scope.CheckHead(u, head) == frontier.InScope, scopeReason(scope, u, head)
}

// addSeeds commits the rows of seeds, and the seeds of this engine's hosts. Seeds that the scope itself excludes are
// reported and left out. Those of other shards count for the scope only.
func (e *Engine) addSeeds(ctx context.Context, initial *initialScope) error {
	scope := e.scope.Load()
	b := storage.Batch{Seeds: initial.Rows}
	if initial.Narrow {
		b.Marks = map[string][]byte{sweep.MarkExclude: []byte(storage.Position{}.String())}
	}
	start := initial.Start
	var size storage.BatchSizer
	if len(start) > size.Items() { // as in lists.Committer
		slices.SortStableFunc(start, func(a, b Seed) int { return strings.Compare(a.URL.Host(), b.URL.Host()) })
	}
	for i := range start {
		if !e.o.owns(start[i].URL.Host()) { // the engine of its shard adds it
			continue
		}
		if f, ok := e.o.foundSeed(e.store, scope, &start[i]); ok {
			b.Found = append(b.Found, f)
		} else {
			e.log.Warn("seed left out", "seed", start[i].URL.String(), "source", start[i].Source,
				"reason", scopeReason(scope, start[i].URL, new(storage.Entry)))
		}
		if len(b.Found) < size.Items() {
			continue
		}
		if err := e.addBatch(ctx, &b, &size); err != nil {
			return err
		}
	}
	if b.Empty() {
		return ctx.Err()
	}
	return e.addBatch(ctx, &b, &size)
}

func (e *Engine) addBatch(ctx context.Context, b *storage.Batch, size *storage.BatchSizer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	started := e.o.Now()
	result, err := e.commitAtStart(ctx, b)
	if err != nil {
		return fmt.Errorf("add seeds: %w", err)
	}
	size.Committed(len(b.Found), result.Changed, e.o.Now().Sub(started))
	*b = storage.Batch{Found: b.Found[:0]}
	return nil
}

// foundSeed returns a seed as a discovery; false: the scope excludes it.
func (o *Options) foundSeed(store fingerprinter, scope *frontier.Scope, s *Seed) (f storage.Found, ok bool) {
	if scope.Check(s.URL, seeds.Ref{}) != frontier.InScope {
		return f, false
	}
	from := scope.Seeds().Link(nil, seeds.Ref{}, s.URL)
	return storage.Found{
		URL: s.URL, Fingerprint: store.Fingerprint(s.URL), Seed: true, Priority: s.Priority, At: o.Now(),
		From: storage.SeedRef(from),
	}, true
}

// commitAtStart commits before there is a committer. It waits for space on the disk as that does.
func (e *Engine) commitAtStart(ctx context.Context, b *storage.Batch) (result storage.Result, err error) {
	for logged := false; ; logged = true {
		if err = e.space.Check(); err == nil {
			result, err = e.store.Commit(b)
			err = e.space.Explain(err)
		}
		if !errors.Is(err, storage.ErrNoSpace) {
			return result, err
		}
		if !logged {
			e.log.Error(disk.NoRoom, "error", err)
			e.publish(Status{State: "stalled", Reason: err.Error()})
		}
		select {
		case <-ctx.Done():
			return result, ctx.Err()
		case <-time.After(disk.Again):
		}
	}
}

// SeedReport says what became of the seeds of a run, or of the recorded ones if it was given none.
type SeedReport = seedbook.Report

// SeedResult is why a seed could not be fetched.
type SeedResult = seedbook.Result

// seedReport looks the seeds up.
func seedReport(s seedbook.Lookup, given []Seed, postponed []Postponed) (SeedReport, error) {
	waits := make(map[string]*Postponed, len(postponed))
	for i := range postponed {
		waits[postponed[i].Host] = &postponed[i]
	}
	return seedbook.NewReport(s, given, func(host *storage.Host) (string, bool) {
		if p := waits[host.Name]; p != nil && p.Failed {
			return cmp.Or(p.Cause, p.Reason), true
		}
		return "", false
	})
}

// Addition is a URL that somebody gives to a crawl, as if a page had led there.
type Addition = lists.Addition

// Imported is what another frontier knows of a URL.
type Imported = lists.Imported

// InsertResult is what became of an Addition.
type InsertResult = inserts.Result

// The results.
const (
	InsertNone     = inserts.None
	InsertAdded    = inserts.Added
	InsertKnown    = inserts.Known
	InsertOutside  = inserts.Outside
	InsertRefused  = inserts.Refused
	InsertAgain    = inserts.Again
	InsertOptedOut = inserts.OptedOut
)

// Added is what became of additions. Each of them is counted once.
type Added = inserts.Counts

// addition is a group of discoveries on its way through the dispatcher.
type addition struct {
	lists.Rows
	marks  map[string][]byte
	user   bool             // somebody gives it to the crawl, which did not find it itself
	answer chan lists.Added // holds one
}

// fingerprinter is the store as far as discoveries need it.
type fingerprinter interface{ Fingerprint(weburl.URL) uint64 }

// heldFor returns why a host lets none of its URLs be fetched: robots.txt disallows all, or it has put up a wall.
func heldFor(f *frontier.Frontier) func(*storage.Host) (why string, held bool) {
	return func(h *storage.Host) (string, bool) {
		v, _ := f.View(h.ID)
		if v.Wall != wall.KindNone {
			return inspect.ReasonName(storage.ReasonWall), true
		}
		denied := v.Robots == robots.ReasonRule || v.Robots == robots.ReasonForbidden
		return inspect.ReasonName(storage.ReasonRobots), denied
	}
}
