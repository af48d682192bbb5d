package crawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Seed is a URL to start from, and where it was given, for messages.
type Seed struct {
	URL      weburl.URL
	Source   string
	Priority int8 // of the URLs of its host those of a higher one come first; 0 is that of what is found
}

// StoredScope is the scope of a crawl that does not run, as inspect.Options.Scope asks for it: that of the seeds given and of those that earlier runs
// have recorded.
func StoredScope(s *storage.Store, o Options, seeds []Seed) (func(weburl.URL) (in bool, why string), error) {
	e := &Engine{o: o, store: s}
	e.put(o.Live())
	scope, _, err := e.initialScope(seeds)
	if err != nil {
		return nil, err
	}
	return func(u weburl.URL) (bool, string) { return told(scope, u) }, nil
}

// initialScope is that of the seeds, of those of earlier runs, and of where
// their redirects led. fresh are the seeds that no earlier run has recorded.
func (e *Engine) initialScope(seeds []Seed) (scope *frontier.Scope, fresh []string, err error) {
	joined, err := e.store.Joined()
	if err != nil {
		return nil, nil, err
	}
	known := make(map[string]bool, len(joined))
	urls := make([]weburl.URL, 0, len(seeds)+len(joined))
	for _, text := range joined {
		u, err := weburl.Parse(text)
		if err != nil {
			return nil, nil, fmt.Errorf("joined seed %q: %w", text, err)
		}
		known[text] = true
		urls = append(urls, u)
	}
	for _, s := range seeds {
		urls = append(urls, s.URL)
		if text := s.URL.String(); !known[text] {
			known[text] = true
			fresh = append(fresh, text)
		}
	}
	l := e.force.Load()
	e.scopeSeeds = len(known)
	return frontier.NewScope(e.o.Mode, l.Include, l.Exclude, urls...), fresh, nil
}

// addSeeds commits the seeds, and that fresh ones belong to the scope from now
// on: a later run may be started without them. Seeds that the scope itself
// excludes are reported and left out.
func (e *Engine) addSeeds(ctx context.Context, seeds []Seed, fresh []string) error {
	scope := e.scope.Load()
	now := e.now()
	b := storage.Batch{Join: fresh}
	var portion storage.Portion
	for i, s := range seeds {
		if v := scope.Check(s.URL); v != frontier.InScope {
			e.log.Warn("seed left out", "seed", s.URL.String(), "source", s.Source, "reason", v.String())
		} else {
			b.Found = append(b.Found, storage.Found{URL: s.URL, Fingerprint: e.store.Fingerprint(s.URL), Seed: true, Priority: s.Priority, At: now})
		}
		if len(b.Found) < portion.Items() && i+1 < len(seeds) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		result, err := e.commitSeeds(ctx, &b)
		if err != nil {
			return fmt.Errorf("add seeds: %w", err)
		}
		portion.Committed(len(b.Found), result.Changed)
		b = storage.Batch{Found: b.Found[:0]}
	}
	return nil
}

// commitSeeds commits seeds when there is room for them, as the committer does later.
func (e *Engine) commitSeeds(ctx context.Context, b *storage.Batch) (result storage.Result, err error) {
	for said := false; ; said = true {
		if err = e.checkRoom(); err == nil {
			result, err = e.store.Commit(b)
			err = e.roomError(err)
		}
		if !errors.Is(err, storage.ErrNoSpace) {
			return result, err
		}
		if !said {
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
